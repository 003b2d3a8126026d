#!/bin/sh
# drop_patch_entries.sh COMPILER ... -o OBJECT ...: compiles, and removes the compiler's list of functions with
# __launch_bounds__ (kernels/host/cuda_types.h), which linkers refuse where two objects share a template. A
# precompiled header (.gch) has no such list and is no object file.
"$@" || exit
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then
    case $2 in
      *.gch) exit 0 ;;
      *) exec objcopy --remove-section=__patchable_function_entries "$2" ;;
    esac
  fi
  shift
done
