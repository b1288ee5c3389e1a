#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy.
#   tools/tidy.sh [FILE...]     the .cpp files that the last commit changed if none
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$root"
if [ $# -eq 0 ]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d HEAD~1 -- '*.cpp')
  set -- "${files[@]}"
fi
[ $# -gt 0 ] || { say "no files"; exit 0; }
tidy=$(command -v clang-tidy-22 || command -v clang-tidy) || {
  echo "clang-tidy is not installed" >&2
  exit 2
}
configure
# The compile commands without the precompiled header, which is the compiler's own.
database="$build/tidy"
mkdir -p "$database"
ninja -C "$build" -t compdb |
  sed -E 's/-Xclang -include-pch -Xclang [^ ]+ //; s/-Winvalid-pch //; s,"command": "[^"]*/ccache ,"command": ",' >"$database/compile_commands.json"
"$tidy" -p "$database" --quiet --warnings-as-errors='*' "$@"
