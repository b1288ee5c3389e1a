#!/usr/bin/env bash
# Makes the wheel of linattn-runner for AArch64 on an x86-64 machine.
#   tools/wheel/aarch64.sh [FOLDER]     dist/ if none
#   tools/wheel/aarch64.sh --python     a Python for that machine, which tests it in qemu
# clang compiles the runner with Debian's C and C++ libraries for that machine,
# which are unpacked below build/aarch64 and not installed; linattn-compile makes
# the bundles, for NEON.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/unpack.sh"

dist=${1:-$root/dist}
cross="$build/aarch64"
sysroot="$cross/sysroot"
libraries="$sysroot/usr/aarch64-linux-gnu/lib"
headers="$sysroot/usr/aarch64-linux-gnu/include"

unpack_libraries() {
  unpack "$sysroot" libpthreadpool0:arm64 libpthreadpool-dev:arm64 libc6-arm64-cross libc6-dev-arm64-cross \
    libstdc++-12-dev-arm64-cross libgcc-12-dev-arm64-cross libgcc-s1-arm64-cross linux-libc-dev-arm64-cross
  mkdir -p "$cross/include"
  ln -sfn /usr/include/nlohmann "$cross/include/nlohmann"
}

# For the test: qemu-aarch64 -L build/aarch64/python build/aarch64/python/usr/bin/python3.11
unpack_python() {
  local python="$cross/python"
  unpack "$python" python3.11-minimal:arm64 libpython3.11-minimal:arm64 libpython3.11-stdlib:arm64 libc6:arm64 \
    libgcc-s1:arm64 libstdc++6:arm64 zlib1g:arm64 libexpat1:arm64 libffi8:arm64 libbz2-1.0:arm64 liblzma5:arm64 \
    libuuid1:arm64 libcrypt1:arm64
  [ -e "$python/site/numpy" ] || "$venv/bin/python" -m pip install --quiet --no-deps --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 --python-version 3.11 --target "$python/site" numpy
}

# The sources of the targets LinAttnRuntime and LinAttnRunner, by one command.
compile_runner() {
  say "compiling the runner for AArch64"
  local sources=() name
  for name in Bundle Call CpuKernel CudaCall CudaKernel DLPack Driver Interrupt Operands Parallel PoolLoader Program Runner; do
    sources+=("$root/runtime/$name.cpp")
  done
  clang++-22 --target=aarch64-linux-gnu "--sysroot=$sysroot" \
    "--gcc-install-dir=$sysroot/usr/lib/gcc-cross/aarch64-linux-gnu/12" \
    -isystem "$headers/c++/12" -isystem "$headers/c++/12/aarch64-linux-gnu" -isystem "$headers" \
    -isystem "$sysroot/usr/include" -isystem "$cross/include" -I "$root/include" -I "$build/include" \
    -std=c++17 -O3 -DNDEBUG -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections -fdata-sections \
    -shared -fuse-ld=lld-22 -L "$libraries" -Wl,-soname,liblinattn_runner.so -Wl,--as-needed -Wl,--gc-sections \
    -Wl,-z,defs -Wl,-z,nodelete "-Wl,--version-script=$root/runtime/Runner.map" -static-libstdc++ \
    "${sources[@]}" -ldl -lpthread -o "$cross/liblinattn_runner.so"
}

compile_kernels() {
  say "compiling bundles for NEON"
  local bundle name
  rm -rf "$cross/kernels"
  mkdir -p "$cross/kernels"
  for bundle in "$build"/python/linattn_runner/kernels/*.lab; do
    name=$(basename "$bundle" .lab)
    "$build/bin/linattn-compile" "$build/runtime/onnxruntime/$name.mlir" --target=cpu --chip=aarch64 --trusted \
      -o "$cross/kernels/$name.lab"
  done
}

"$root/tools/setup.sh"
if [ "${1:-}" = --python ]; then
  unpack_python
  exit
fi
[ -e "$build/CMakeCache.txt" ] || configure
compile linattn-compile linattn_runner_kernels
unpack_libraries
compile_runner
compile_kernels
PATH="$venv/bin:$PATH" "$venv/bin/python" "$root/tools/wheel/make.py" --build "$build" --machine aarch64 "$dist"
