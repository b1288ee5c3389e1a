#!/usr/bin/env bash
# Formats the C++ sources; with --check only names those that would change.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

# Sources that are new and not yet added count too.
sources=()
while IFS= read -r file; do
  [ ! -f "$file" ] || sources+=("$file")
done < <(git ls-files --cached --others --exclude-standard '*.h' '*.cpp')

if [ "${1:-}" = --check ]; then
  # The first diagnostic of each file is enough to find it.
  complaints=$(clang-format-22 --dry-run -Werror --ferror-limit=1 \
    "${sources[@]}" 2>&1 | grep ': error:' || true)
  [ -n "$complaints" ] || exit 0
  printf '%s\n' "$complaints"
  echo "run tools/format.sh"
  exit 1
fi
clang-format-22 -i "${sources[@]}"
