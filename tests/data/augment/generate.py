#!/usr/bin/env python3
"""Writes cases.safetensors: what torchvision.transforms.v2 makes of small pictures, for transform_cases_test.cpp.
Only this script needs torchvision (pip install torchvision). Pictures are u8 [H, W, C]; a result has the name
"OP ARGUMENT... @PICTURE", boxes are f32 [N, 4] with the canvas as the last row (height, width, 0, 0)."""
import json
import pathlib
import struct
import sys

import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

NEAREST, BILINEAR, BICUBIC = F.InterpolationMode.NEAREST, F.InterpolationMode.BILINEAR, F.InterpolationMode.BICUBIC
MODES = {"nearest": NEAREST, "bilinear": BILINEAR, "bicubic": BICUBIC, "nearest_exact": F.InterpolationMode.NEAREST_EXACT}


def picture(height, width, channels, seed):
    generator = torch.Generator().manual_seed(seed)
    y, x, c = torch.meshgrid(torch.arange(height), torch.arange(width), torch.arange(channels), indexing="ij")
    smooth = 110 + 90 * torch.sin(y / 5 + c) * torch.cos(x / (3 + c)) + 40 * torch.rand(y.shape, generator=generator)
    image = smooth.clamp(0, 255).to(torch.uint8)
    image[:4, :5] = 255  # flat parts, black, white and a pure colour
    image[-4:, :3] = 0
    image[6:9, -5:] = torch.tensor([250, 0, 10])[:channels]
    return image.permute(2, 0, 1).contiguous()


