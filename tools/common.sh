# Sourced by the scripts beside it: where things are, and how a build is made.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/.venv"
build="$root/build"

# Bytecode of Python goes to the build folder. A process that finds none takes
# seconds to compile the modules of PyTorch, JAX and pytest.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$build/pycache"

say() { printf '==> %s\n' "$*"; }

# quietly LOG COMMAND...: shows the output only when the command fails.
quietly() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 60 "$log"
    printf '%s failed with exit code %s; the whole log is %s\n' \
      "$1" "$status" "$log"
  fi
  return "$status"
}

# The preset names compilers without paths. Naming them again for an existing
# build would make CMake configure from scratch, with defaults, if PATH has
# changed.
configure() {
  local preset=(--preset default "-DLINATTN_UNITY=${LINATTN_UNITY:-ON}")
  [ ! -f "$build/CMakeCache.txt" ] ||
    preset=(-B "$build" ${LINATTN_UNITY:+"-DLINATTN_UNITY=$LINATTN_UNITY"})
  say "configuring $build"
  (cd "$root" && quietly "$build/logs/configure.log" \
    cmake "${preset[@]}" \
    "-DPython_EXECUTABLE=$venv/bin/python" \
    "-DPython3_EXECUTABLE=$venv/bin/python")
}

# compile [TARGET...]
compile() {
  say "building ${*:-everything}"
  ninja -C "$build" "$@"
}
