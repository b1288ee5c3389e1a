#!/usr/bin/env bash
# Sets up, builds and runs every test. The last line sums them all:
#   N passed, N failed[, N skipped]
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'EOF'
usage: tools/test.sh [--unit] [--lit] [--python] [--checks] [--filter TEXT]
  --unit, --lit, --python, --checks   only these suites (default: all)
  --filter TEXT                       only the tests whose name holds TEXT
EOF
}

suites=() filter=""
while [ $# -gt 0 ]; do
  case $1 in
  --unit | --lit | --python | --checks) suites+=("${1#--}") ;;
  --filter)
    [ $# -gt 1 ] || { usage >&2; exit 2; }
    filter=$2
    shift
    ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
  esac
  shift
done
[ "${#suites[@]}" -gt 0 ] || suites=(checks unit lit python)

# One line per step that ran: name, exit code, result file (or "-").
results="$build/test-results"
rm -rf "$results"
mkdir -p "$results"
steps="$results/steps"
: >"$steps"

record() { printf '%s\t%s\t%s\n' "$@" >>"$steps"; }

# However the script ends, the count comes last.
finish() {
  local status=$? summary
  trap - EXIT
  [ -s "$steps" ] || record "${current:-tests}" "$status" -
  local python="$venv/bin/python"
  [ -x "$python" ] || python=python3
  if summary=$("$python" "$root/tools/summarize_tests.py" "$steps"); then
    status=0
  else
    status=1
  fi
  printf '%s\n' "${summary:-0 passed, 1 failed}"
  exit "$status"
}
trap finish EXIT
trap 'record "${current:-tests} (interrupted)" 130 -; exit 130' INT TERM

# A step the others need: without it there is nothing to run.
require() {
  current=$1
  shift
  "$@" || {
    record "$current" "$?" -
    exit 1
  }
}

# suite NAME RESULT COMMAND...: a hung test must not hang the caller.
suite() {
  current=$1
  local result=$2 status=0
  shift 2
  timeout -k 10 "${LINATTN_SUITE_TIMEOUT:-3000}" "$@" || status=$?
  record "$current" "$status" "$result"
}

# Every core has a process of tests, so that idle threads of kernels must not
# spin: those of more threads than cores do not.
cores=$(nproc)
export LINATTN_NUM_THREADS="${LINATTN_NUM_THREADS:-$((cores + 1))}"

run_unit() {
  local tests="$build/test/Unit/tests.txt" binary name i started=0
  say "unit tests"
  # As many processes as cores: the next one starts as soon as one ends.
  while IFS= read -r binary; do
    name=$(basename "$binary")
    echo "    $name"
    for ((i = 0; i < cores; i++)); do
      [ "$((started++))" -lt "$cores" ] || wait -n
      GTEST_BRIEF=1 GTEST_TOTAL_SHARDS=$cores GTEST_SHARD_INDEX=$i \
        suite "$name" "$results/$name-$i.json" "$binary" \
        "--gtest_output=json:$results/$name-$i.json" \
        "--gtest_filter=*$filter*" &
    done
  done <"$tests"
  wait
}

run_lit() {
  say "lit tests"
  local options=(-v "--xunit-xml-output=$results/lit.xml")
  [ -z "$filter" ] || options+=("--filter=$filter" --allow-empty-runs)
  suite lit "$results/lit.xml" "$venv/bin/lit" "${options[@]}" "$build/test"
}

run_python() {
  say "Python tests"
  if [ -z "$(find "$root/test/Python" -name 'test_*.py' 2>/dev/null)" ]; then
    echo "    none"
    return
  fi
  # A worker for every core.
  local options=(-q -p no:cacheprovider -n auto --dist worksteal
    "--junitxml=$results/python.xml")
  [ -z "$filter" ] || options+=(-k "$filter")
  PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}" \
    suite python "$results/python.xml" \
    "$venv/bin/python" -m pytest "${options[@]}" "$root/test/Python"
}

run_checks() {
  [ -z "$filter" ] || return 0
  say "generated documentation is up to date, formatting"
  suite "generated documentation" check "$root/tools/docs.sh" --check &
  suite "formatting" check "$root/tools/format.sh" --check &
  wait
}

require setup "$root/tools/setup.sh" --build
require configure configure
# The Python packages of the tests come while the compiler runs.
quietly "$build/logs/setup.log" "$root/tools/setup.sh" &
setup=$!
# Only the unit tests need their binaries, and they need little else.
targets=()
for name in "${suites[@]}"; do
  [ "$name" = unit ] && targets+=(linattn-unit-tests) || targets+=(all)
done
compiled=0
compile "${targets[@]}" || compiled=$?
require setup wait "$setup"
require build [ "$compiled" -eq 0 ]
# The checks keep one core busy at most: the other suites run beside them.
for name in "${suites[@]}"; do
  if [ "$name" = checks ]; then
    run_checks &
  else
    "run_$name"
  fi
done
wait
