#!/usr/bin/env python3
"""Writes distributions.txt: how often the pixels of torchvision's random transforms lie below some levels, for
distribution_test.cpp. Only this script needs torchvision (pip install torchvision).

The picture is the one of picture() there. A line has the name of a transform, the number of draws, and for each of
the places of pixels, and then for the mean of all, the shares of draws at or below the levels 31.5, 63.5, ... 223.5.
generate_distributions.py [DRAWS] [SECONDS]: DRAWS of each, or as many as fit."""
import pathlib
import sys
import time

import torch
from torchvision.transforms import v2

SIDE = 16
LEVELS = [32 * k - 0.5 for k in range(1, 8)]
PLACES = [(2, 3, 0), (8, 8, 1), (13, 5, 2), (0, 0, 0), (15, 10, 1)]  # row, column, channel
BILINEAR = v2.InterpolationMode.BILINEAR
TRANSFORMS = {
    "random_resized_crop": v2.RandomResizedCrop(SIDE, interpolation=v2.InterpolationMode.NEAREST),
    "random_rotation": v2.RandomRotation(40),
    "random_affine": v2.RandomAffine(20, translate=(0.2, 0.1), scale=(0.7, 1.3), shear=15, interpolation=BILINEAR),
    "random_perspective": v2.RandomPerspective(0.6, p=0.8),
    "color_jitter": v2.ColorJitter(0.6, 0.5, 0.7, 0.2),
    "random_grayscale": v2.RandomGrayscale(0.3),
    "gaussian_blur": v2.GaussianBlur(5, (0.2, 1.5)),
    "random_erasing": v2.RandomErasing(0.7),
    "random_solarize": v2.RandomSolarize(100, 0.4),
    "rand_augment": v2.RandAugment(2, 15),
    "trivial_augment_wide": v2.TrivialAugmentWide(),
    "aug_mix": v2.AugMix(),
}


def picture():
    y, x, c = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), torch.arange(3), indexing="ij")
    return ((37 * y + 59 * x + 83 * c + 5 * x * y) % 251).to(torch.uint8).permute(2, 0, 1).contiguous()


def shares(transform, draws, seconds):
    image, counts, end = picture(), torch.zeros(len(PLACES) + 1, len(LEVELS), dtype=torch.int64), time.time() + seconds
    levels = torch.tensor(LEVELS)
    rows, columns, channels = (torch.tensor(v) for v in zip(*PLACES))
    for i in range(draws):
        out = transform(image)
        values = torch.cat([out[channels, rows, columns].float(), out.float().mean().reshape(1)])
        counts += values[:, None] <= levels
        if time.time() > end:
            draws = i + 1
            break
    return draws, (counts.double() / draws).flatten().tolist()


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 3600
    torch.manual_seed(7)
    torch.set_num_threads(1)
    lines = []
    for name, transform in TRANSFORMS.items():
        count, values = shares(transform, draws, seconds / len(TRANSFORMS))
        lines.append(f"{name} {count} " + " ".join(f"{v:.5f}" for v in values))
        print(name, count, flush=True)
    (pathlib.Path(__file__).resolve().parent / "distributions.txt").write_text("\n".join(lines) + "\n")


main()
