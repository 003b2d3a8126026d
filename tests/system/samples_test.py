#!/usr/bin/env python3
"""samples_test.py BIN: every sample at a small size. It ends with a line that says what was reached, its
metrics.jsonl has the common keys, and one that was killed goes on to the same state."""
import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

BIN = pathlib.Path(sys.argv[1]).resolve()
# Flags of a small run, the last line, and keys of metrics.jsonl beside the common ones.
SMALL = {
    "regression": (["--epochs", 4, "--hidden", 16],
                   r"validation rmse: [0-9.]+, mae: [0-9.]+, r2: -?[0-9.]+",
                   ["validation_loss", "validation_rmse", "validation_mae", "validation_r2"]),
    "char_gpt": (["--steps", 20, "--layers", 1, "--width", 16, "--heads", 2, "--context", 16,
                  "--batch", 4],
                 r"validation loss: [0-9.]+, perplexity: [0-9.]+",
                 ["validation_loss", "validation_perplexity"]),
    "vae": (["--data", "pictures", "--epochs", 2, "--batch", 8, "--hidden", 16, "--latent", 2],
            r"validation loss: [0-9.]+ \(reconstruction [0-9.]+, kl [0-9.]+\), .*samples\.png",
            ["validation_loss", "validation_kl", "validation_reconstruction", "train_kl"]),
    "gan": (["--epochs", 2, "--hidden", 16],
            r"modes found: \d of 8, points near one: [0-9.]+%, energy distance: -?[0-9.]+",
            ["validation_loss", "train_discriminator_loss", "train_generator_loss"]),
    "lstm_classifier": (["--epochs", 1, "--hidden", 8],
                        r"validation accuracy: [0-9.]+%, f1: [0-9.]+",
                        ["validation_loss", "validation_accuracy", "validation_f1"]),
    "dqn": (["--steps", 200, "--batch", 8, "--checkpoint-every", 20],
            r"mean return: [0-9.]+ of 500", ["validation_return"]),
}
COMMON = ["epoch", "step", "train_loss", "state_hash"]


