#!/usr/bin/env bash
# install_consumer.sh BUILD_DIR CMAKE CXX [PYTHON]: installs a built tree below a temporary prefix and uses it as a
# stranger would: the exported targets carry no flag that ties a program to a processor and name no path
# of the build; a program compiles with plain g++ -std=c++20, and builds and runs through find_package.
# So do the programs in consumer/, that of README.md and those of two pages of docs/ (tests/docs/programs.py).
set -euo pipefail
build=$1 cmake=$2 cxx=$3 python=${4:-python3}
consumer=$(cd "$(dirname "$0")/consumer" && pwd)
docs=$consumer/../../../docs
readme=$consumer/../../../README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "install_consumer: $*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || {
  tail -n 5 "$work/log" >&2
  fail "the installation failed; are all libraries built?"
}
targets=$(find "$work/prefix" -name 'BinadeTargets*.cmake')
[ -n "$targets" ] || fail "no BinadeTargets.cmake was installed"
if grep -nE -e '-m(arch|tune|avx|sse|fma|cpu)' $targets; then
  fail "an exported target carries a processor flag"
fi
if grep -n 'INTERFACE_INCLUDE_DIRECTORIES' $targets | grep -v '"${_IMPORT_PREFIX}/include"'; then
  fail "an exported target includes something beside its own headers"
fi
if grep -n 'INTERFACE_COMPILE_\(OPTIONS\|DEFINITIONS\)' $targets; then
  fail "an exported target hands on flags or definitions"
fi
if grep -rnF "$build" $targets; then
  fail "an exported target names the build directory"
fi
if find "$work/prefix/include" -name '*_internal.h' | grep .; then
  fail "internal headers were installed"
fi

"$cxx" -std=c++20 -Wall -Wextra -Werror -I"$work/prefix/include" -c "$consumer/main.cpp" \
  -o "$work/main.o"
mkdir "$work/consumer"
cp "$consumer"/* "$work/consumer"
# build_all SOURCES: builds all programs there below SOURCES-build.
build_all() {
  "$cmake" -S "$1" -B "$1-build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_CXX_FLAGS=-O0 >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && fail "find_package(Binade) failed in $1"; }
  "$cmake" --build "$1-build" --parallel 2 >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && fail "$1 did not build"; }
}
build_all "$work/consumer"
output=$("$work/consumer-build/consumer")
[ "$output" = "dx = 6" ] || fail "the consumer printed '$output', expected 'dx = 6'"
programs="any_forward layers copies files groups threads"
mkdir "$work/files"
for program in $programs; do
  "$work/consumer-build/$program" "$work/files" >"$work/log" 2>&1 || { cat "$work/log" >&2 && fail "$program failed"; }
done
# The kernel lab, which a build with device numerics does not have. binade kernel runs far from the build, and as
# a library in a user's test suite.
if [ -e "$work/prefix/share/binade/lab" ] && [ -x "$work/prefix/bin/binade" ]; then
  cp "$consumer"/../../lab/kernels/spmv* "$consumer/../../lab/wrong/r19_tail.cu" "$work/files"
  (cd "$work/files" && PATH=/usr/bin:/bin "$work/prefix/bin/binade" kernel spmv.cu --case spmv.json) >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && fail "binade kernel refused a right kernel"; }
  status=0
  (cd "$work/files" && PATH=/usr/bin:/bin "$work/prefix/bin/binade" kernel r19_tail.cu --case elementwise) >"$work/log" 2>&1 || status=$?
  [ $status = 1 ] && grep -q "UNSAFE  *r19_tail.cu:[0-9]*  out of bounds: reads x" "$work/log" ||
    { cat "$work/log" >&2 && fail "binade kernel did not find an access beyond an array: status $status"; }
  "$work/consumer-build/own_kernel" "$work/files" >"$work/log" 2>&1 || { cat "$work/log" >&2 && fail "own_kernel failed"; }
  size=$(du -sk "$work/prefix/share/binade/lab" | cut -f 1)
  [ "$size" -lt 10240 ] || fail "the lab takes $size KiB of the installation, more than 10 MiB"
fi

list=$("$python" -B "$consumer/../../docs/programs.py" "$readme" "$docs/first-model.md" \
  "$docs/coming-from-pytorch.md" --into "$work/docs" --cmake)
build_all "$work/docs"
cd "$work/files"  # a program may read what the one before it wrote
for program in $list; do
  "$work/docs-build/$(echo "$program" | tr /- __)" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && fail "the program $program of docs/ failed"; }
  [ "$program" != README/README ] || first=$(cat "$work/log")
done
[[ $first =~ ^accuracy:\ (9[0-9]|100)\.[0-9]%$ ]] ||
  fail "the first program of README.md printed '$first', expected an accuracy above 90%"
echo "installed, found, built and ran: $output; README.md: $first; $programs; docs:" $list
