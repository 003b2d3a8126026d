#!/usr/bin/env python3
"""Convolution in f32, Binade against PyTorch on the CPU: layers and directions of bench/conv_bench.cpp.

    bench/peers/conv.py build/release/bin/conv_bench [--threads 1,2] [--rounds 5] [--filter rn64] [--cpu-time]

PyTorch runs in both memory formats; the better one counts. bench/peers/kernel_rows.py says how times are taken."""
import re

import kernel_rows

# name: batch, channels, side, outputs, kernel, stride, padding
LAYERS = {
    "mnist1": (64, 1, 28, 32, 3, 1, 0), "mnist2": (64, 32, 26, 64, 3, 1, 0), "stem": (32, 3, 32, 64, 3, 1, 1),
    "rn64": (32, 64, 32, 64, 3, 1, 1), "rn128": (32, 128, 16, 128, 3, 1, 1), "rn256": (32, 256, 8, 256, 3, 1, 1),
    "rn512": (32, 512, 4, 512, 3, 1, 1),
    "narrow": (32, 16, 32, 32, 3, 1, 1), "few": (8, 512, 7, 512, 3, 1, 1), "stride2": (32, 64, 32, 128, 3, 2, 1), "1x1": (32, 64, 32, 128, 1, 1, 0),
    "1x1_stride2": (32, 64, 32, 128, 1, 2, 0)}
PASSES = ("forward", "backward_data", "backward_weight")


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


def main():
    flags = kernel_rows.parse_flags(__doc__, "conv_bench", "LAYER/DIRECTION")
    torch = kernel_rows.import_torch()
    kernel_rows.print_header(torch, "layer, direction")
    results = []
    with torch.no_grad():
        for threads in (int(t) for t in flags.threads.split(",")):
            for name, layer in LAYERS.items():
                for direction in PASSES:
                    work = f"{name}/{direction}"
                    if not re.search(flags.filter, work) or work == "mnist1/backward_data":
                        continue
                    forms = {"nchw": torch_call(torch, layer, direction, False),
                             "channels_last": torch_call(torch, layer, direction, True)}
                    row = kernel_rows.measure(torch, flags, work, f"{work}/own/threads:{threads}/real_time", forms, threads)
                    batch, channels, side, outputs, kernel, stride, padding = layer
                    pixels = ((side + 2 * padding - kernel) // stride + 1) ** 2
                    kernel_rows.print_row(row, 2 * batch * channels * outputs * kernel**2 * pixels)
                    results.append(row)
    kernel_rows.write_json(flags, results)


if __name__ == "__main__":
    main()
