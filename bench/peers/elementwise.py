#!/usr/bin/env python3
"""Elementwise, norm, reduction, random, index and attention kernels in f32 on the CPU, Binade against PyTorch:
the cases of bench/elementwise_bench.cpp.

    bench/peers/elementwise.py build/release/bin/elementwise_bench [--threads 1,2] [--rounds 5] [--filter gelu] [--cpu-time]

PyTorch writes into existing memory where it can (out=, in-place and backward forms). "of copy" is the share of
memcpy's bytes per second that the kernel moves, inputs and outputs counted once each; memcpy is the first row.
bench/peers/kernel_rows.py says how times are taken."""
import json
import re
import subprocess

import kernel_rows

FLAT, ROWS, FEW, IMAGES = (4096, 4096), (16384, 1024), (4096, 1024), (32, 128, 64, 64)


def uniform(torch, *sizes):
    return torch.empty(*sizes).uniform_(-3, 3)


def pointwise(torch):
    aten = torch.ops.aten
    x, y, z = (uniform(torch, *FLAT) for _ in range(3))
    rows, into, bias = uniform(torch, *ROWS), uniform(torch, *ROWS), uniform(torch, 1024)
    return {
        "roof/copy": lambda: y.copy_(x), "copy/forward": lambda: y.copy_(x), "transpose/forward": lambda: y.copy_(x.t()),
        "add/forward": lambda: torch.add(x, z, out=y), "add_in_place/forward": lambda: y.add_(x),
        "add_bias/forward": lambda: torch.add(rows, bias, out=into), "mul/forward": lambda: torch.mul(x, z, out=y),
        "relu/forward": lambda: torch.clamp_min(x, 0, out=y),
        "relu/backward": lambda: aten.threshold_backward.grad_input(z, x, 0, grad_input=y),
        "exp/forward": lambda: torch.exp(x, out=y), "tanh/forward": lambda: torch.tanh(x, out=y),
        "tanh/backward": lambda: aten.tanh_backward.grad_input(z, x, grad_input=y),
        "sigmoid/forward": lambda: torch.sigmoid(x, out=y), "silu/forward": lambda: aten.silu.out(x, out=y),
        "gelu/forward": lambda: aten.gelu.out(x, out=y), "gelu/backward": lambda: aten.gelu_backward.grad_input(z, x, grad_input=y),
        "gelu_tanh/forward": lambda: aten.gelu.out(x, approximate="tanh", out=y),
        "gelu_tanh/backward": lambda: aten.gelu_backward.grad_input(z, x, approximate="tanh", grad_input=y),
        "dropout/forward": lambda: torch.nn.functional.dropout(x, 0.1, True)}


def rows(torch):
    aten = torch.ops.aten
    x, y, dy = (uniform(torch, *ROWS) for _ in range(3))
    w, b, p = uniform(torch, 1024), uniform(torch, 1024), torch.softmax(uniform(torch, *ROWS), 1)
    mean, rstd, per_row, columns = torch.zeros(16384, 1), torch.ones(16384, 1), torch.empty(16384), torch.empty(1024)
    image, dimage, iw = uniform(torch, *IMAGES), uniform(torch, *IMAGES), uniform(torch, 128)
    imean, irstd = torch.zeros(32, 32), torch.ones(32, 32)
    target = torch.randint(1024, (16384,))
    f32 = torch.float32
    log_p = torch.log_softmax(x, 1)
    one, weight = torch.ones(()), torch.tensor(16384.0)
    index = torch.empty(16384, dtype=torch.int64)

    def rms_norm():
        return x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5) * w

    return {
        "softmax/forward": lambda: aten._softmax.out(x, 1, False, out=y),
        "softmax/backward": lambda: aten._softmax_backward_data.out(dy, p, 1, f32, grad_input=y),
        "log_softmax/forward": lambda: aten._log_softmax.out(x, 1, False, out=y),
        "log_softmax/backward": lambda: aten._log_softmax_backward_data.out(dy, log_p, 1, f32, out=y),
        "layer_norm/forward": lambda: torch.native_layer_norm(x, [1024], w, b, 1e-5),
        "layer_norm/backward": lambda: aten.native_layer_norm_backward(dy, x, [1024], mean, rstd, w, b, [True, True, True]),
        "rms_norm/forward": rms_norm,
        "group_norm/forward": lambda: torch.native_group_norm(image, iw, iw, 32, 128, 4096, 32, 1e-5),
        "group_norm/backward": lambda: aten.native_group_norm_backward(
            dimage, image, imean, irstd, iw, 32, 128, 4096, 32, [True, True, True]),
        "cross_entropy/forward": lambda: torch.nn.functional.cross_entropy(x, target),
        "cross_entropy/backward": lambda: aten._log_softmax_backward_data.out(
            aten.nll_loss_backward(one, log_p, target, None, 1, -100, weight), log_p, 1, f32, out=y),
        "sum/all": lambda: x.sum(), "sum/rows": lambda: torch.sum(x, 1, out=per_row),
        "sum/columns": lambda: torch.sum(x, 0, out=columns), "max/columns": lambda: torch.amax(x, 0, out=columns),
        "argmax/rows": lambda: torch.argmax(x, 1, out=index)}


