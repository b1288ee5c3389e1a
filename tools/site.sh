#!/usr/bin/env bash
# Builds the documentation as a site in build/site, and fails at a warning; with --serve shows it on this
# machine while pages change. Its packages come into an environment of their own, from
# python/requirements-site.txt.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

requirements="$root/python/requirements-site.txt"
site="$build/site-venv"
if ! cmp -s "$requirements" "$site/requirements.txt"; then
  say "installing what the site needs into $site"
  "$venv/bin/python" -m venv --clear "$site"
  "$site/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off -q -r "$requirements"
  cp "$requirements" "$site/requirements.txt"
fi

cd "$root"
export NO_MKDOCS_2_WARNING=1
case ${1:-} in
--serve) "$site/bin/mkdocs" serve ;;
"")
  "$site/bin/mkdocs" build --strict --quiet --site-dir "$build/site"
  echo "$build/site/index.html"
  ;;
*)
  echo "usage: tools/site.sh [--serve]" >&2
  exit 2
  ;;
esac
