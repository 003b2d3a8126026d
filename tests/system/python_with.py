"""Finds a Python with the modules that a test needs besides the standard library."""
import os
import subprocess
import sys


def python_with(*modules):
    """$BINADE_PYTHON, this one, python3 or /usr/bin/python3, whichever can import the modules; or None."""
    for python in (os.environ.get("BINADE_PYTHON"), sys.executable, "python3", "/usr/bin/python3"):
        try:
            if python and subprocess.run([python, "-c", "import " + ", ".join(modules)],
                                         capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None
