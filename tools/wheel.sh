#!/usr/bin/env bash
# Makes the wheels of linattn and linattn-runner from the default build.
#   tools/wheel.sh [FOLDER]     dist/ if none
# linattn holds LLVM and MLIR and needs neither a compiler nor packages of the
# system; linattn-runner launches bundles and holds no LLVM.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/tools/setup.sh"
configure
compile _linattn_static linattn_runner
PATH="$venv/bin:$PATH" "$venv/bin/python" "$root/tools/wheel/make.py" --build "$root/build" "${1:-$root/dist}"