PICTURES = {
    "photo": picture(23, 30, 3, 1),
    "square": picture(20, 20, 3, 2),
    "grey": picture(17, 21, 1, 3),
    "dim": (picture(18, 25, 3, 4) // 3 + 40),
}
BOXES = torch.tensor([[2.0, 3.0, 11.5, 9.0], [0.0, 0.0, 30.0, 23.0], [20.25, 10.0, 29.0, 22.5], [5.0, 5.0, 5.0, 9.0]])
CANVAS = (23, 30)
cases = {f"input {name}": image for name, image in PICTURES.items()}
boxes = {"input boxes": (BOXES, CANVAS)}


def add(op, arguments, result, image):
    cases[" ".join([op, *map(str, arguments), f"@{image}"])] = result


def add_values():
    for name in PICTURES:
        image = PICTURES[name]
        for factor in (0.0, 0.37, 1.0, 1.6, 2.5):
            add("brightness", [factor], F.adjust_brightness(image, factor), name)
            add("contrast", [factor], F.adjust_contrast(image, factor), name)
            add("saturation", [factor], F.adjust_saturation(image, factor), name)
            add("sharpness", [factor], F.adjust_sharpness(image, factor), name)
        for hue in (-0.5, -0.21, 0.0, 0.1, 0.5):
            add("hue", [hue], F.adjust_hue(image, hue), name)
        add("gamma", [0.4, 1.0], F.adjust_gamma(image, 0.4), name)
        add("gamma", [2.2, 1.3], F.adjust_gamma(image, 2.2, 1.3), name)
        for channels in (1, 3):
            add("grayscale", [channels], F.rgb_to_grayscale(image, channels), name)
        add("invert", [], F.invert(image), name)
        add("autocontrast", [], F.autocontrast(image), name)
        add("equalize", [], F.equalize(image), name)
        for bits in (0, 1, 3, 8):
            add("posterize", [bits], F.posterize(image, bits), name)
        for threshold in (0.0, 128.0, 76.5, 255.0):
            add("solarize", [threshold], F.solarize(image, threshold), name)
        add("blur", [3, 5, 0.4, 1.7], F.gaussian_blur(image, [5, 3], [1.7, 0.4]), name)
        add("blur", [9, 9, 0, 0], F.gaussian_blur(image, [9, 9]), name)


def fill_of(words):
    return None if words == "none" else [float(v) for v in words.split(",")]


def add_warps(name):
    image = PICTURES[name]
    height, width = image.shape[-2:]
    fills = ("none", "0", "10,200,90" if image.shape[0] == 3 else "77")
    for mode in ("nearest", "bilinear"):
        for fill in fills:
            options = {"interpolation": MODES[mode], "fill": fill_of(fill)}
            add("affine", [13.5, 3, -2, 1.2, 8, -5, "middle", mode, fill],
                F.affine(image, 13.5, [3, -2], 1.2, [8.0, -5.0], **options), name)
            add("rotate", [31.25, 0, "middle", mode, fill], F.rotate(image, 31.25, **options), name)
            start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
            end = [[2, 3], [width - 4, 1], [width - 2, height - 5], [5, height - 3]]
            add("perspective", [",".join(str(v) for p in end for v in p), mode, fill],
                F.perspective(image, start, end, **options), name)
        plain = {"interpolation": MODES[mode]}
        add("affine", [-70, 0, 0, 0.6, 0, 0, "4,6", mode, "none"],
            F.affine(image, -70, [0, 0], 0.6, [0.0, 0.0], center=[4, 6], **plain), name)
        add("affine", [0, 5, 0, 1, 0, 0, "middle", mode, "none"], F.affine(image, 0, [5, 0], 1.0, [0.0, 0.0], **plain), name)
        add("rotate", [-17.5, 1, "middle", mode, "none"], F.rotate(image, -17.5, expand=True, **plain), name)
        add("rotate", [200, 0, "3,15", mode, "0"], F.rotate(image, 200, center=[3, 15], fill=0, **plain), name)
        for quarter in (0, 90, 180, 270, -90):
            add("rotate", [quarter, 1, "middle", mode, "none"], F.rotate(image, quarter, expand=True, **plain), name)


def add_places(name):
    image = PICTURES[name]
    add("hflip", [], F.horizontal_flip(image), name)
    add("vflip", [], F.vertical_flip(image), name)
    for mode in ("constant", "edge", "reflect", "symmetric"):
        add("pad", [3, 1, 6, 4, mode, "0"], F.pad(image, [3, 1, 6, 4], 0, mode), name)
    add("pad", [0, 2, 5, 0, "constant", "9"], F.pad(image, [0, 2, 5, 0], 9), name)
    add("erase", [2, 3, 5, 7], F.erase(image, 2, 3, 5, 7, torch.zeros(image.shape[0], 1, 1)), name)
    for i, crop in enumerate(F.five_crop(image, [12, 9])):
        add("five_crop", [12, 9, i], crop, name)
    for i, crop in enumerate(F.ten_crop(image, [12, 9], vertical_flip=True)):
        add("ten_crop", [12, 9, i], crop, name)
    for size in ((11, 8), (40, 14), (9, 33)):
        add("center_crop", list(size), F.center_crop(image, list(size)), name)
        for mode in MODES:
            for antialias in (1, 0):
                if antialias or mode in ("bilinear", "bicubic"):
                    add("resize", [*size, mode, antialias],
                        F.resize(image, list(size), interpolation=MODES[mode], antialias=bool(antialias)), name)
    for side, most in ((12, 0), (31, 0), (14, 16)):
        add("short_side", [side, most], F.resize(image, [side], max_size=most or None, antialias=True), name)


def add_boxes():
    def put(name, function):
        given = tv_tensors.BoundingBoxes(BOXES, format="XYXY", canvas_size=CANVAS)
        changed = function(given)
        boxes[name] = (changed.as_subclass(torch.Tensor), changed.canvas_size)

    put("crop 4 -3 12 20", lambda b: F.crop(b, 4, -3, 12, 20))
    put("resize 46 20", lambda b: F.resize(b, [46, 20]))
    put("hflip", F.horizontal_flip)
    put("vflip", F.vertical_flip)
    put("affine 13.5 3 -2 1.2 8 -5 middle", lambda b: F.affine(b, 13.5, [3, -2], 1.2, [8.0, -5.0]))
    put("rotate 31.25 0 middle", lambda b: F.rotate(b, 31.25))
    put("rotate 31.25 1 middle", lambda b: F.rotate(b, 31.25, expand=True))
    put("rotate 90 1 middle", lambda b: F.rotate(b, 90, expand=True))
    start, end = [[0, 0], [29, 0], [29, 22], [0, 22]], [[2, 3], [26, 1], [28, 18], [5, 20]]
    put("perspective 2,3,26,1,28,18,5,20", lambda b: F.perspective(b, start, end))


def write(path):
    header, chunks, at = {"__metadata__": {"torch": torch.__version__.split("+")[0]}}, [], 0
    tensors = {name: image.permute(1, 2, 0).contiguous() for name, image in cases.items()}
    for name, (rows, canvas) in boxes.items():
        tensors["boxes " + name] = torch.cat([rows, torch.tensor([[float(canvas[0]), float(canvas[1]), 0, 0]])]).float()
    for name, tensor in tensors.items():
        data = tensor.numpy().tobytes()
        header[name] = {"dtype": "U8" if tensor.dtype == torch.uint8 else "F32", "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data)]}
        chunks.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))
    print(f"{path}: {len(tensors)} tensors")


def main():
    add_values()
    for name in PICTURES:
        add_places(name)
    for name in ("photo", "square", "grey"):
        add_warps(name)
    add_boxes()
    here = pathlib.Path(__file__).resolve().parent
    write(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "cases.safetensors")


main()
