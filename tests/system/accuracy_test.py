#!/usr/bin/env python3
"""Trains on whole data sets to the accuracy that is promised: accuracy_test.py PROGRAM CASE."""
import sys

from classifier_runs import metrics, shared, temporary_directory, test_accuracy, train


def report(name, directory):
    lines = metrics(directory, without=())
    speed = max(line["samples_per_second"] for line in lines)
    losses = " ".join(f"{line['train_loss']:.4f}" for line in lines)
    print(f"{name}: test accuracy {100 * test_accuracy(directory):.2f}%, loss {losses}, "
          f"{speed:.0f} samples/s", flush=True)
    return test_accuracy(directory)


def fit(name, *arguments):
    train("--run", name, *arguments, timeout=3000)
    return report(name, name)


def glyphs_cnn():
    accuracy = fit("glyphs", "--model", "cnn", "--precision", "fp16")
    assert accuracy >= 0.97, accuracy


def mnist_accuracy():
    data = shared("data", "mnist")
    accuracies = [fit(precision, "--data", data, "--model", "cnn", "--epochs", 3, "--precision",
                      precision) for precision in ("fp32", "fp16")]
    assert min(accuracies) >= 0.99, accuracies
    assert abs(accuracies[0] - accuracies[1]) <= 0.003, accuracies


def fashion_accuracy():
    data = shared("data", "fashion-mnist")
    accuracy = fit("fashion", "--data", data, "--model", "cnn", "--epochs", 8)
    assert accuracy >= 0.92, accuracy


def cifar_resnet18():
    data = shared("data", "cifar10", "images")
    accuracy = fit("cifar", "--data", data, "--model", "resnet18", "--epochs", 2, "--precision",
                   "fp16")
    losses = [line["train_loss"] for line in metrics("cifar")]
    assert losses[1] < losses[0] < 2.5, losses
    assert accuracy > 0.15, accuracy


CASES = {"glyphs-cnn": glyphs_cnn, "mnist-accuracy": mnist_accuracy,
         "fashion-accuracy": fashion_accuracy, "cifar-resnet18": cifar_resnet18}

with temporary_directory():
    CASES[sys.argv[2]]()
