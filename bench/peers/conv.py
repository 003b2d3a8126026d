#!/usr/bin/env python3
"""Convolution in f32, Binade against PyTorch on the CPU: layers and directions of bench/conv_bench.cpp.

    bench/peers/conv.py build/release/bin/conv_bench [--threads 1,2] [--rounds 5] [--filter rn64] [--cpu-time]

PyTorch runs in both memory formats; the better one counts. bench/peers/kernel_rows.py says how times are taken."""
import re

import kernel_rows

# name: batch, channels, side, outputs, kernel, stride, padding, groups and "sequence" where they are not 1 and an image
LAYERS = {
    "mnist1": (64, 1, 28, 32, 3, 1, 0), "mnist2": (64, 32, 26, 64, 3, 1, 0), "stem": (32, 3, 32, 64, 3, 1, 1),
    "rn64": (32, 64, 32, 64, 3, 1, 1), "rn128": (32, 128, 16, 128, 3, 1, 1), "rn256": (32, 256, 8, 256, 3, 1, 1),
    "rn512": (32, 512, 4, 512, 3, 1, 1),
    "narrow": (32, 16, 32, 32, 3, 1, 1), "few": (8, 512, 7, 512, 3, 1, 1), "stride2": (32, 64, 32, 128, 3, 2, 1), "1x1": (32, 64, 32, 128, 1, 1, 0),
    "1x1_stride2": (32, 64, 32, 128, 1, 2, 0),
    "dw32": (8, 32, 112, 32, 3, 1, 1, 32), "dw96_stride2": (8, 96, 112, 96, 3, 2, 1, 96), "dw144": (8, 144, 56, 144, 3, 1, 1, 144),
    "dw384": (8, 384, 14, 384, 3, 1, 1, 384), "dw960": (8, 960, 7, 960, 3, 1, 1, 960), "dw240_5x5": (8, 240, 28, 240, 5, 1, 2, 240),
    "dw96_7x7": (8, 96, 56, 96, 7, 1, 3, 96), "dw_batch1": (1, 384, 14, 384, 3, 1, 1, 384),
    "dw_multiplier2": (8, 64, 28, 128, 3, 1, 1, 64), "dw_odd": (8, 77, 29, 77, 3, 1, 1, 77),
    "dw_sequence": (4, 512, 1024, 512, 4, 1, 3, 512, "sequence"),
    "groups_2": (8, 64, 28, 64, 3, 1, 1, 32), "groups_3": (8, 96, 28, 96, 3, 1, 1, 32), "groups_4": (8, 128, 56, 128, 3, 1, 1, 32),
    "groups_8": (8, 256, 28, 256, 3, 1, 1, 32), "groups_16": (8, 512, 14, 512, 3, 1, 1, 32),
    "groups_32": (8, 1024, 7, 1024, 3, 1, 1, 32), "groups_8_16": (8, 256, 28, 512, 3, 1, 1, 32)}
PASSES = ("forward", "backward_data", "backward_weight")


def sizes(layer):
    """Batch, channels, outputs, groups, then height and width of the image, the kernel, the padding, the result."""
    defaults = (1, "image")
    batch, channels, side, outputs, kernel, stride, padding, groups, kind = (*layer, *defaults[len(layer) - 7:])
    one = kind == "sequence"
    image, window, pad = ((1, side), (1, kernel), (0, padding)) if one else ((side,) * 2, (kernel,) * 2, (padding,) * 2)
    result = tuple((i + 2 * p - k) // stride + 1 for i, k, p in zip(image, window, pad))
    return batch, channels, outputs, groups, stride, image, window, pad, result


def torch_call(torch, layer, direction, channels_last):
    batch, channels, outputs, groups, stride, image, window, pad, _ = sizes(layer)
    order = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(batch, channels, *image).contiguous(memory_format=order)
    w = torch.randn(outputs, channels // groups, *window).contiguous(memory_format=order)
    if direction == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)
    dy = torch.randn_like(torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups)).contiguous(memory_format=order)
    mask = [direction == "backward_data", direction == "backward_weight", False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, [stride] * 2, list(pad), [1, 1], False, [0, 0], groups, mask)


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
                    batch, channels, outputs, groups, _, _, window, _, result = sizes(layer)
                    products = channels // groups * window[0] * window[1]
                    kernel_rows.print_row(row, 2 * batch * outputs * products * result[0] * result[1])
                    results.append(row)
    kernel_rows.write_json(flags, results)


if __name__ == "__main__":
    main()
