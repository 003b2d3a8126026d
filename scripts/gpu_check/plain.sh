#!/bin/sh
# plain.sh HERE [CALL...] [--out DIR] [--device D] [--build DIR] [--seconds N]: the checks of gpu-check that need no
# Python, with one log each. scripts/gpu-check starts it if there is no python3.
here=$1
shift
out=gpu-check-out device=cuda build="" calls="" seconds_of_call=530
wrong() {
  echo "gpu-check: $*" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    right | fast | why) calls="$calls $1" ;;
    --out | --device | --build | --seconds)
      [ $# -gt 1 ] || wrong "$1 needs a value"
      case $1 in
        --out) out=$2 ;;
        --device) device=$2 ;;
        --build) build=$2 ;;
        --seconds) seconds_of_call=$2 ;;
      esac
      shift
      ;;
    *) wrong "got '$1'; without python3 only right, fast, why, --out, --device, --build and --seconds" ;;
  esac
  shift
done
case $device in
  cuda | cuda:[0-9] | cuda:[0-9][0-9] | emulated) ;;
  *) wrong "--device: got '$device', expected cuda, cuda:N or emulated" ;;
esac
case $seconds_of_call in
  '' | *[!0-9]* | 0) wrong "--seconds: got '$seconds_of_call', expected a positive whole number" ;;
esac
calls=${calls:-right fast why}
if [ -z "$build" ]; then
  build=$here
  [ -e "$here/gpu-programs" ] || build=$here/../build/$([ "$device" = emulated ] && echo emulated || echo cuda-all)
