#!/usr/bin/env bash
# Runs Python in a root folder with nothing but libc, Python and the wheels.
#   tools/wheel/clean.sh FOLDER WHEEL... -- ARGUMENT...
# Debian's packages are unpacked below build/clean and not installed: shell,
# compiler and LLVM are absent. FOLDER becomes the root. pip installs the wheels
# to /packages there, with NumPy from its index. Other packages that a program takes from
# the virtual environment of the project, such as PyTorch, lie in /site.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/unpack.sh"

folder=$1
wheels=()
shift
while [ "$1" != -- ]; do
  wheels+=("$1")
  shift
done
shift

packages=(python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 zlib1g libexpat1
  libffi8 libbz2-1.0 liblzma5 libuuid1 libcrypt1 libssl3 python3-pip-whl)
unpack "$build/clean" "${packages[@]}"
[ -e "$build/clean/wheels" ] || "$venv/bin/python" -m pip download --quiet --only-binary=:all: --python-version 3.11 \
  --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --no-deps --dest "$build/clean/wheels" numpy

mkdir -p "$folder"/{tmp,site,proc,dev}
cp -a "$build/clean/." "$folder"
cp "${wheels[@]}" "$folder/wheels"

# inside ARGUMENT...: Python with an environment of its own
inside() {
  unshare --map-root-user --mount bash -c '
    mount --bind "$1" "$2/site"
    for name in proc dev; do mount --rbind "/$name" "$2/$name"; done
    exec env -i HOME=/tmp PATH=/usr/bin /usr/sbin/chroot "$2" /usr/bin/python3.11 "${@:3}"' \
    inside "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" "$folder" "$@"
}
# pip runs from its own wheel.
inside -c '
import glob, sys
sys.path.insert(0, glob.glob("/usr/share/python-wheels/pip-*.whl")[0])
from pip._internal.cli.main import main
sys.exit(main(["install", "--quiet", "--root-user-action=ignore", "--no-index", "--find-links", "/wheels", "--target", "/packages", *glob.glob("/wheels/linattn*")]))'
inside "$@"
