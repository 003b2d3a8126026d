#!/usr/bin/env python3
"""Convolution in f32, Binade against PyTorch on the CPU: layers and directions of bench/conv_bench.cpp.

    bench/peers/conv.py build/release/bin/conv_bench [--threads 1,2] [--rounds 5] [--filter rn64] [--cpu-time]

The two take turns: in every round a slice of Binade's benchmark, then one of PyTorch in each memory format.
The figures are medians over the rounds, the ratio is that of the medians, against PyTorch's better format.
A slice during which other processes used the processors is repeated, at most six times; what is left of
their use is printed. On a busy machine --cpu-time counts processor time in place of the clock, which says
little of more than one thread. PyTorch runs in its strongest form: one OpenMP pool, memory kept by malloc."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
# name: batch, channels, side, outputs, kernel, stride, padding
LAYERS = {
    "mnist1": (64, 1, 28, 32, 3, 1, 0), "mnist2": (64, 32, 26, 64, 3, 1, 0), "stem": (32, 3, 32, 64, 3, 1, 1),
    "rn64": (32, 64, 32, 64, 3, 1, 1), "rn128": (32, 128, 16, 128, 3, 1, 1), "rn256": (32, 256, 8, 256, 3, 1, 1),
    "rn512": (32, 512, 4, 512, 3, 1, 1),
    "narrow": (32, 16, 32, 32, 3, 1, 1), "few": (8, 512, 7, 512, 3, 1, 1), "stride2": (32, 64, 32, 128, 3, 2, 1), "1x1": (32, 64, 32, 128, 1, 1, 0),
    "1x1_stride2": (32, 64, 32, 128, 1, 2, 0)}
PASSES = ("forward", "backward_data", "backward_weight")
SLICE = 0.15  # seconds


def strongest():
    """Starts again with the environment that makes PyTorch fastest."""
    if os.environ.get("BINADE_PEER") == "set":
        return
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    env.update(BINADE_PEER="set", MALLOC_MMAP_THRESHOLD_="4294967296", MALLOC_TRIM_THRESHOLD_="4294967296",
               MALLOC_TOP_PAD_="268435456")
    if os.path.isdir(OPENBLAS):
        env["LD_LIBRARY_PATH"] = OPENBLAS
    if "avx512f" in open("/proc/cpuinfo").read():
        env["ATEN_CPU_CAPABILITY"] = "avx512"  # PyTorch 1.13 takes AVX2 by itself
    os.execve(sys.executable, [sys.executable] + sys.argv, env)


def busy():
    """Processor seconds of all processes so far."""
    user, nice, system, _, _, irq, softirq, steal = (int(x) for x in open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def quiet(slice_of, most):
    """The result of a slice, repeated while others use more than 6% of a processor, and that use."""
    for _ in range(most):
        start, before, own = time.perf_counter(), busy(), sum(os.times()[:4])
        result = slice_of()
        spent = time.perf_counter() - start
        foreign = (busy() - before - (sum(os.times()[:4]) - own)) / spent
        if foreign < 0.06 + 0.02 / spent:
            break
        time.sleep(0.2)
    return result, max(0.0, foreign)


def binade_slice(program, name, threads, cpu_time):
    """Milliseconds per call."""
    command = [program, f"--benchmark_filter=^{re.escape(name)}/own/threads:{threads}/real_time$",
               f"--benchmark_min_time={SLICE}", "--benchmark_format=json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["benchmarks"][0]["cpu_time" if cpu_time else "real_time"]


def torch_call(torch, layer, direction, channels_last):
    batch, channels, side, outputs, kernel, stride, padding = layer
    order = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(batch, channels, side, side).contiguous(memory_format=order)
    w = torch.randn(outputs, channels, kernel, kernel).contiguous(memory_format=order)
    if direction == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, None, stride, padding)
    dy = torch.randn_like(torch.nn.functional.conv2d(x, w, None, stride, padding)).contiguous(memory_format=order)
    mask = [direction == "backward_data", direction == "backward_weight", False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask)


def torch_slice(call, cpu_time):
    clock = time.process_time if cpu_time else time.perf_counter
    call()
    start, calls = clock(), 0
    while clock() - start < SLICE:
        call()
        calls += 1
    return 1e3 * (clock() - start) / calls


def measure(torch, flags, name, direction, threads):
    torch.set_num_threads(threads)
    layer = LAYERS[name]
    work = {"binade": lambda: binade_slice(flags.program, f"{name}/{direction}", threads, flags.cpu_time)}
    for order, last in (("nchw", False), ("channels_last", True)):
        call = torch_call(torch, layer, direction, last)
        work[order] = lambda call=call: torch_slice(call, flags.cpu_time)
    times, foreign = {key: [] for key in work}, []
    for _ in range(flags.rounds):
        for key, slice_of in work.items():
            result, others = quiet(slice_of, 1 if flags.cpu_time else 6)
            times[key].append(result)
            foreign.append(others)
    median = {key: statistics.median(values) for key, values in times.items()}
    better = min(("nchw", "channels_last"), key=median.get)
    return {"work": f"{name}/{direction}", "threads": threads, "binade_ms": median["binade"],
            "peer_ms": median[better], "peer": f"torch {torch.__version__} {better}",
            "ratio": median[better] / median["binade"], "foreign": statistics.median(foreign)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="conv_bench")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--filter", default="", help="regular expression on LAYER/DIRECTION")
    parser.add_argument("--cpu-time", action="store_true", help="processor time in place of the clock")
    parser.add_argument("--json", metavar="FILE")
    flags = parser.parse_args()
    strongest()
    try:
        import torch
    except ImportError:
        sys.exit("conv.py: no PyTorch for this Python; apt install python3-torch libopenblas0-openmp, then use /usr/bin/python3")
    print(f"load average {os.getloadavg()[0]:.1f}; {os.cpu_count()} processors; torch {torch.__version__}")
    print("| layer, direction | threads | Binade ms | GFLOP/s | PyTorch ms | ratio | others' use |\n|---|---|---|---|---|---|---|")
    results = []
    with torch.no_grad():
        for threads in (int(t) for t in flags.threads.split(",")):
            for name in LAYERS:
                for direction in PASSES:
                    if not re.search(flags.filter, f"{name}/{direction}") or (name, direction) == ("mnist1", "backward_data"):
                        continue
                    row = measure(torch, flags, name, direction, threads)
                    batch, channels, side, outputs, kernel, stride, padding = LAYERS[name]
                    pixels = ((side + 2 * padding - kernel) // stride + 1) ** 2
                    gflops = 2e-6 * batch * channels * outputs * kernel**2 * pixels / row["binade_ms"]
                    print(f"| {row['work']} | {threads} | {row['binade_ms']:.2f} | {gflops:.0f} | {row['peer_ms']:.2f} "
                          f"({row['peer'].split()[-1]}) | {row['ratio']:.2f} | {100 * row['foreign']:.0f}% |", flush=True)
                    results.append(row)
    if flags.json:
        with open(flags.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
