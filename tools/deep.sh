#!/usr/bin/env bash
# Runs the checks that take hours, one after another, and says which of them fail.
#   tools/deep.sh [--minutes N] [CHECK...]
# Checks, all if none is named: asan, tsan, libfuzzer, tidy, fuzz, steps. Each fuzz
# target runs for N minutes, 10 if not given, by a random seed, which is printed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

minutes=10 checks=()
while [ $# -gt 0 ]; do
  case $1 in
  --minutes)
    [ $# -gt 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
    minutes=$2
    shift
    ;;
  asan | tsan | libfuzzer | tidy | fuzz | steps) checks+=("$1") ;;
  *)
    sed -n '2,5s/^# //p' "$0" >&2
    exit 2
    ;;
  esac
  shift
done
[ "${#checks[@]}" -gt 0 ] || checks=(asan tsan libfuzzer tidy fuzz steps)

export PYTHONPATH="$build/python:$root/python"
seed=${LINATTN_TEST_SEED:-$RANDOM$RANDOM}
seconds=$((minutes * 60))

check() {
  case $1 in
  asan) "$root/tools/sanitize.sh" asan Runtime Runner Reference Emulator Compiler ;;
  tsan) "$root/tools/sanitize.sh" tsan Runtime Runner Reference Emulator Compiler ;;
  libfuzzer) "$root/tools/sanitize.sh" fuzz "$seconds" ;;
  tidy) (cd "$root" && git ls-files 'lib/*.cpp' 'runtime/*.cpp' | xargs tools/tidy.sh) ;;
  fuzz) LINATTN_FUZZ_DRAWS=100 "$venv/bin/python" "$root/test/Fuzz/fuzz.py" --seed "$seed" --seconds "$seconds" ;;
  steps) "$venv/bin/python" "$root/test/Fuzz/pool.py" --steps "${LINATTN_STEPS:-10000000}" --seed "$seed" ;;
  esac
}

say "seed $seed"
failed=()
for name in "${checks[@]}"; do
  say "$name"
  check "$name" || failed+=("$name")
done
[ "${#failed[@]}" -eq 0 ] || { say "failed: ${failed[*]}"; exit 1; }
say "all passed: ${checks[*]}"