fi
# The command of a program is "$file" ${part:+"$part"}.
program() { # NAME
  if [ -x "$build/gpu-programs" ]; then
    file=$build/gpu-programs part=$1
  else
    file=$build/bin/$1 part=""
  fi
}
tool() { # NAME: its path. An empty GPU_CHECK_TOOLS hides all tools.
  if [ "${GPU_CHECK_TOOLS+set}" ]; then
    [ -z "$GPU_CHECK_TOOLS" ] || (PATH=$GPU_CHECK_TOOLS && command -v "$1")
    return
  fi
  command -v "$1" && return
  for folder in "$CUDA_HOME/bin" "$CUDA_PATH/bin" /usr/local/cuda/bin /usr/local/cuda/compute-sanitizer /opt/nvidia/nsight-compute/*; do
    [ -x "$folder/$1" ] && echo "$folder/$1" && return
  done
}
export BINADE_TEST_DEVICE="$device" BINADE_TEST_MEMORY=device
small="" samples=15 steps="--steps 4"
[ "$device" = emulated ] && small=--small samples=1 steps="--steps 1 --warmup 2 --samples 1"
jobs=$(nproc 2>/dev/null || echo 1)
[ "$jobs" -le 8 ] || jobs=8
passed=0 failed=0 skipped=0
ulimit -c 0  # a program that is ended leaves no core file

say() { printf '%s\n' "$*" | tee -a "$out/$call.txt"; }
report() { # STATUS NAME TEXT
  say "$(printf '%-8s %-13s %s' "$1" "$2" "$3")"
  case $1 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    *) skipped=$((skipped + 1)) ;;
  esac
}
allowed() { # SECONDS: no more than the call has left, in $seconds; false if nothing is left
  seconds=$((end - $(date +%s)))
  [ "$seconds" -le "$1" ] || seconds=$1
  [ "$seconds" -gt 0 ]
}
limited() { # COMMAND...: ends it after $seconds, with status 124 or 137; a test program says on SIGABRT where it was
  if command -v timeout >/dev/null; then timeout -s ABRT -k 5 "$seconds" "$@"; else "$@"; fi
}
check() { # NAME SECONDS COMMAND...: one log, one line
  name=$1
  if ! command -v "$3" >/dev/null; then
    report skipped "$name" "$3 is not there"
    return
  fi
  allowed "$2" || { report failed "$name" "no time left"; return; }
  shift 2
  limited "$@" >"$out/$name.log" 2>&1
  status=$?
  last=$(grep -v '^[[:space:]]*$' "$out/$name.log" | tail -n 1)
  case $status in
    0) report passed "$name" "$last" ;;
    124 | 137) report failed "$name" "stopped after $seconds s: $last" ;;
    *) report failed "$name" "exit $status: $last" ;;
  esac
}
# tests STAGE SECONDS GROUP PROGRAMS...: runs the tests of tests/GROUP, which a build tree has in these programs, in
# shards at the same time.
tests() {
  stage=$1 limit=$2 group=$3
  shift 3
  rm -f "$out/$stage"-*.log
  [ ! -x "$build/gpu-programs" ] || set -- gpu-programs
  shards=0 status=0 late=0
  for name in "$@"; do
    if [ "$name" = gpu-programs ]; then
      file=$build/gpu-programs part="tests" filter=""
    else
      file=$build/bin/$name part="" filter="--gtest_filter=-*Isas*:*ThreadCount*"
      [ -x "$file" ] || continue
    fi
    allowed "$limit" || { late=$((late + 1)); continue; }
    pids="" i=0
    while [ $i -lt "$jobs" ]; do
      GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$i limited "$file" ${part:+"$part" "$group"} --gtest_brief=1 \
        ${filter:+"$filter"} >"$out/$stage-$name-$i.log" 2>&1 &
      pids="$pids $!" i=$((i + 1)) shards=$((shards + 1))
    done
    for pid in $pids; do wait "$pid" || status=1; done
  done
  if [ $shards = 0 ] && [ $late = 0 ]; then
    report skipped "$stage" "no test program of $group in $build/bin"
  elif [ $late -gt 0 ]; then
    report failed "$stage" "no time left for $late programs"
  elif [ $status = 0 ]; then
    report passed "$stage" "$(cat "$out/$stage"-*.log | sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' | sum) tests in $shards shards"
  else
    what=$(cat "$out/$stage"-*.log | grep -e '^\[  FAILED  \] [^ ]*\.' -e '^crashed in' | head -n 3 | tr '\n' ' ')
    report failed "$stage" "${what:-a shard ended early or was stopped after $seconds s: see the logs}"
  fi
}
sum() {
  total=0
  while read -r number; do total=$((total + number)); done
  echo $total
}
# Tests compare bits, which repeat only with our own kernels.
with_provider() { # own|library COMMAND...
  export BINADE_GEMM="$1" BINADE_CONV2D="$1" BINADE_NORM="$1" BINADE_ATTENTION="$1"
  shift
  "$@"
  unset BINADE_GEMM BINADE_CONV2D BINADE_NORM BINADE_ATTENTION
}

program binade
[ -x "$file" ] || { echo "gpu-check: $file is not there: build it, or name another folder with --build"; exit 1; }
doctor=$("$file" ${part:+"$part"} doctor 2>&1) || {
  echo "gpu-check: failed: $file $part doctor does not run: $(printf '%s\n' "$doctor" | tail -n 2)"
  exit 1
}
case $device in  # number 0 may go without its number
  *:[1-9]*) line="^$device  *.*compute capability" ;;
  *) line="^${device%%:*}\\(:0\\)*  *.*compute capability" ;;
esac
if ! printf '%s\n' "$doctor" | grep -q "$line"; then
  echo "gpu-check: skipped: no device $device: $(printf '%s\n' "$doctor" | sed -n 's/^mode *//p')"
  exit 77
fi
mkdir -p "$out" || exit 1
absent() { # prints what is missing, one per line
  echo "no python3 here: no comparison with PyTorch, no parity cases, no trained models and losses, no NCCL ranks, no profile,"
  echo "  no JSON of the stages and no tables: logs and lines alone"
  [ "$(tool nvcc)" ] || echo "no nvcc here: a kernel that fails cannot be compiled anew on this machine"
  [ "$(tool nvidia-smi)" ] || echo "no nvidia-smi here: the driver's version is that of the runtime"
  [ "$(tool compute-sanitizer)" ] || echo "no compute-sanitizer here: no memcheck, racecheck and synccheck"
  command -v timeout >/dev/null || echo "no timeout here: a program that hangs is not ended"
}
absent

# Each call writes its own file; gpu-check.txt collects all calls with this --out.
for call in $calls; do
  end=$(($(date +%s) + seconds_of_call))
  absent >"$out/$call.txt"
  case $call in
    right)
      printf '%s\n' "$doctor" >"$out/doctor.log"
      report passed doctor "$(printf '%s\n' "$doctor" | grep -m 1 "$line")"
      program cuda_conformance
      check conformance 120 "$file" ${part:+"$part"}
      op_table="op_table_forward op_table_gradient op_table_dtype op_table_repeat op_table_exact"
      # shellcheck disable=SC2086
      {
        with_provider own tests kernels 150 kernels kernels_on_device
        with_provider own tests op-table 120 op_table $op_table
        if [ "$device" = emulated ]; then
          report skipped library "the emulated device has no library"
        else
          with_provider library tests library-kernels 60 kernels kernels_on_device
          with_provider library tests library-op-table 60 op_table $op_table
        fi
        tests runtime-optim 60 optim optim_optimizer_test optim_optimizers_test optim_loss_scaler_test optim_clip_test \
          optim_precision_truths_test optim_schedule_test optim_device_step_test
        tests runtime-cuda 60 cuda cuda_training_test cuda_device_runtime_test cuda_graphed_step_test cuda_trainer_test \
          cuda_optimizer_step_test cuda_tensor_basics_test cuda_sequence_training_test cuda_precision_test
      }
      ;;
    fast)
      program kernel_bench
      # shellcheck disable=SC2086
      check kernel-speed 200 "$file" ${part:+"$part"} --cases "$here/gpu_check/kernels.txt" $small --dtype f16 \
        --samples $samples --device "$device"
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
            check "step-$model-$precision$graph" 60 "$file" ${part:+"$part"} --model $model --precision $precision $graph \
              $sizes --device "$device" $steps --json
          done
        done
      done
      ;;
    why)
      program gpu_ceilings
      check ceilings 60 "$file" ${part:+"$part"} --json
      sanitizer=$(tool compute-sanitizer)
      for what in memcheck racecheck synccheck; do
        if [ -z "$sanitizer" ]; then
          report skipped $what "no compute-sanitizer here"
        else
          program cuda_conformance
          check $what 150 "$sanitizer" --tool $what --error-exitcode 9 "$file" ${part:+"$part"}
        fi
      done
      report skipped profile "no python3 here"
      ;;
  esac
done
printf '%s\n' "$passed passed, $failed failed, $skipped skipped"
for call in right fast why; do
  [ ! -e "$out/$call.txt" ] || { echo "call $call"; cat "$out/$call.txt"; }
done >"$out/gpu-check.txt"
tar -czf "$out.tar.gz" "$out" 2>/dev/null && echo "$out.tar.gz: $(wc -c <"$out.tar.gz") bytes"
[ $failed = 0 ]