def indexed(torch):
    aten = torch.ops.aten
    x, y = uniform(torch, *FEW), uniform(torch, *FEW)
    last, first, chosen = torch.randint(1024, FEW), torch.randint(4096, FEW), torch.randint(4096, (4096,))
    places, long, long_y, long_i = torch.empty(FEW, dtype=torch.int64), uniform(torch, 1 << 20), torch.empty(1 << 20), torch.empty(
        1 << 20, dtype=torch.int64)
    top, top_i = torch.empty(4096, 32), torch.empty(4096, 32, dtype=torch.int64)
    return {
        "gather/last": lambda: torch.gather(x, 1, last, out=y), "gather/first": lambda: torch.gather(x, 0, first, out=y),
        "scatter_add/last": lambda: y.scatter_add_(1, last, x), "scatter_add/first": lambda: y.scatter_add_(0, first, x),
        "index_select/rows": lambda: torch.index_select(x, 0, chosen, out=y),
        "embedding/backward": lambda: aten.embedding_dense_backward(x, chosen, 4096, -1, False),
        "cumsum/last": lambda: torch.cumsum(x, 1, out=y), "cumsum/first": lambda: torch.cumsum(x, 0, out=y),
        "sort/rows": lambda: torch.sort(x, 1, out=(y, places)), "sort/one": lambda: torch.sort(long, out=(long_y, long_i)),
        "topk/rows": lambda: torch.topk(x, 32, 1, out=(top, top_i))}


def attention(torch, batch, heads, length, size):
    """Computes softmax(q k^T / sqrt(size) + mask) v, also with its backward."""
    q, k, v = (uniform(torch, batch, heads, length, size).requires_grad_() for _ in range(3))
    dout = uniform(torch, batch, heads, length, size)
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)

    def forward():
        scores = (q @ k.transpose(-2, -1) * size**-0.5).masked_fill_(hidden, float("-inf"))
        return torch.softmax(scores, -1) @ v

    def without_gradient():
        with torch.no_grad():
            forward()

    with torch.enable_grad():
        out = forward()
    return {f"attention_{length}/forward": without_gradient,
            f"attention_{length}/backward": lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)}


def bytes_of(program, name):
    """The bytes per call that the benchmark reports."""
    out = subprocess.run([program, f"--benchmark_filter=^{re.escape(name)}$", "--benchmark_min_time=0.001", "--benchmark_format=json"],
                         check=True, capture_output=True, text=True).stdout
    row = json.loads(out)["benchmarks"][0]
    return row["bytes_per_second"] * row["real_time"] * 1e-3


def main():
    flags = kernel_rows.parse_flags(__doc__, "elementwise_bench", "the case's name")
    torch = kernel_rows.import_torch()
    print(f"torch {torch.__version__}\n| case | threads | Binade ms | of copy | PyTorch ms | ratio | others' use |\n|---|---|---|---|---|---|---|")
    results = []
    families = (pointwise, rows, indexed, lambda t: attention(t, 16, 4, 128, 32), lambda t: attention(t, 1, 8, 1024, 64))
    with torch.no_grad():
        calls = {name: call for family in families for name, call in family(torch).items()}
        for threads in (int(t) for t in flags.threads.split(",")):
            roof = None
            for name, call in calls.items():
                if name != "roof/copy" and not re.search(flags.filter, name):
                    continue
                benchmark = f"{name}/threads:{threads}/process_time/real_time"
                row = kernel_rows.measure(torch, flags, name, benchmark, {"eager": call}, threads)
                speed = bytes_of(flags.program, benchmark) / row["binade_ms"]
                roof = roof or speed
                row["of_copy"] = speed / roof
                print(f"| {name} | {threads} | {row['binade_ms']:.2f} | {100 * row['of_copy']:.0f}% | {row['peer_ms']:.2f} | "
                      f"{row['ratio']:.2f} | {100 * row['foreign']:.0f}% |", flush=True)
                results.append(row)
    kernel_rows.write_json(flags, results)


if __name__ == "__main__":
    main()
