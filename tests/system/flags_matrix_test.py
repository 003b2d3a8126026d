#!/usr/bin/env python3
"""Every good value of the flags trains to the end and leaves the line of the test accuracy."""
import re

from classifier_runs import make_idx, metrics, png_bytes, temporary_directory, train

# One row per run: model, epochs, and flags with the fields of the last line of the metrics that
# they must show.
MATRIX = (
    [("mlp", 1, ("--precision", "fp32"), {"precision": "fp32", "loss_scale": 1})]
    + [("mlp", 1, ("--precision", precision, "--policy", policy), {"precision": precision})
       for precision in ("fp16", "bf16") for policy in ("mixed", "autocast", "half")]
    + [("mlp", 1, ("--policy", "autocast", "--store", "paper"), {"precision": "fp16"}),
       ("mlp", 1, ("--optimizer", "adamw", "--weight-decay", 0.1), {}),
       ("mlp", 1, ("--optimizer", "sgd", "--momentum", 0.5, "--lr", 0.01), {}),
       ("mlp", 1, ("--optimizer", "adam", "--weight-decay", 0.05), {}),
       ("mlp", 1, ("--optimizer", "rmsprop", "--momentum", 0.5), {}),
       ("mlp", 1, ("--optimizer", "rmsprop"), {}),
       ("mlp", 1, ("--optimizer", "adagrad", "--lr", 0.01), {}),
       ("mlp", 1, ("--optimizer", "lamb", "--lr", 0.01), {}),
       ("mlp", 1, ("--optimizer", "lars", "--lr", 0.1, "--momentum", 0.8), {}),
       ("mlp", 2, ("--schedule", "cosine"), {}),
       ("mlp", 2, ("--schedule", "step"), {}),
       ("mlp", 2, ("--schedule", "linear"), {}),
       ("mlp", 2, ("--schedule", "one-cycle"), {}),
       ("mlp", 1, ("--schedule", "one-cycle", "--optimizer", "adagrad"), {}),
       ("mlp", 2, ("--schedule", "plateau", "--weight-decay", 0.02), {"learning_rate": 0.001}),
       ("mlp", 2, ("--schedule", "constant"), {"learning_rate": 0.001}),
       ("mlp", 1, ("--graph", "off"), {}),
       ("mlp", 1, ("--clip", 1), {}),
       ("mlp", 1, ("--accumulate", 3), {}),
       ("mlp", 1, ("--loss-scale", 1024), {"loss_scale": 1024}),
       ("mlp", 1, ("--at-floor", "skip"), {}),
       ("mlp", 1, ("--at-floor", "fp32"), {"precision": "fp16"}),
       ("mlp", 1, ("--loss-scale", 1024, "--at-floor", "clip"), {"loss_scale": 1024}),
       ("mlp", 1, ("--image-size", 16), {}),
       ("mlp", 1, ("--augment", "crop"), {"augment": "crop"}),
       ("mlp", 1, ("--validation-split", 0), {}),
       ("mlp", 1, ("--threads", 2), {}),
       ("mlp", 1, ("--workers", 2), {"workers": 2}),
       ("mlp", 1, ("--format", "idx", "--device", "cpu"), {}),
       ("mlp", 3, ("--patience", 1, "--checkpoint-every", 2), {}),
       ("cnn", 1, ("--clip", 1, "--accumulate", 3, "--augment", "crop-flip"),
        {"augment": "crop-flip"})])

# The default is mixed fp16, which these leave as it is.
WITHOUT_EFFECT = (("--precision", "fp16", "--policy", "mixed"), ("--threads", 2), ("--workers", 2),
                  ("--format", "idx", "--device", "cpu"), ("--graph", "off"), ("--at-floor", "skip"),
                  ("--at-floor", "fp32"))

ACCURACY = re.compile(r"test accuracy: (\d{1,3}\.\d\d)%")


def accuracy_of(output, row):
    """The accuracy in the last line, in percent."""
    match = ACCURACY.fullmatch(output.splitlines()[-1])
    assert match, f"{row}: got the last line {output.splitlines()[-1]!r}"
    return float(match[1])


def check_run(row, data, number):
    model, epochs, flags, fields = row
    directory = f"run-{number}"
    output = train("--data", data, "--model", model, "--epochs", epochs, "--batch", 10,
                   "--run", directory, *flags)
    last = metrics(directory)[-1]
    assert abs(accuracy_of(output, row) - 100 * last["test_accuracy"]) < 0.006, (row, last)
    assert output.count("epoch ") == last["epoch"] + 1 <= epochs, (row, output)
    assert {k: last[k] for k in fields} == fields, f"{row}: got {last}"
    split = "--validation-split" not in flags
    assert ("validation_loss" in last) == split, f"{row}: got {last}"
    return output, last


def check_predictions(data):
    with open("picture.png", "wb") as file:
        file.write(png_bytes(8, 8))
    with open("larger.png", "wb") as file:
        file.write(png_bytes(20, 12, 30))
    row = ("mlp", 1, ("--image-size", 8, "--predict", "picture.png", "larger.png"), {})
    output, _ = check_run(row, data, "predict")
    lines = output.splitlines()[-3:-1]
    for name, line in zip(("picture.png", "larger.png"), lines, strict=True):
        assert re.fullmatch(re.escape(name) + r": \d", line), f"got {lines}"


def main():
    with temporary_directory():
        data = make_idx("idx")
        states = {}
        for number, row in enumerate(MATRIX):
            states[row[2]] = check_run(row, data, number)[1]["state_hash"]
        check_predictions(data)
    # A flag without effect would leave two runs equal. Flags that only say where and how the work
    # is done must leave them equal.
    equal = [states.pop(flags) for flags in WITHOUT_EFFECT]
    assert len(set(equal)) == 1, f"{WITHOUT_EFFECT}: got states {equal}"
    # Here an op rounds each f32 result of "apex" to f16 at once, which is what "paper" stores.
    assert states.pop(("--policy", "autocast", "--store", "paper")) == states[
        ("--precision", "fp16", "--policy", "autocast")]
    states.pop(("--loss-scale", 1024))  # a power of two, which need not be seen in a short run
    different = [equal[0], *states.values()]
    assert len(set(different)) == len(different), f"got states {states}, and {equal[0]} by default"
    print(len(MATRIX) + 1, "runs ended well")


main()
