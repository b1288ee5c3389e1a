// Families whose layers need more than one kernel, each result compared with
// naive loops.

// RUN: linattn-run %S/../Families/linear_attention.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/gla.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/mamba2.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/mlstm.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/gated_delta_rule.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/kda.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/rwkv7.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/gsa.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s
// RUN: linattn-run %S/../Families/selective_scan.mlir --target=nvvm-emulated --open-size=20 --compare=reference | FileCheck %s

// CHECK: kernel {{.*}}: no findings
// CHECK: result 0: agrees with the reference
