#!/usr/bin/env bash
# Regenerates docs/generated from TableGen, from the tables of families and of update rules, from what calls
# launch on a GPU and from the machine code of its kernels, and the stub of the functions that the table makes; with
# --check only compares.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

pages=(LinAttnDialect LinAttnEntryPasses LinAttnPasses LinAttnConversionPasses LinAttnEmulatorPasses LinAttnGPUPasses LinAttnGradientPasses Families Rules)

[ -f "$build/build.ninja" ] || configure
ninja -C "$build" mlir-doc linattn-families linattn-opt linattn-translate _linattn linattn_fake_cuda >/dev/null
made="$build/docs/generated"
"$build/bin/linattn-families" --docs >"$made/Families.md"
PYTHONPATH="$build/python" "$venv/bin/python" "$root/tools/stubs.py" >"$made/_named.pyi"
PYTHONPATH="$build/python" "$venv/bin/python" "$root/tools/rules.py" >"$made/Rules.md"

PYTHONPATH="$build/python" "$venv/bin/python" "$root/tools/gpu/launches.py" >"$made/Launches.md" 2>/dev/null

# Machine code differs from one ptxas to the next: only the version that made the page is compared.
ptxas=$(sed -n 's/^LINATTN_PTXAS:FILEPATH=//p' "$build/CMakeCache.txt")
cp docs/generated/Predictions.md "$made/Predictions.md"
if [ -x "$ptxas" ] && { [ "${1:-}" != --check ] || grep -qF "\`$("$ptxas" --version | grep -o 'release [0-9.]*')\`" docs/generated/Predictions.md; }; then
  "$venv/bin/python" "$root/tools/gpu/predictions.py" "$build/bin/linattn-opt" "$build/bin/linattn-translate" "$ptxas" >"$made/Predictions.md"
fi

# Made file, kept file.
files=("$made/_named.pyi" python/linattn/_families/_named.pyi "$made/Launches.md" docs/generated/Launches.md
  "$made/Predictions.md" docs/generated/Predictions.md)
for page in "${pages[@]}"; do
  files+=("$made/$page.md" "docs/generated/$page.md")
done

status=0
mkdir -p "$root/docs/generated"
for ((i = 0; i < ${#files[@]}; i += 2)); do
  if [ "${1:-}" = --check ]; then
    diff -u "$root/${files[i + 1]}" "${files[i]}" || status=1
  else
    cp "${files[i]}" "$root/${files[i + 1]}"
    echo "${files[i + 1]}"
  fi
done
[ "$status" -eq 0 ] || echo "generated files are out of date: run tools/docs.sh"
exit "$status"