def png(path, rows):
    """Writes a picture; rows of (r, g, b)."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" +
                     chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def make_pictures(folder):
    """Two classes, light above or light below, with one duplicate and one broken file."""
    for label, name in enumerate(("above", "below")):
        for number in range(16):
            rows = [[(40 + number, 200 if (y < 4) == (label == 0) else 30, 10 * x) for x in range(8)]
                    for y in range(8)]
            part = "test" if number % 4 == 0 else "train"
            png(folder / part / name / f"{number:02}.png", rows)
    train = folder / "train" / "above"
    (train / "01-again.png").write_bytes((train / "01.png").read_bytes())


def start(name, *arguments):
    return [str(BIN / name), *map(str, arguments)]


def run(name, *arguments, status=0):
    done = subprocess.run(start(name, *arguments), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == status, (f"{name} {arguments}: status {done.returncode}, expected "
                                       f"{status}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def metrics(directory):
    return [json.loads(line) for line in pathlib.Path(directory, "metrics.jsonl").open()]


def check_metrics(directory, keys):
    lines = metrics(directory)
    assert lines, f"{directory}: no lines of metrics"
    missing = [key for key in COMMON + keys if not any(key in line for line in lines)]
    assert not missing, f"{directory}/metrics.jsonl lacks {missing}: {lines[-1]}"


def check_last_line(name, output, pattern):
    last = output.strip().splitlines()[-1]
    assert re.fullmatch(pattern, last), f"{name} ended with '{last}', expected {pattern}"
    print(f"{name}: {last}")


def check_small(name):
    flags, pattern, keys = SMALL[name]
    check_last_line(name, run(name, *flags, "--run", f"runs/{name}").stdout, pattern)
    check_metrics(f"runs/{name}", keys)
    assert pathlib.Path("runs", name, "model.safetensors").exists()


def check_mistakes(name):
    """An old run directory, a wrong flag: one line each before the first step."""
    old = run(name, *SMALL[name][0], "--run", f"runs/{name}", status=1).stderr
    assert "--resume" in old and "--overwrite" in old and old.count("\n") == 1, old
    wrong = run(name, "--lr", "nan", status=2).stderr
    assert "--lr" in wrong and wrong.count("\n") == 1, wrong
    assert "--checkpoint-every" in run(name, "--help").stdout


def files_of(name):
    return {"vae": ["samples.png", "reconstructions.png"], "gan": ["points.png"]}.get(name, [])


def without_times(lines):
    return [{key: value for key, value in line.items() if key != "samples_per_second"}
            for line in lines]


def check_kill(name, flags):
    """Killed with SIGKILL after its first checkpoint, then resumed, it ends as a run in one go."""
    run(name, *flags, "--run", f"runs/{name}-whole")
    arguments = start(name, *flags, "--run", f"runs/{name}-killed", "--resume")
    checkpoints = pathlib.Path("runs", f"{name}-killed", "checkpoint")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        while not list(checkpoints.glob("step-????????")):
            assert process.poll() is None, f"{name} ended before it was killed"
            time.sleep(0.001)
        process.kill()
        assert process.wait() == -signal.SIGKILL, f"{name} ended before it was killed"
    output = run(name, *flags, "--run", f"runs/{name}-killed", "--resume").stdout
    whole, killed = (without_times(metrics(f"runs/{name}-{how}")) for how in ("whole", "killed"))
    assert whole == killed, f"{name}: resumed {killed}\nin one go {whole}"
    print(f"{name}: killed and resumed, {whole[-1]['state_hash']}: {output.splitlines()[-1]}")


def check_finetune():
    small = ["--data", "pictures", "--image-size", 8, "--batch", 8, "--epochs", 1]
    pattern = r"validation accuracy: [0-9.]+%"
    output = run("finetune", "--pretrain", *small, "--run", "runs/body").stdout
    check_last_line("finetune --pretrain", output, pattern)
    broken = pathlib.Path("pictures/train/above/99.png")
    broken.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    output = run("finetune", *small, "--body", "runs/body/classifier.safetensors",
                 "--run", "runs/finetune").stdout
    check_last_line("finetune", output, pattern)
    assert "above/99.png" in output and "recall" in output, output
    check_metrics("runs/finetune", ["validation_loss", "validation_accuracy"])
    output = run("finetune", *small, "--all-folds", "--body", "runs/body/classifier.safetensors",
                 "--run", "runs/folds").stdout
    check_last_line("finetune --all-folds", output, pattern +
                    r", gain over scratch: -?[0-9.]+ \(standard error [0-9.]+\)")
    broken.unlink()


def check_predict():
    files = ["pictures/test/above/00.png", "pictures/test/below/00.png"]
    output = run("predict", "runs/finetune/classifier.safetensors", *files).stdout
    for file in files:
        assert re.search(rf"{file}: (above|below) [0-9.]+%, (above|below) [0-9.]+%", output), output
    check_last_line("predict", output, "pictures named: 2 of 2")
    done = run("predict", "runs/finetune/classifier.safetensors", "none.png", files[0], status=1)
    assert "none.png" in done.stderr and "pictures named: 1 of 2" in done.stdout, done
    done = run("predict", "runs/vae/model.safetensors", files[0], status=1)
    assert "says nothing about classes" in done.stderr, done.stderr


def main():
    before = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory(prefix="binade-samples-") as folder:
        os.chdir(folder)
        make_pictures(pathlib.Path("pictures"))
        for name in SMALL:
            check_small(name)
            for file in files_of(name):
                assert pathlib.Path("runs", name, file).read_bytes().startswith(b"\x89PNG"), file
        check_mistakes("regression")
        check_kill("dqn", [*SMALL["dqn"][0], "--seed", 3])
        check_kill("regression", ["--epochs", 6, "--hidden", 16, "--checkpoint-every", 3])
        check_finetune()
        check_predict()
        os.chdir(before)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.1f} CPU-seconds")


main()
