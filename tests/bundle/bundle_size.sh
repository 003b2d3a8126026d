#!/bin/sh
# bundle_size.sh FOLDER: prints the size of a bundle, and fails above 40 MB, since it must be quick to copy.
# A bundle for the emulated device has no device code, so its size says nothing.
kilobytes=$(du -sk "$1" | cut -f 1)
echo "$1: $kilobytes kB"
[ "$kilobytes" -le 40960 ] || { echo "$1: expected at most 40960 kB" >&2; exit 1; }
