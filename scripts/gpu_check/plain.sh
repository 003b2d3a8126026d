#!/bin/sh
# plain.sh HERE [CALL...] [--out DIR] [--device D] [--build DIR]: the checks of gpu-check that need no Python,
# one log each. scripts/gpu-check starts it where there is no python3.
here=$1
shift
out=gpu-check-out device=cuda build="" calls=""
while [ $# -gt 0 ]; do
  case $1 in
    right | fast | why) calls="$calls $1" ;;
    --out | --device | --build)
      [ $# -gt 1 ] || { echo "gpu-check: $1 needs a value" >&2; exit 2; }
      case $1 in
        --out) out=$2 ;;
        --device) device=$2 ;;
        --build) build=$2 ;;
      esac
      shift
      ;;
    *) echo "gpu-check: got '$1'; without python3 only right, fast, why, --out, --device and --build" >&2; exit 2 ;;
  esac
  shift
done
calls=${calls:-right fast why}
if [ -z "$build" ]; then
  build=$here
  [ -e "$here/gpu-programs" ] || build=$here/../build/$([ "$device" = emulated ] && echo emulated || echo cuda-all)
fi
program() { # NAME: its command, in $command
  if [ -x "$build/gpu-programs" ]; then
    command="$build/gpu-programs $1"
  else
    command=$build/bin/$1
  fi
}
export BINADE_TEST_DEVICE="$device" BINADE_TEST_MEMORY=device
small="" samples=15 steps="--steps 4"
[ "$device" = emulated ] && small=--small samples=1 steps="--steps 1 --warmup 1 --samples 1"
jobs=$(nproc 2>/dev/null || echo 1)
[ "$jobs" -le 8 ] || jobs=8
passed=0 failed=0 skipped=0

report() { # STATUS NAME TEXT
  printf '%-8s %-13s %s\n' "$1" "$2" "$3" | tee -a "$out/gpu-check.txt"
  case $1 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    *) skipped=$((skipped + 1)) ;;
  esac
}
limited() { # SECONDS COMMAND...
  seconds=$1
  shift
  if command -v timeout >/dev/null; then timeout "$seconds" "$@"; else "$@"; fi
}
check() { # NAME SECONDS COMMAND...: one log, one line
  name=$1 seconds=$2
  shift 2
  if ! command -v "$1" >/dev/null; then
    report skipped "$name" "$1 is not there"
    return
  fi
  limited "$seconds" "$@" >"$out/$name.log" 2>&1
  status=$?
  last=$(tail -n 1 "$out/$name.log")
  case $status in
    0) report passed "$name" "$last" ;;
    124) report failed "$name" "stopped after $seconds s: $last" ;;
    *) report failed "$name" "exit $status: $last" ;;
  esac
}
tests() { # GROUP SECONDS: the shards of the bundle at the same time
  if [ ! -x "$build/gpu-programs" ]; then
    report skipped "$1" "tests of $1 run from a bundle only, without python3"
    return
  fi
  pids="" i=0 status=0
  while [ $i -lt "$jobs" ]; do
    GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$i limited "$2" "$build/gpu-programs" tests "$1" --gtest_brief=1 \
      >"$out/$1-$i.log" 2>&1 &
    pids="$pids $!" i=$((i + 1))
  done
  for pid in $pids; do wait "$pid" || status=1; done
  if [ $status = 0 ]; then
    report passed "$1" "$(cat "$out/$1"-*.log | grep -c '^\[  PASSED') shards"
  else
    report failed "$1" "$(cat "$out/$1"-*.log | grep '^\[  FAILED' | head -n 3 | tr '\n' ' ')"
  fi
}

program binade
$command doctor >/dev/null 2>&1 || {
  echo "gpu-check: failed: $command doctor does not run: $($command doctor 2>&1 | tail -n 2)"
  exit 1
}
if ! $command doctor | grep -q "^${device%%:*}.*compute capability"; then
  echo "gpu-check: skipped: no device $device: $($command doctor | sed -n 's/^mode *//p')"
  exit 77
fi
mkdir -p "$out" || exit 1
: >"$out/gpu-check.txt"
echo "no python3 here: no comparison with PyTorch, no parity cases, no NCCL ranks, no profile, no JSON of the stages and
no tables; logs and lines alone" | tee -a "$out/gpu-check.txt"

for call in $calls; do
  case $call in
    right)
      # shellcheck disable=SC2086
      { program binade && check doctor 60 sh -c "$command doctor | grep 'compute capability'"
        program cuda_conformance && check conformance 120 $command; }
      tests kernels 150
      tests op_table 120
      tests optim 60
      tests cuda 60
      ;;
    fast)
      program kernel_bench
      # shellcheck disable=SC2086
      check kernel-speed 240 $command --cases "$here/gpu_check/kernels.txt" $small --dtype f16 --samples $samples \
        --device "$device"
      program step_bench
      for model in gpt2 resnet50; do
        sizes="--batch 8 --tokens 1024"
        [ $model = gpt2 ] || sizes="--batch 64"
        if [ -n "$small" ]; then
          sizes="--batch 2 --tokens 16 --layers 1 --width 32 --heads 2 --vocabulary 100"
          [ $model = gpt2 ] || sizes="--batch 2 --image 32 --blocks 1,1,1,1 --width 4 --classes 10"
        fi
        for precision in fp16 bf16 fp32; do
          for graph in "" --graph; do
            # shellcheck disable=SC2086
            check "step-$model-$precision$graph" 60 $command --model $model --precision $precision $graph $sizes \
              --device "$device" $steps --json
          done
        done
      done
      ;;
    why)
      program gpu_ceilings
      # shellcheck disable=SC2086
      check ceilings 60 $command --json
      sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
      for tool in memcheck racecheck synccheck; do
        if [ -z "$sanitizer" ]; then
          report skipped $tool "no compute-sanitizer here"
        else
          program cuda_conformance
          # shellcheck disable=SC2086
          check $tool 150 "$sanitizer" --tool $tool --error-exitcode 9 $command
        fi
      done
      ;;
  esac
done
tar -czf "$out.tar.gz" "$out" 2>/dev/null && echo "$out.tar.gz: $(wc -c <"$out.tar.gz") bytes"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
