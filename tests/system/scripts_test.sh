#!/usr/bin/env bash
# The scripts reject what they do not know, and get-data refuses a file whose sum differs and leaves none.
set -euo pipefail
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for script in "$scripts"/*; do
  [ -f "$script" ] || continue  # a folder of a script's parts
  case $script in
    *.gdb) continue ;;  # sourced in gdb
  esac
  case $(head -n 1 "$script") in
    *bash) bash -n "$script" ;;
  esac
  [ -x "$script" ] || { echo "$script is not executable" && exit 1; }
done

expect() { # TEXT COMMAND...: the command fails and its output holds the text
  local text=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then
    echo "succeeded, expected a failure: $*" && exit 1
  fi
  [[ $output == *"$text"* ]] || { echo "$* printed '$output', expected '$text'" && exit 1; }
}
expect "expected build, test, bench or ci" "$scripts/setup" nonsense
expect "expected --all" "$scripts/test" --nonsense
expect "expected mnist" "$scripts/get-data" nonsense
expect "got 0 arguments" "$scripts/get-data"
expect "got 3 arguments" "$scripts/get-data" mnist a b

if command -v curl >/dev/null; then
  mkdir "$work/mirror"
  echo "not the data" >"$work/mirror/train-images-idx3-ubyte.gz"
  sed 's|https\?://[^ "]*||g' "$scripts/get-data" >"$work/get-data"
  BINADE_MIRROR="file://$work/mirror" expect "refused, its SHA-256 is not" \
    bash "$work/get-data" mnist "$work/out"
  [ -z "$(ls -A "$work/out")" ] || { echo "a refused download left files" && exit 1; }
fi
# A fresh clone has no build folder.
mkdir -p "$work/clone/.ci" "$work/clone/scripts"
cp "$scripts/../.ci/fuzz" "$work/clone/.ci"
printf '#!/bin/sh\n' | tee "$work/clone/scripts/setup" >"$work/cmake"
echo 'echo "cmake was called" && exit 1' >>"$work/cmake"
chmod +x "$work/clone/scripts/setup" "$work/cmake"
PATH=$work:$PATH expect "cmake was called" "$work/clone/.ci/fuzz" 1
echo "scripts: ok"
