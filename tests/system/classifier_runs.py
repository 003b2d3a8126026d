"""What the tests of train_classifier share: running it, small data sets, reading a run directory.

Every test script is called with the program's path as its first argument.
"""
import contextlib
import gzip
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else ""
SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def shared(*parts):
    """A path below the shared data; skips the test if it is absent."""
    root = pathlib.Path(os.environ.get("BINADE_SHARED", SOURCE.parent / "shared"))
    if not root.joinpath(*parts).exists():
        skip("no ../shared")
    return str(root.joinpath(*parts).resolve())


@contextlib.contextmanager
def temporary_directory():
    """Makes an empty directory the current one, and removes it at the end."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="binade-") as path:
        os.chdir(path)
        try:
            yield pathlib.Path(path)
        finally:
            os.chdir(before)


def run(*arguments, timeout=240):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout, check=False)


def train(*arguments, timeout=240):
    """Runs the program, which must succeed, and returns its standard output."""
    result = run(*arguments, timeout=timeout)
    assert result.returncode == 0, f"{arguments}: {result.returncode}\n{result.stderr[-2000:]}"
    return result.stdout


def metrics(directory, without=("samples_per_second",)):
    """The lines of metrics.jsonl without the fields that may differ between equal runs."""
    lines = pathlib.Path(directory, "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in without} for line in lines]


def test_accuracy(directory):
    return metrics(directory)[-1]["test_accuracy"]


def newest_manifest(directory):
    """The manifest of the checkpoint that a resumed run takes, or None: the newest of step-*, or the best one
    where it is newer, as after a kill between the two."""
    folder = pathlib.Path(directory, "checkpoint")
    newest = None
    for path in [folder / "best" / "manifest.json", *sorted(folder.glob("step-????????/manifest.json"))]:
        with contextlib.suppress(OSError, ValueError):  # it may be going away
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if not newest or manifest["step"] >= newest["step"]:
                newest = manifest
    return newest


def idx_bytes(sizes, elements):
    return bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + bytes(elements)


def make_idx(directory, train_count=100, test_count=40, side=8, packed=False):
    """Four idx files: an image of class c has a bright row c modulo `side`. Returns the path."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True)
    for part, count in (("train", train_count), ("t10k", test_count)):
        labels = [i % 10 for i in range(count)]
        pixels = bytearray()
        for i in range(count):
            for y in range(side):
                bright = 200 if y == labels[i] % side else 10
                pixels += bytes((bright + (i * 7 + y * x * 13) % 40) for x in range(side))
        files = {"images-idx3": idx_bytes([count, side, side], pixels),
                 "labels-idx1": idx_bytes([count], labels)}
        for name, data in files.items():
            path = directory / f"{part}-{name}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(data) if packed else data)
    return directory


def png_bytes(width, height, shade=128):
    """A grey PNG of one shade with a ramp."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + bytes((shade + x + y) % 256 for x in range(width))
                    for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_folder(directory, per_class=6, side=12):
    """An image folder of two classes. Returns the path."""
    directory = pathlib.Path(directory)
    for part in ("train", "test"):
        for shade, name in ((40, "dark"), (200, "light")):
            (directory / part / name).mkdir(parents=True)
            for i in range(per_class):
                path = directory / part / name / f"{i}.png"
                path.write_bytes(png_bytes(side, side, shade + i))
    return directory


def make_glyphs(directory, per_class=100, test_per_class=20):
    """Some of the images that the program draws for itself, PNG and JPEG. Returns the path."""
    directory = pathlib.Path(directory)
    train("--model", "mlp", "--epochs", 1, "--batch", 512, "--run", "drawing")
    for part, count in (("train", per_class), ("test", test_per_class)):
        for folder in sorted(pathlib.Path("runs/glyphs-0", part).iterdir()):
            (directory / part / folder.name).mkdir(parents=True)
            for path in sorted(folder.iterdir())[:count]:
                shutil.copy(path, directory / part / folder.name)
    return directory
