#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy.
#   tools/tidy.sh [FILE...]     the .cpp files that the last commit changed if none
#   tools/tidy.sh --all         every file, in the batches that LINATTN_UNITY compiles
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$root"
all=
[ "${1:-}" != --all ] || { all=1; shift; }
if [ $# -eq 0 ] && [ -z "$all" ]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d HEAD~1 -- '*.cpp')
  [ "${#files[@]}" -gt 0 ] || { say "no files"; exit 0; }
  set -- "${files[@]}"
fi
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
if [ -n "$all" ]; then
  # ninja lists links and copies, too.
  mapfile -t files < <(sed -nE '/cmake_pch|[.]venv/d; s/^ *"file": "(.*\.(cpp|cxx))",?$/\1/p' \
    "$database/compile_commands.json" | sort -u)
  set -- "${files[@]}"
fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" \
  "$tidy" -p "$database" --quiet --warnings-as-errors='*'
