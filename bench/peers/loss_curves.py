#!/usr/bin/env python3
"""Binade and PyTorch train the same models from the same weights on the same batches: every loss of
every step must agree within a relative bound.

    bench/peers/loss_curves.py [PEER_WORK] [--work mlp,resnet18] [--steps 20] [--bound 1e-4]

Binade draws the weights and batches and hands them over in a safetensors file. Learning rates are small:
rounding differs, and training enlarges differences. Needs a Python with PyTorch and NumPy (--python)."""
import argparse
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import processes  # noqa: E402
import rows  # noqa: E402

# work: learning rate and batch
CURVES = {"mlp": (1e-2, 64), "mlp_adam": (1e-4, 64), "mnist_cnn": (1e-2, 16), "resnet18": (5e-5, 8),
          "char_gpt": (1e-4, 4)}


def largest_difference(ours, theirs):
    """The largest relative difference, and its step."""
    if len(ours) != len(theirs):
        raise ValueError(f"got {len(ours)} and {len(theirs)} losses")
    return max((abs(a - b) / abs(b), step) for step, (a, b) in enumerate(zip(ours, theirs)))


def curves(flags, work):
    rate, batch = CURVES[work]
    with tempfile.TemporaryDirectory(prefix="binade-") as folder:
        words = ("curve", rows.spec(work), pathlib.Path(folder) / "start.safetensors", flags.steps, rate, batch)
        with processes.binade(flags.program) as worker:
            ours = worker.ask(*words)["losses"]
        with processes.torch(flags.python, threads=1) as worker:  # one thread, as others may use the processors
            return ours, worker.ask(*words)["losses"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=processes.default_program())
    parser.add_argument("--work", default=",".join(CURVES))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--bound", type=float, default=1e-4)
    parser.add_argument("--python", default="/usr/bin/python3")
    flags = parser.parse_args()
    names = flags.work.split(",")
    for name in names:
        if name not in CURVES:
            parser.error(f"got work '{name}', expected some of {','.join(CURVES)}")
    far = 0
    for name in names:
        try:
            ours, theirs = curves(flags, name)
        except processes.WorkerError as error:
            sys.exit(f"loss_curves.py: {error}")
        difference, step = largest_difference(ours, theirs)
        if max(ours) - min(ours) <= 10 * flags.bound * max(ours):
            sys.exit(f"loss_curves.py: {name} did not train: losses {ours}")
        far += difference > flags.bound
        print(f"{name}: loss {ours[0]:.6f} to {ours[-1]:.6f} (PyTorch {theirs[0]:.6f} to {theirs[-1]:.6f}), "
              f"largest relative difference {difference:.1e} at step {step}", flush=True)
    sys.exit(f"loss_curves.py: {far} of {len(names)} differ by more than {flags.bound:g}" if far else 0)


if __name__ == "__main__":
    main()
