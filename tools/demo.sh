#!/usr/bin/env bash
# Builds what the demo needs and runs it; it says at the end where its pictures
# are. Arguments go to the demo; --help lists them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$root/tools/setup.sh"
configure
compile

PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}" \
  exec "$venv/bin/python" "$root/tools/demo/demo.py" "$@"
