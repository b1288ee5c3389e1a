// One head and many tokens: three kernels and a workspace, in the emulator and
// in a bundle.

// RUN: linattn-run %s --target=nvvm-emulated --compare=reference --explain | FileCheck %s
// RUN: linattn-compile %s --target=nvvm -o %t.lab
// RUN: %python %S/../Runner/Inputs/show_bundle.py %t.lab | FileCheck %s --check-prefix=BUNDLE

// CHECK: passed: select-schedule: chunk kernel, 4 warps, {{.*}} segments
// CHECK: kernel linear_scan_increments: no findings
// CHECK: kernel linear_scan_states: no findings
// CHECK: kernel linear_scan: no findings
// CHECK: result 0: agrees with the reference
// CHECK: result 1: agrees with the reference

// BUNDLE: "bytes": {{[0-9]+}}
// BUNDLE: "kernel": "linear_scan_increments"
// BUNDLE: "kernel": "linear_scan_states"
// BUNDLE: "kernel": "linear_scan"
func.func @linear(%q: tensor<1x1x3000x16xbf16>, %k: tensor<1x1x3000x16xbf16>, %v: tensor<1x1x3000x16xbf16>,
                     %s: tensor<1x1x16x16xf32>) -> (tensor<1x1x3000x16xbf16>, tensor<1x1x16x16xf32>) {
  %e = tensor.empty() : tensor<1x1x3000x16xbf16>
  %o, %t = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x1x3000x16xbf16>, tensor<1x1x3000x16xbf16>, tensor<1x1x3000x16xbf16>,
       tensor<1x1x3000x16xbf16>, tensor<1x1x16x16xf32>)
    -> (tensor<1x1x3000x16xbf16>, tensor<1x1x16x16xf32>)
  return %o, %t : tensor<1x1x3000x16xbf16>, tensor<1x1x16x16xf32>
}
