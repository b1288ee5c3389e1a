#!/usr/bin/env bash
# Builds what the demo needs, runs it and says where its pictures are. Arguments
# go to the demo; --help lists them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/tools/setup.sh"
configure
compile
started=$(mktemp)
trap 'rm -f "$started"' EXIT

cd "$root"
PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}" \
  "$venv/bin/python" tools/demo/demo.py "$@"

pictures=$(find "$root/demo-output" -newer "$started" \
  \( -name '*.png' -o -name '*.svg' \) 2>/dev/null | sort || true)
[ -z "$pictures" ] || printf 'Pictures:\n%s\n' "$pictures"
