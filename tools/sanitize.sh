#!/usr/bin/env bash
# Runs unit tests under sanitizers.
#   tools/sanitize.sh asan|tsan [SUITE...]     Runtime, Runner and Reference if none
# Bundles come from the default build's linattn-compile; other suites, such as
# Compiler or Emulator, build the compiler under the sanitizer, too.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in
asan | tsan) preset=$1 ;;
*)
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
  ;;
esac
shift
[ $# -gt 0 ] || set -- Runtime Runner Reference

compile linattn-compile
build="$root/build-$preset"
options=("-DLINATTN_COMPILE_PROGRAM=$root/build/bin/linattn-compile"
  "-DPython_EXECUTABLE=$venv/bin/python" "-DPython3_EXECUTABLE=$venv/bin/python")
say "configuring $build"
(cd "$root" && quietly "$build/logs/configure.log" cmake --preset "$preset" "${options[@]}")

# LLVM itself is not built with the sanitizer: what it allocates and passes on,
# containers for instance, looks wrong at the border.
export ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}
export TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:${TSAN_OPTIONS:-}
targets=("${@/%/Tests}")
targets=("${targets[@]/#/LinAttn}")
compile "${targets[@]}"
for target in "${targets[@]}"; do
  say "$target under $preset"
  "$build/test/Unit/$target" --gtest_brief=1
done
