#!/usr/bin/env python3
"""A model file of this library opens in the safetensors reader of Python, and the same net written
in PyTorch gives the same classes and, within rounding, the same outputs.

Needs a Python with safetensors, numpy and torch: $BINADE_PYTHON, python3 or /usr/bin/python3.
"""
import os
import subprocess
import sys

from classifier_runs import skip, temporary_directory, train

MODULES = "import numpy, safetensors, torch"
EXPORT_LOGITS = os.path.abspath(sys.argv[2])


def find_python():
    for python in (os.environ.get("BINADE_PYTHON"), sys.executable, "python3", "/usr/bin/python3"):
        try:
            if python and subprocess.run([python, "-c", MODULES], capture_output=True,
                                         check=False).returncode == 0:
                return python
        except OSError:
            continue
    return skip("no Python with safetensors, numpy and torch ($BINADE_PYTHON)")


def main():
    python = find_python()
    with temporary_directory() as here:
        train("--model", "cnn", "--precision", "fp32", "--epochs", 1, "--run", "run")
        model = here / "run" / "model.safetensors"
        subprocess.run([EXPORT_LOGITS, "cnn", model, "runs/glyphs-0", "logits.safetensors"],
                       check=True)
        twin = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_twin.py")
        subprocess.run([python, "-B", twin, model, "logits.safetensors"], check=True)


main()
