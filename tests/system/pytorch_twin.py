#!/usr/bin/env python3
"""pytorch_twin.py MODEL.safetensors LOGITS.safetensors: nn::CNN in PyTorch with the same weights,
on the same images, compared with the outputs of this library."""
import sys

import numpy
import torch
from safetensors import safe_open
from torch.nn import functional


def read(path):
    with safe_open(path, framework="np") as file:
        return {name: torch.from_numpy(file.get_tensor(name)) for name in file.keys()}


def stage(x, weights, number):
    """Convolution, batch norm by running statistics, relu and 2x2 max pooling."""
    norm = f"bn{number}."
    x = functional.conv2d(x, weights[f"conv{number}.weight"], padding=1)
    x = functional.batch_norm(x, weights[norm + "running_mean"], weights[norm + "running_var"],
                              weights[norm + "weight"], weights[norm + "bias"])
    return functional.max_pool2d(functional.relu(x), 2)


def cnn(x, weights):
    for number in (1, 2, 3):
        x = stage(x, weights, number)
    x = torch.flatten(x, 1)
    x = functional.relu(functional.linear(x, weights["fc1.weight"], weights["fc1.bias"]))
    return functional.linear(x, weights["fc2.weight"], weights["fc2.bias"])


def main():
    weights, ours = read(sys.argv[1]), read(sys.argv[2])
    with torch.no_grad():
        theirs = cnn(ours["images"], weights)
    logits = ours["logits"]
    assert logits.shape == theirs.shape == (len(ours["images"]), 10), (logits.shape, theirs.shape)
    accuracy = (logits.argmax(1) == ours["labels"]).double().mean().item()
    assert accuracy > 0.3, f"the model has learnt nothing: {accuracy}"
    length = weights["fc1.weight"].shape[1]  # of the longest sum
    magnitude = logits.abs().max(dim=1, keepdim=True).values
    bound = 8 * numpy.finfo(numpy.float32).eps * length ** 0.5 * magnitude
    worst = ((logits - theirs).abs() / bound).max().item()
    different = (logits.argmax(1) != theirs.argmax(1)).sum().item()
    print(f"{len(logits)} images, accuracy {accuracy:.3f}, classes that differ: {different}, "
          f"largest difference {worst:.3f} of the bound")
    assert different == 0 and worst <= 1


main()
