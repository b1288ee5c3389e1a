#!/usr/bin/env bash
# Runs unit tests and fuzz targets under sanitizers.
#   tools/sanitize.sh asan|tsan [SUITE...]     Runtime, Runner and Reference if none
#   tools/sanitize.sh fuzz [SECONDS] [TARGET...]   libFuzzer, a minute for each target
# Bundles come from the default build's linattn-compile; other suites, such as
# Compiler or Emulator, and fuzz targets build the compiler under the sanitizer, too.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-} in
asan | tsan) preset=$1 ;;
fuzz) preset=asan ;;
*)
  sed -n '2,6s/^# //p' "$0" >&2
  exit 2
  ;;
esac
mode=$1
shift

compile linattn-compile
build="$root/build-$preset"
options=("-DLINATTN_COMPILE_PROGRAM=$root/build/bin/linattn-compile"
  "-DPython_EXECUTABLE=$venv/bin/python" "-DPython3_EXECUTABLE=$venv/bin/python")
say "configuring $build"
(cd "$root" && quietly "$build/logs/configure.log" cmake --preset "$preset" "${options[@]}")

# LLVM itself is not built with the sanitizer: its containers, and memory that an
# allocator in its headers marks and one in its library does not, look wrong.
export ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}
export TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:allocator_may_return_null=1:${TSAN_OPTIONS:-}

# The thread sanitizer takes threads that a forked child starts for those of its
# parent, and ends the child. Its allocator is one for the runner and the driver
# of tests, which a test of failing allocations keeps apart.
tests="*"
[ "$preset" != tsan ] || tests="-*Fork*:*EveryAllocationOfTheRunner"

run_suites() {
  [ $# -gt 0 ] || set -- Runtime Runner Reference
  local targets=("${@/%/Tests}") target
  targets=("${targets[@]/#/LinAttn}")
  compile "${targets[@]}"
  for target in "${targets[@]}"; do
    say "$target under $preset"
    "$build/test/Unit/$target" --gtest_brief=1 "--gtest_filter=$tests"
  done
}

# New inputs and findings go to the folder of the build.
run_fuzzers() {
  local seconds=${1:-60} target folder dictionary
  [ $# -eq 0 ] || shift
  [ $# -gt 0 ] || set -- npy bundle cache module scan onnx
  compile "${@/#/linattn-fuzz-}"
  for target in "$@"; do
    say "$target for $seconds seconds"
    folder="$build/fuzz/$target"
    dictionary="$root/test/Fuzz/dictionaries/$target.dict"
    mkdir -p "$folder"
    "$build/bin/linattn-fuzz-$target" "-max_total_time=$seconds" -timeout=60 -rss_limit_mb=4096 \
      -print_final_stats=1 "-artifact_prefix=$build/fuzz/$target-" \
      $([ ! -f "$dictionary" ] || echo "-dict=$dictionary") "$folder" "$root/test/Fuzz/corpus/$target"
  done
}

case $mode in
fuzz) run_fuzzers "$@" ;;
*) run_suites "$@" ;;
esac
