#!/usr/bin/env bash
# Compiles the GPU's kernels here, then checks and times them on a machine with a GPU.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
  cat <<'EOF'
usage: tools/gpu/acceptance.sh [--build-only | --run-only | --report-only | --smoke-only] [options]
  --build-only       compile into PACKAGE; needs the build, no GPU
  --run-only         check and time PACKAGE; needs Python, PyTorch and a GPU, no network
  --report-only      results.json of an earlier run to Markdown and plots in REPORT
  --smoke-only       public calls alone, where linattn can be imported; with --emulated without a GPU
  --package DIR      (default: build/gpu-acceptance)
  --out DIR          where the run writes its results (default: PACKAGE/results)
  --report DIR       where the report goes (default: docs/benchmarks/gpu)
  --chip NAMES       what to compile for (default: sm_90)
  --seconds N        time of the run (default: 500)
  --jobs N           compilations at a time (default: one per core)
  --no-cubin         PTX alone, which the driver compiles
  --quick            a few small kernels, to try the script
  --dry-run          host memory and the driver that LINATTN_CUDA_DRIVER names; nothing is timed
Without a stage: all three, here.
EOF
}

stages="build run report" package="$root/build/gpu-acceptance" out="" report="$root/docs/benchmarks/gpu"
build_options=() run_options=() smoke_options=()
while [ $# -gt 0 ]; do
  case $1 in
  --build-only | --run-only | --report-only | --smoke-only) stages=${1#--} stages=${stages%-only} ;;
  --package) package=$2; shift ;;
  --out) out=$2; shift ;;
  --report) report=$2; shift ;;
  --chip) build_options+=(--chip "$2"); shift ;;
  --jobs) build_options+=(--jobs "$2"); shift ;;
  --seconds) run_options+=(--seconds "$2"); shift ;;
  --no-cubin | --quick) build_options+=("$1") ;;
  --emulated) smoke_options+=("$1") ;;
  --dry-run) run_options+=("$1") ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
  esac
  shift
done
out=${out:-$package/results}
# The interpreter that has PyTorch, unless one is named.
python=${PYTHON:-python3}
status=0

for stage in $stages; do
  case $stage in
  build)
    PYTHONPATH="$root/tools/gpu" "$python" -m acceptance.build "$package" --bin "$root/build/bin" \
      --runner "$root/build/python/linattn_runner" "${build_options[@]}"
    ;;
  run)
    # The package's own scripts fit its kernels.
    PYTHONPATH="$package${PYTHONPATH:+:$PYTHONPATH}" "$python" -m acceptance "$package" --out "$out" "${run_options[@]}" || status=$?
    ;;
  smoke)
    PYTHONPATH="$root/tools/gpu${PYTHONPATH:+:$PYTHONPATH}" "$python" -m acceptance.smoke "${smoke_options[@]}" || status=$?
    ;;
  report)
    PYTHONPATH="$root/tools/gpu" "$python" -m acceptance.report "$out/results.json" "$report"
    ;;
  esac
done
exit $status
