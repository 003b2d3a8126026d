#!/usr/bin/env python3
"""Matrix products in f32, Binade against torch.mm (OpenBLAS) on the CPU: the shapes of bench/gemm_bench.cpp.

    bench/peers/gemm.py build/release/bin/gemm_bench [--threads 1,2] [--rounds 5] [--filter '^NT'] [--cpu-time]

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
    flags = kernel_rows.parse_flags(__doc__, "gemm_bench", "KIND/MxNxK")
    torch = kernel_rows.import_torch()
    kernel_rows.print_header(torch, "m x n x k")
    results = []
    with torch.no_grad():
        for threads in (int(t) for t in flags.threads.split(",")):
            for kind, m, n, k in shapes():
                work = f"{kind}/{m}x{n}x{k}"
                if not re.search(flags.filter, work):
                    continue
                a = torch.randn(k, m).t() if kind[0] == "T" else torch.randn(m, k)
                b = torch.randn(n, k).t() if kind[1] == "T" else torch.randn(k, n)
                y = torch.empty(m, n)
                forms = {"mm": lambda: torch.mm(a, b, out=y)}
                row = kernel_rows.measure(torch, flags, work, f"{work}/f32/threads:{threads}/real_time", forms, threads)
                kernel_rows.print_row(row, 2 * m * n * k)
                results.append(row)
    kernel_rows.write_json(flags, results)


if __name__ == "__main__":
    main()
