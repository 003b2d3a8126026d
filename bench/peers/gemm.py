#!/usr/bin/env python3
"""Matrix products, Binade against torch.mm on the CPU: the shapes of bench/gemm_bench.cpp. PyTorch multiplies f32
with OpenBLAS, bf16 with oneDNN.

    bench/peers/gemm.py build/release/bin/gemm_bench [--dtype bf16] [--threads 1,2] [--rounds 5] [--filter '^NT']
                        [--cpu-time]

NT is the forward of a linear layer, TN the gradient of its weight, NN that of its input. PyTorch writes into an
output that exists. bench/peers/kernel_rows.py says how times are taken."""
import re

import kernel_rows

# m, n, k: a layer with m samples (or tokens), n outputs, k inputs
LAYERS = ((64, 512, 784), (64, 512, 512), (64, 10, 512), (64, 128, 784), (64, 10, 128), (256, 128, 784),
          (256, 1024, 1024), (2048, 128, 128), (2048, 384, 128), (2048, 512, 128), (2048, 128, 512))
SQUARES = (32, 64, 128, 256, 512, 1024)


def shapes():
    """(kind, m, n, k) of each product."""
    for m, n, k in LAYERS:
        yield from (("NT", m, n, k), ("NN", m, k, n), ("TN", n, k, m))
    for side in SQUARES:
        yield from ((kind, side, side, side) for kind in ("NN", "NT", "TN"))


def main():
    flags = kernel_rows.parse_flags(__doc__, "gemm_bench", "KIND/MxNxK", dtypes=("f32", "bf16"))
    torch = kernel_rows.import_torch()
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[flags.dtype]
    kernel_rows.print_header(torch, "m x n x k")
    results = []
    with torch.no_grad():
        for threads in (int(t) for t in flags.threads.split(",")):
            for kind, m, n, k in shapes():
                work = f"{kind}/{m}x{n}x{k}"
                if not re.search(flags.filter, work):
                    continue
                a = torch.randn(k, m).to(dtype).t() if kind[0] == "T" else torch.randn(m, k).to(dtype)
                b = torch.randn(n, k).to(dtype).t() if kind[1] == "T" else torch.randn(k, n).to(dtype)
                y = torch.empty(m, n, dtype=dtype)
                forms = {"mm": lambda: torch.mm(a, b, out=y)}
                row = kernel_rows.measure(torch, flags, work, f"{work}/{flags.dtype}/threads:{threads}/real_time", forms, threads)
                kernel_rows.print_row(row, 2 * m * n * k)
                results.append(row)
    kernel_rows.write_json(flags, results)


if __name__ == "__main__":
    main()
