#!/usr/bin/env bash
# Regenerates docs/generated from TableGen and from the table of families; with
# --check only compares.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

pages=(LinAttnDialect LinAttnPasses LinAttnConversionPasses LinAttnEmulatorPasses LinAttnGPUPasses LinAttnGradientPasses Families)
generated="$root/docs/generated"

[ -f "$build/build.ninja" ] || configure
ninja -C "$build" mlir-doc linattn-families >/dev/null
"$build/bin/linattn-families" --docs >"$build/docs/generated/Families.md"
if [ "${1:-}" = --check ]; then
  status=0
  for page in "${pages[@]}"; do
    diff -u "$generated/$page.md" "$build/docs/generated/$page.md" || status=1
  done
  [ "$status" -eq 0 ] || echo "docs/generated is out of date: run tools/docs.sh"
  exit "$status"
fi
mkdir -p "$generated"
for page in "${pages[@]}"; do
  cp "$build/docs/generated/$page.md" "$generated/$page.md"
  echo "docs/generated/$page.md"
done
