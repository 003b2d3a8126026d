#!/bin/sh
# run_parity.sh RUNNER SOURCE_DIR [FLAG...]: runs all case files of $BINADE_SHARED (SOURCE_DIR/../shared) in
# every dtype. Exit status 77 where there are none.
set -eu
runner=$1
shared=${BINADE_SHARED:-$2/../shared}
shift 2
if [ ! -d "$shared/parity/cases" ]; then
  echo "skipped: no ../shared (set BINADE_SHARED to the folder that holds parity/cases)"
  exit 77
fi
exec "$runner" "$@" "$shared"/parity/cases/*.safetensors
