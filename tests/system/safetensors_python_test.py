#!/usr/bin/env python3
"""A model file of this library opens in the safetensors reader of Python, and the same net written
in PyTorch gives the same classes and, within rounding, the same outputs.

Needs a Python with safetensors, numpy and torch: $BINADE_PYTHON, python3 or /usr/bin/python3.
"""
import os
import subprocess
import sys

from classifier_runs import skip, temporary_directory, train
from python_with import python_with

EXPORT_LOGITS = os.path.abspath(sys.argv[2])


def main():
    python = python_with("numpy", "safetensors", "torch")
    if python is None:
        skip("no Python with safetensors, numpy and torch ($BINADE_PYTHON)")
    with temporary_directory() as here:
        train("--model", "cnn", "--precision", "fp32", "--epochs", 1, "--run", "run")
        model = here / "run" / "model.safetensors"
        subprocess.run([EXPORT_LOGITS, "cnn", model, "runs/glyphs-0", "logits.safetensors"],
                       check=True)
        twin = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_twin.py")
        subprocess.run([python, "-B", twin, model, "logits.safetensors"], check=True)


main()
