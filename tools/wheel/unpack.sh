# Sourced by the scripts beside it, after common.sh.

# unpack FOLDER PACKAGE...: Debian's packages, unpacked and not
# installed, once.
unpack() {
  local folder=$1 scratch apt
  [ ! -e "$folder/complete" ] || return 0
  say "unpacking Debian's packages to $folder"
  # An index of packages of its own: the system's keeps its architectures.
  scratch=$(mktemp -d)
  mkdir -p "$scratch"/{lists/partial,cache/archives/partial,packages} "$folder"
  touch "$scratch/status"
  apt=(apt-get -o "Dir::State=$scratch" -o "Dir::State::status=$scratch/status" -o "Dir::Cache=$scratch/cache"
    -o APT::Architectures::=arm64 -o APT::Architectures::=amd64 -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  (cd "$scratch/packages" && quietly "$build/logs/unpack.log" "${apt[@]}" update &&
    quietly "$build/logs/unpack.log" "${apt[@]}" download "${@:2}")
  for package in "$scratch"/packages/*.deb; do
    dpkg-deb -x "$package" "$folder"
  done
  rm -r "$scratch"
  touch "$folder/complete"
}
