#!/usr/bin/env python3
"""TensorBoard's own reader gets back every scalar, histogram, image and text that was written, also
from a run that was killed and resumed: tensorboard_test.py WRITE_EVENTS.

Needs a Python with tensorboard: $BINADE_PYTHON, python3 or /usr/bin/python3.
"""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

from python_with import python_with


def check(condition, *words):
    if not condition:
        sys.exit("tensorboard_test: " + " ".join(str(word) for word in words))


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def pixels_of(png):
    """Height, width, channels and pixels of a PNG of 8 bits, with the filters of its rows undone."""
    check(png[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG")
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        check(zlib.crc32(kind + body) == struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0], "a wrong CRC")
        if kind == b"IHDR":
            width, height, bits, color = struct.unpack(">IIBB", body[:10])
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    channels = {0: 1, 2: 3}[color]
    rows, raw, step = [[0] * (width * channels)], zlib.decompress(data), width * channels + 1
    for y in range(height):
        line, row, above = raw[y * step:(y + 1) * step], [], rows[-1]
        for x, byte in enumerate(line[1:]):
            left = row[x - channels] if x >= channels else 0
            corner = above[x - channels] if x >= channels else 0
            near = min((left, up := above[x], corner), key=lambda v: abs(left + up - corner - v))
            row.append((byte + (0, left, up, (left + up) // 2, near)[line[0]]) % 256)
        rows.append(row)
    return height, width, channels, [value for row in rows[1:] for value in row]


def compare_histogram(found, values):
    histogram = found.histogram_value
    check(histogram.num == len(values) and histogram.min == min(values) and histogram.max == max(values), "range",
          histogram)
    check(math.isclose(histogram.sum, sum(values), rel_tol=1e-9, abs_tol=1e-9), "sum", histogram)
    check(math.isclose(histogram.sum_squares, sum(v * v for v in values), rel_tol=1e-9), "squares", histogram)
    below = -math.inf
    for limit, count in zip(histogram.bucket_limit, histogram.bucket, strict=True):
        expected = sum(below <= value < limit for value in values)
        check(count == expected, "bucket below", limit, "has", count, "expected", expected)
        below = limit
    check(sum(histogram.bucket) == len(values), "values outside of all buckets")


def read(run):
    from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator

    folder = str(run / "tensorboard")
    size = {kind: 0 for kind in (event_accumulator.SCALARS, event_accumulator.HISTOGRAMS,
                                 event_accumulator.IMAGES, event_accumulator.TENSORS)}
    reader = event_accumulator.EventAccumulator(folder, size_guidance=size)
    reader.Reload()
    expected = json.loads((run / "expected.json").read_text())
    tags = reader.Tags()
    expected_scalars = dict(expected["scalars"], nan=None, inf=None)
    check(set(tags["scalars"]) == set(expected_scalars), "scalars", tags["scalars"])
    for tag, points in expected["scalars"].items():
        found = [[event.step, event.value] for event in reader.Scalars(tag)]
        check(found == [[step, f32(value)] for step, value in points], tag, found)
    check(math.isnan(reader.Scalars("nan")[0].value) and reader.Scalars("inf")[0].value == math.inf, "nan, inf")
    check(set(tags["histograms"]) == set(expected["histograms"]), "histograms", tags["histograms"])
    for tag, points in expected["histograms"].items():
        found = reader.Histograms(tag)
        check([event.step for event in found] == [step for step, _ in points], tag, "steps")
        for event, (_, values) in zip(found, points, strict=True):
            compare_histogram(event, values)
    check(set(tags["images"]) == set(expected["images"]), "images", tags["images"])
    for tag, points in expected["images"].items():
        found = reader.Images(tag)
        check([event.step for event in found] == [point[0] for point in points], tag, "steps")
        for event, (_, height, width, channels, pixels) in zip(found, points, strict=True):
            check((event.height, event.width) == (height, width), tag, "size")
            check(pixels_of(event.encoded_image_string) == (height, width, channels, pixels), tag, "pixels")
    # The reader behind TensorBoard's page. It takes a run for restarted from its second start on.
    reader = plugin_event_accumulator.EventAccumulator(folder, size_guidance=size)
    reader.Reload()
    for kind in ("scalars", "histograms", "images"):
        for tag, points in expected[kind].items():
            found = [event.step for event in reader.Tensors(tag)]
            check(found == [point[0] for point in points], tag, "steps of the page", found)
    for tag, points in expected["texts"].items():
        check(reader.SummaryMetadata(tag).plugin_data.plugin_name == "text", tag, "is no text")
        found = [[event.step, event.tensor_proto.string_val[0].decode()] for event in reader.Tensors(tag)]
        check(found == points, tag, found)


def main():
    if sys.argv[1] == "--read":
        read(pathlib.Path(sys.argv[2]))
        return
    python = python_with("tensorboard")
    if python is None:
        print("skipped: no Python with tensorboard ($BINADE_PYTHON)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as run:
        subprocess.run([os.path.abspath(sys.argv[1]), run], check=True)
        subprocess.run([python, "-B", os.path.abspath(__file__), "--read", run], check=True)


main()
