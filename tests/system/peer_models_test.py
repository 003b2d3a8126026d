#!/usr/bin/env python3
"""peer_models_test.py PEER_WORK: every model of bench/peers is the same on both sides. From the same weights and
inputs the first losses or outputs of Binade and of each form of PyTorch agree to 1e-4, and the losses of
the next steps to 1e-3.

Needs a Python with numpy and torch: $BINADE_PYTHON, python3 or /usr/bin/python3. Forms that are compiled by
torch.compile take long to make and are left out."""
import dataclasses
import pathlib
import sys
import tempfile
import unittest

from python_with import python_with

PYTHON = python_with("numpy", "torch")
if PYTHON is None:
    print("skipped: no Python with numpy and torch ($BINADE_PYTHON; bench/peers/setup installs them)")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
import loss_curves  # noqa: E402
import processes  # noqa: E402
import rows  # noqa: E402

PEER_WORK = sys.argv.pop()
BOUND = 1e-4
BATCH = 4  # at most: a shorter test
# Learning rates with which losses change by more than ten times the bound in four steps.
RATES = {"sgd": 1e-2, "sgd_decay": 1e-4, "adam": 1e-4, "adam_gan": 1e-4}
# A deep net with batch norms over few values enlarges rounding errors in training.
RATES_OF_MODELS = {"resnet50": 1e-7}
# Adam divides by gradients near zero, and two networks train on each other.
BOUNDS_OF_MODELS = {"gan": 5e-3}


def small_rows():
    """{what both sides get: row}, each work once."""
    small = (dataclasses.replace(row, batch=min(row.batch, BATCH)) for row in rows.ROWS.values() if row.has_model)
    return {rows.spec_of(row): row for row in small}


def difference(ours, theirs):
    """The largest difference, relative to the largest value."""
    scale = max(abs(value) for value in ours)
    return max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / scale


class PeerModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="binade-")
        cls.file = pathlib.Path(cls.folder.name, "start.safetensors")
        cls.binade, cls.torch = processes.binade(PEER_WORK), processes.torch(PYTHON, threads=1)

    @classmethod
    def tearDownClass(cls):
        for resource in (cls.binade, cls.torch):
            resource.close()
        cls.folder.cleanup()

    def test_first_values_agree(self):
        for spec in small_rows():
            ours = self.binade.ask("start", spec, self.file)["values"]
            self.assertGreater(max(map(abs, ours)), 1e-2, spec)
            forms = {form for state in ("installed", "strongest")
                     for form in self.torch.ask("forms", spec, state)["forms"] if "compile" not in form}
            for form in sorted(forms):
                with self.subTest(work=spec, form=form):
                    theirs = self.torch.ask("start", spec, self.file, form)["values"]
                    self.assertLess(difference(ours, theirs), BOUND, (ours, theirs))

    def test_losses_after_updates_agree(self):
        for spec, row in small_rows().items():
            if row.step != "train":
                continue
            with self.subTest(work=spec):
                rate = RATES_OF_MODELS.get(row.model, RATES[row.rule])
                command = ("curve", spec, self.file, 6, rate, row.batch)  # the 5th step has the 1st's batch
                ours, theirs = (worker.ask(*command)["losses"] for worker in (self.binade, self.torch))
                phases = len(ours) // 6
                self.assertGreater(abs(ours[4 * phases] - ours[0]), 10 * BOUND * abs(ours[0]), f"no training: {ours}")
                worst, step = loss_curves.largest_difference(ours, theirs)
                self.assertLess(worst, BOUNDS_OF_MODELS.get(row.model, 10 * BOUND), f"at value {step}: {ours} {theirs}")


if __name__ == "__main__":
    unittest.main()
