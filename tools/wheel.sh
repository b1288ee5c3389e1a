#!/usr/bin/env bash
# Makes the wheels of linattn, linattn-runner and linattn-onnxruntime from the
# default build.
#   tools/wheel.sh [FOLDER [PYTHON...]]     dist/ if none
# linattn holds LLVM and MLIR and needs neither a compiler nor packages of the
# system; it is made for the build's own Python and for the others that are
# named, which have headers and need nothing installed. The other two are for
# any Python and hold no LLVM.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/tools/setup.sh"
configure
dist=${1:-$root/dist}
pythons=""
for python in "${@:2}"; do
  path=$(command -v "$python") || {
    echo "error: $python does not exist" >&2
    exit 1
  }
  pythons="$pythons;$path"
done
quietly "$build/logs/configure.log" cmake -B "$build" "-DLINATTN_WHEEL_PYTHONS=${pythons#;}"
compile linattn_wheel_modules linattn_runner linattn_runner_kernels linattn_onnxruntime
PATH="$venv/bin:$PATH" "$venv/bin/python" "$root/tools/wheel/make.py" --build "$build" "$dist"
