#!/usr/bin/env bash
# Compiles the page's memory and puts the page together.
#   examples/browser/build.sh FOLDER [LINATTN-COMPILE [CLANG]]
#   python3 -m http.server -d FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?"usage: build.sh FOLDER [LINATTN-COMPILE [CLANG]]"}
compile=${2:-$here/../../build/bin/linattn-compile}
clang=${3:-clang-22}

mkdir -p "$folder"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
for entry in add delta; do
  for part in obj:o header:h; do
    "$compile" "$here/memory.mlir" --entry=$entry --target=wasm32 --emit="${part%:*}" -o "$objects/$entry.${part#*:}"
  done
done
"$clang" --target=wasm32 -msimd128 -mbulk-memory -std=c11 -O2 -ffreestanding -nostdlib -Wl,--no-entry \
  -I"$objects" "$here/memory.c" "$objects"/{add,delta}.o -o "$folder/memory.wasm"
cp "$here"/{index.html,page.js,memory.js} "$folder"
