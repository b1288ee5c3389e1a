#!/usr/bin/env bash
# Installs what building and testing need: Debian packages, and .venv with the
# versions pinned in python/requirements-build.txt and requirements-dev.txt.
# Does nothing, quickly, when everything is there; needs the network only when
# something is missing. With --build, leaves out what only tests need.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  "cmake|configures the build"
  "ninja-build|runs the build"
  "ccache|keeps rebuilds short"
  "git|lists the project's files"
  "g++|C++ standard library, and the second compiler"
  "clang-22|compiler"
  "lld-22|linker"
  "clang-format-22|format check"
  "clang-tidy-22|lint"
  "libclang-rt-22-dev|sanitizers and libFuzzer"
  "llvm-22-dev|LLVM headers and library"
  "llvm-22-tools|FileCheck, not, split-file"
  "libmlir-22-dev|MLIR headers and library"
  "mlir-22-tools|mlir-tblgen, mlir-opt"
  "zlib1g-dev|a dependency LLVM's CMake files look for"
  "libzstd-dev|a dependency LLVM's CMake files look for"
  "libedit-dev|a dependency LLVM's CMake files look for"
  "libgtest-dev|unit tests"
  "libgmock-dev|unit tests"
  "libpthreadpool-dev|threads of the runtime"
  "nlohmann-json3-dev|manifests of the runner"
  "qemu-user|runs the tests' objects for other processors"
  "rustc|calls an object from another language"
  "chromium-headless-shell|pages as a browser shows them"
  "python3|tests, demo and the Python module"
  "python3-dev|the Python module"
  "python3-venv|creates .venv"
)

install_packages() {
  command -v dpkg-query >/dev/null || {
    echo "warning: not a Debian system; install yourself: ${packages[*]%%|*}" >&2
    return
  }
  local present missing=() reasons=() entry
  present=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' \
    "${packages[@]%%|*}" 2>/dev/null || true)
  for entry in "${packages[@]}"; do
    grep -qxF "${entry%%|*} installed" <<<"$present" && continue
    missing+=("${entry%%|*}")
    reasons+=("$entry")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0

  say "installing ${#missing[@]} Debian packages"
  printf '%s\n' "${reasons[@]}" | while IFS='|' read -r name why; do
    printf '      %-22s %s\n' "$name" "$why"
  done
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "error: run as root: apt-get install ${missing[*]}" >&2
      return 1
    }
    as_root=(sudo)
  fi
  # Another apt may be at work on a fresh machine: wait for its lock.
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update
  "${apt[@]}" install --no-install-recommends "${missing[@]}"
}

# Debian's interpreter matches python3-dev; any other recent one will do.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import ensurepip, sys, venv
sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      command -v "$candidate"
      return
    fi
  done
  echo "error: no Python 3.11 or newer with venv was found" >&2
  return 1
}

create_venv() {
  "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return
  local python
  python=$(find_python)
  "$python" -m venv --clear "$venv"
}

# install_requirements NAME: what python/requirements-NAME.txt lists.
install_requirements() {
  local list="requirements-$1.txt" requirements stamp wanted
  requirements="$root/python/$list"
  stamp="$venv/.$list"
  wanted=$(cksum <"$requirements")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] &&
    "$venv/bin/python" -c '' 2>/dev/null; then
    return
  fi
  say "installing Python packages into .venv, from python/$list"
  sed -n 's/^[a-z]/      &/p' "$requirements"
  create_venv
  # Python compiles a module when it first imports it: most never are.
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-input \
    --no-compile --progress-bar off -r "$requirements" |
    { grep -v '^Requirement already' || true; }
  echo "$wanted" >"$stamp"
}

case ${1:-} in
"" | --build) ;;
*)
  echo "usage: tools/setup.sh [--build]   (--build: only what building needs)" >&2
  exit 2
  ;;
esac
install_packages
install_requirements build
[ "${1:-}" = --build ] || install_requirements dev
