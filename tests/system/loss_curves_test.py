#!/usr/bin/env python3
"""loss_curves_test.py PEER_WORK: losses of 20 training steps equal PyTorch's from the same weights.

Needs a Python with numpy and torch: $BINADE_PYTHON, python3 or /usr/bin/python3."""
import os
import pathlib
import sys

from python_with import python_with

PYTHON = python_with("numpy", "torch")
if PYTHON is None:
    print("skipped: no Python with numpy and torch ($BINADE_PYTHON; bench/peers/setup installs them)")
    sys.exit(77)
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers" / "loss_curves.py"
os.execv(sys.executable, [sys.executable, "-B", str(SCRIPT), sys.argv[1], "--python", PYTHON])
