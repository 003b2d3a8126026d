#!/usr/bin/env python3
"""Equal seeds give equal training runs, whatever the loader's workers and the compute threads."""
from classifier_runs import make_glyphs, metrics, temporary_directory, train

SETTINGS = ("--model", "cnn", "--precision", "fp16", "--augment", "crop-flip", "--epochs", 2,
            "--batch", 50)


def outcome(data, name, *arguments):
    train("--data", data, "--run", name, *SETTINGS, *arguments)
    return metrics(name, without=("samples_per_second", "workers"))


def main():
    with temporary_directory():
        data = make_glyphs("glyphs")
        expected = outcome(data, "first", "--seed", 5, "--workers", 2)
        assert len(expected) == 2 and len(expected[-1]["state_hash"]) == 16, expected
        assert "test_accuracy" in expected[-1], expected
        for workers in (0, 2, 8):
            name = f"workers-{workers}"
            got = outcome(data, name, "--seed", 5, "--workers", workers)
            assert got == expected, f"{name}: {got}, expected {expected}"
            assert metrics(name)[-1]["workers"] == workers
        for threads in (1, 2, 3):
            got = outcome(data, f"threads-{threads}", "--seed", 5, "--threads", threads)
            assert got == expected, f"{threads} threads: {got}, expected {expected}"
        other = outcome(data, "other", "--seed", 6)
        assert other[-1]["state_hash"] != expected[-1]["state_hash"], "the seed has no effect"
    print("7 runs agree:", expected[-1]["state_hash"])


main()
