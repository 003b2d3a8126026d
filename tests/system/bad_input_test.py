#!/usr/bin/env python3
"""Bad data, flags and run directories: each ends with one clear line on standard error and status
1, names what is wrong, and leaves no half-made run behind."""
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import time

from classifier_runs import (PROGRAM, idx_bytes, make_folder, make_idx, metrics, newest_manifest, png_bytes,
                             run, temporary_directory, train)

EXPORT_LOGITS, TOOL = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[2:4])
SANITIZED = b"__asan_init" in pathlib.Path(PROGRAM).read_bytes() or b"__tsan_init" in pathlib.Path(PROGRAM).read_bytes()
JPEG_START = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffdb00430001020304050607")


def one_error_line(result, *expected, status=1):
    """What is wrong with the report of a failed run, or None."""
    lines = result.stderr.splitlines()
    if result.returncode != status:
        return f"status {result.returncode}, expected {status}"
    if len(lines) != 1 or not lines[0].startswith("binade: error: "):
        return "expected one line 'binade: error: ...'"
    missing = [text for text in expected if text not in lines[0]]
    return f"expected {missing} in it" if missing else None


def tree(path):
    """Every file below a path with its bytes, and every directory."""
    return {str(p): p.read_bytes() if p.is_file() else None
            for p in sorted(pathlib.Path(path).rglob("*"))}


def idx_with(name, change):
    """Returns a maker of an idx directory with one file changed."""
    def make(path):
        make_idx(path)
        file = path / name
        changed = change(file.read_bytes())
        file.unlink() if changed is None else file.write_bytes(changed)
    return make


def folder_with(name, data):
    """Returns a maker of an image folder with one more (or another) file."""
    def make(path):
        make_folder(path)
        (path / name).write_bytes(data)
    return make


def class_without_images(path):
    make_folder(path)
    (path / "train" / "void").mkdir()
    (path / "train" / "void" / "readme.txt").write_text("no image")


def test_class_of_its_own(path):
    make_folder(path)
    shutil.copytree(path / "test" / "dark", path / "test" / "purple")


def packed_and_truncated(path):
    make_idx(path, packed=True)
    file = path / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-60])


def packed_with_false_checksum(path):
    make_idx(path, packed=True)
    file = path / "t10k-labels-idx1-ubyte.gz"
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)


def link_out_of_the_folder(path):
    make_folder(path)
    outside = path.parent / "outside.png"
    outside.write_bytes(png_bytes(12, 12))
    (path / "train" / "dark" / "link.png").symlink_to(outside.resolve())


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
LYING_COUNT = (0, 0, 8, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 8, 0, 0, 0, 8)

# Description, a maker of the data, what the error must name, further arguments.
DATA = [
    ("nothing there", lambda path: None, ["data"], []),
    ("an empty folder", lambda path: path.mkdir(), ["data", "no class folders"], []),
    ("a file as folder", lambda path: path.write_text("x"), ["data", "no such folder"], []),
    ("a train folder alone", lambda path: (make_folder(path), shutil.rmtree(path / "test")),
     ["data", "neither test nor val"], []),
    ("a class without images", class_without_images, ["train/void", "without images"], []),
    ("a class that only the test part has", test_class_of_its_own, ["purple"], []),
    ("a truncated PNG", folder_with("train/dark/bad.png", png_bytes(12, 12)[:-20]),
     ["train/dark/bad.png"], ["--validation-split", 0]),
    ("the first bytes of a JPEG", folder_with("train/dark/bad.jpg", JPEG_START),
     ["train/dark/bad.jpg"], ["--validation-split", 0]),
    ("text named .png", folder_with("train/dark/text.png", b"hello\n"),
     ["train/dark/text.png"], ["--validation-split", 0]),
    ("an empty .jpg", folder_with("train/dark/empty.jpg", b""),
     ["train/dark/empty.jpg"], ["--validation-split", 0]),
    ("images of several sizes", folder_with("train/dark/big.png", png_bytes(20, 16)),
     ["data", "20", "--image-size"], ["--validation-split", 0]),
    ("a link out of the folder", link_out_of_the_folder, ["dark/link.png", "outside"],
     ["--no-outside-links"]),
    ("no labels", idx_with(LABELS, lambda data: None), ["data"], []),
    ("no labels, idx wanted", idx_with(LABELS, lambda data: None), [LABELS], ["--format", "idx"]),
    ("an idx file cut short", idx_with(IMAGES, lambda data: data[:-1]), [IMAGES, "truncated"], []),
    ("an idx file too long", idx_with(IMAGES, lambda data: data + b"x"), [IMAGES, "longer"], []),
    ("an idx count that lies", idx_with(IMAGES, lambda data: bytes(LYING_COUNT) + data[16:]),
     [IMAGES], []),
    ("an idx file without header", idx_with(IMAGES, lambda data: data[:3]), [IMAGES], []),
    ("an empty idx file", idx_with(IMAGES, lambda data: b""), [IMAGES], []),
    ("another element type", idx_with(IMAGES, lambda data: b"\0\0\x0d" + data[3:]),
     [IMAGES, "13"], []),
    ("fewer labels than images", idx_with(LABELS, lambda data: idx_bytes([99], data[8:107])),
     ["100 images", "99"], []),
    ("images of no pixels", idx_with(IMAGES, lambda data: idx_bytes([100, 0, 8], b"")),
     [IMAGES], []),
    ("no images at all", lambda path: make_idx(path, train_count=0), ["data"], []),
    ("one training image", lambda path: make_idx(path, train_count=1), ["data"], []),
    ("images too small for the cnn", lambda path: make_idx(path, side=4), ["4x4"],
     ["--model", "cnn"]),
    ("a truncated .gz", packed_and_truncated, [IMAGES + ".gz", "truncated"], []),
    ("a .gz with a false checksum", packed_with_false_checksum,
     ["t10k-labels-idx1-ubyte.gz"], []),
]

# Arguments, what the error names. The data is good.
FLAGS = [
    (["--foo"], ["--foo"]),
    (["--foo", "3", "--bar"], ["--foo", "--bar"]),
    (["stray"], ["stray"]),
    (["--run"], ["--run"]),
    (["--epochs", 0], ["--epochs", "0"]),
    (["--epochs", "two"], ["--epochs", "two"]),
    (["--epochs", 1.5], ["--epochs", "1.5"]),
    (["--epochs", 10**30], ["--epochs", str(10**30)]),
    (["--batch", -1], ["--batch", "-1"]),
    (["--batch", 0], ["--batch", "0"]),
    (["--accumulate", 0], ["--accumulate", "0"]),
    (["--patience", -1], ["--patience", "-1"]),
    (["--checkpoint-every", 0], ["--checkpoint-every", "0"]),
    (["--lr", "nan"], ["--lr", "nan"]),
    (["--lr", "inf"], ["--lr", "inf"]),
    (["--lr", 0], ["--lr", "0"]),
    (["--lr", -0.1], ["--lr", "-0.1"]),
    (["--lr", ""], ["--lr"]),
    (["--momentum", "nan"], ["--momentum", "nan"]),
    (["--momentum", 1.1, "--optimizer", "sgd"], ["--momentum", "1.1"]),
    (["--weight-decay", "nan"], ["--weight-decay", "nan"]),
    (["--weight-decay", -1], ["--weight-decay", "-1"]),
    (["--clip", 0], ["--clip", "0"]),
    (["--clip", "nan"], ["--clip", "nan"]),
    (["--validation-split", 1], ["--validation-split", "1"]),
    (["--validation-split", "nan"], ["--validation-split", "nan"]),
    (["--workers", "x"], ["--workers", "x"]),
    (["--workers", -1], ["--workers", "-1"]),
    (["--workers", 1.5], ["--workers", "1.5"]),
    (["--threads", -2], ["--threads", "-2"]),
    (["--seed", -1], ["--seed", "-1"]),
    (["--image-size", 7], ["--image-size", "7"]),
    (["--loss-scale", "abc"], ["--loss-scale", "abc"]),
    (["--loss-scale", "nan"], ["--loss-scale", "nan"]),
    (["--loss-scale", 0], ["--loss-scale", "0"]),
    (["--precision", "fp8"], ["--precision", "fp8"]),
    (["--policy", "quarter"], ["--policy", "quarter"]),
    (["--store", "f16"], ["--store", "f16"]),
    (["--overrides", "nowhere.json"], ["nowhere.json", "cannot be read"]),
    (["--optimizer", "lion"], ["--optimizer", "lion"]),
    (["--schedule", "never"], ["--schedule", "never"]),
    (["--model", "vgg"], ["--model", "vgg"]),
    (["--augment", "mixup"], ["--augment", "mixup"]),
    (["--format", "zip"], ["--format", "zip"]),
    (["--device", "tpu"], ["tpu"]),
    (["--device", "cuda:99"], ["cuda:99"]),
    (["--predict", "missing.png"], ["missing.png"]),
    (["--resume", "--overwrite"], ["resume", "overwrite"]),
]
FOUND_LATER = {"--overrides", "--device", "--predict", "--resume", "--workers", "--loss-scale"}


class Checks:
    """Runs the cases of the table and collects the failures."""

    def __init__(self):
        self.count = 0
        self.failures = []

    def note(self, case, problem, result):
        self.count += 1
        if problem:
            self.failures.append(f"{case}: {problem}; got {result.returncode}: {result.stderr!r}")

    def fails(self, case, arguments, expected, untouched="run", status=1):
        """The run fails with a line that has the expected texts, and `untouched` is as before."""
        before = tree(untouched) if pathlib.Path(untouched).exists() else None
        defaults = [("--model", "mlp"), ("--epochs", 1), ("--batch", 20)]
        result = run(*[part for flag in defaults if flag[0] not in arguments for part in flag],
                     *arguments)
        after = tree(untouched) if pathlib.Path(untouched).exists() else None
        self.note(case, one_error_line(result, *expected, status=status)
                  or ("the run directory changed" if before != after else None), result)


def bad_data(checks):
    for number, (case, make, expected, arguments) in enumerate(DATA):
        path = pathlib.Path(f"{number}/data")
        path.parent.mkdir()
        make(path)
        checks.fails(case, ["--data", path, "--run", "run", *arguments], expected)


def bad_flags(checks, data):
    usage = 2
    for arguments, expected in FLAGS:
        checks.fails(" ".join(map(str, arguments)), ["--data", data, "--run", "run", *arguments],
                     expected, status=1 if arguments[0] in FOUND_LATER else usage)
    for flag in ("--data", "--run"):
        checks.fails(f"empty {flag}", [*(["--data", data] if flag == "--run" else []), flag, ""],
                     [flag, "empty"], status=usage)
    for flag, value in (("--momentum", 0.5), ("--policy", "half"), ("--store", "apex"),
                        ("--rollbacks", 2)):
        checks.fails(f"{flag} without effect", ["--data", data, "--run", "run", flag, value,
                                                "--precision", "fp32"], [flag, "no effect"], status=usage)
    checks.fails("format without data", ["--run", "run", "--format", "idx"], ["--format", "--data"],
                 status=usage)
    checks.fails("resume without run", ["--data", data, "--resume"], ["--resume", "--run"], status=usage)
    if "CUDA" not in run("--help").stdout:
        checks.fails("no CUDA", ["--data", data, "--run", "run", "--device", "cuda"], ["cuda"])


def divergence(checks, data):
    """Training that diverges ends with a status of its own, and its checkpoints stay."""
    settings = ["--data", data, "--precision", "fp32", "--schedule", "constant", "--optimizer", "sgd",
                "--validation-split", 0, "--batch", 1]
    train(*settings, "--model", "mlp", "--epochs", 1, "--run", "diverges", "--lr", 1e-3)
    first = newest_manifest("diverges")
    result = run(*settings, "--model", "mlp", "--epochs", 40, "--run", "diverges", "--resume", "--force",
                 "--lr", 1e6)
    named = (result.returncode == 3 and "binade: error: trainer: got a loss of " in result.stderr
             and " in step " in result.stderr and "the result of " in result.stderr)
    checks.note("lr 1e6", "no error that names the step and the tensor" if not named else
                None if newest_manifest("diverges") == first else "the checkpoints changed", result)
    for loss_scale in (2**24, "dynamic"):  # a fixed scale that skips every step; weights that overflow
        result = run("--data", data, "--model", "mlp", "--epochs", 2, "--run", f"scale-{loss_scale}",
                     "--loss-scale", loss_scale, "--lr", 1e-3 if loss_scale != "dynamic" else 1e6,
                     "--optimizer", "sgd", "--validation-split", 0, "--batch", 5)
        last = result.stderr.splitlines()[-1] if result.stderr else ""  # a warning may come before it
        named = "fixed loss scale" if loss_scale != "dynamic" else "is not finite"
        checks.note(f"loss scale {loss_scale}", None if result.returncode == 3 and named in last and
                    last.startswith("binade: error: trainer: ") else "no error of divergence", result)


def truncated_drawing(checks):
    """A JPEG with half of its data, among whole ones."""
    train("--model", "mlp", "--epochs", 1, "--batch", 512, "--run", "drawing")
    drawings = sorted(pathlib.Path("runs/glyphs-0/train").rglob("*.jpg"))
    if drawings:  # written where libjpeg is built in
        make_folder("half-drawn", side=32)
        data = drawings[0].read_bytes()
        pathlib.Path("half-drawn/train/dark/half.jpg").write_bytes(data[:len(data) // 2])
        checks.fails("a truncated JPEG", ["--data", "half-drawn", "--run", "run",
                                          "--validation-split", 0], ["train/dark/half.jpg"])


def bad_test_image(checks):
    make_folder("test-part")
    pathlib.Path("test-part/test/light/bad.png").write_bytes(png_bytes(12, 12)[:50])
    checks.fails("a truncated test image", ["--data", "test-part", "--run", "run",
                                            "--validation-split", 0],
                 ["test/light/bad.png"])
    pathlib.Path("test-part/test/light/bad.png").write_bytes(png_bytes(14, 12))
    checks.fails("a test image of another size", ["--data", "test-part", "--run", "run",
                                            "--validation-split", 0],
                 ["test-part", "14x12", "--image-size"])


def tool(*arguments, **options):
    return subprocess.run([TOOL, *map(str, arguments)],
                          capture_output=True, text=True, timeout=60, check=False, **options)


def checksums(checks):
    """The manifest of a folder: written once, verified, and used by the training program."""
    data = pathlib.Path("checked")
    make_folder(data)
    settings = ["--data", data, "--run", "run", "--validation-split", 0]
    checks.fails("no checksums", [*settings, "--checksums", "require"], ["binade checksum checked"])
    first, again = tool("checksum", data), tool("checksum", data)
    checks.note("writing checksums", None if first.returncode == 0 and first.stdout.startswith("wrote")
                else "no manifest", first)
    checks.note("verifying checksums", None if again.stdout.startswith("verified") else "not equal",
                again)
    image = sorted((data / "train" / "dark").iterdir())[0]
    good = image.read_bytes()
    image.write_bytes(good[:40] + bytes([good[40] ^ 1]) + good[41:])
    checks.fails("a changed byte", settings, [str(image), "the file has the checksum"])
    (data / "train" / "dark" / "a\x1b[2J\n.txt").write_text("x")
    changed = tool("checksum", data, "--verify")
    named = (changed.returncode == 1 and f"changed: train/dark/{image.name}\n" in changed.stdout
             and "not listed: train/dark/a\\x1b[2J\\x0a.txt\n" in changed.stdout)
    checks.note("naming what changed", None if named else changed.stdout, changed)
    (data / "train" / "dark" / "a\x1b[2J\n.txt").unlink()
    image.unlink()
    checks.fails("a missing image", settings, [f"dark/{image.name} is missing", "--update"])
    image.write_bytes(good)
    updated = tool("checksum", data, "--update")
    checks.note("updating checksums", None if updated.returncode == 0 else "refused", updated)
    absent = tool("checksum", "nowhere")
    checks.note("a folder that is not there", one_error_line(absent, "nowhere"), absent)


def packed(checks):
    """A store trains as the folder it was packed from, and what is wrong with one is an error that names it."""
    data, store = make_folder("to-pack"), pathlib.Path("packed")
    done = tool("pack", data, store)
    checks.note("packing", None if done.returncode == 0 and "24 samples" in done.stdout else "not packed", done)
    checks.note("packing again", one_error_line(tool("pack", data, store), "packed: the folder is not empty"), done)
    settings = ["--model", "mlp", "--epochs", 1, "--batch", 6, "--validation-split", 0]
    for name in (data, store):
        train("--data", name, "--run", f"run-{name}", *settings)
    same = metrics("run-to-pack") == metrics("run-packed")
    checks.note("training on a store", None if same else "other metrics than from the folder", done)
    more = tool("pack", data, store, "--append", "--raw", "--resize", "12x12")
    checks.note("appending", None if more.returncode == 0 and "24 samples" in more.stdout else "not appended", more)
    settings = ["--data", store, "--run", "run", "--validation-split", 0]
    shard = store / "train" / "00000.bin"
    good = shard.read_bytes()
    shard.write_bytes(good[:60] + bytes([good[60] ^ 4]) + good[61:])
    checks.fails("a changed byte of a store", settings, ["train/00000.bin:0: the sample has another checksum"])
    shard.write_bytes(good[:-1] + bytes([good[-1] ^ 4]))
    checks.fails("a changed index", settings, ["train/00000.bin: the index has another checksum"])
    shard.write_bytes(good[:-32])
    checks.fails("a store that was cut off", settings, ["train/00000.bin: has ", "the file was cut off"])
    shard.unlink()
    checks.fails("a shard that is missing", settings, ["train/00000.bin: cannot open the file"])
    shard.write_bytes(good)
    manifest = store / "train" / "binade-store.txt"
    manifest.write_text(manifest.read_text().replace("dark", "bark"))
    checks.fails("a changed manifest", settings, ["binade-store.txt: the manifest was altered"])
    checks.note("a file that is no tensors", one_error_line(tool("pack", manifest, "x"), "expected a folder"), done)


def model_checksums(checks, data):
    """A flipped bit of an exported model is found, and named by the tool."""
    train("--data", data, "--model", "mlp", "--epochs", 1, "--batch", 20, "--run", "exported")
    model = pathlib.Path("exported/model.safetensors")
    good = model.read_bytes()
    shown = tool("inspect", model, "--verify")
    whole = shown.returncode == 0 and "checksums: all right" in shown.stdout and "fc1.weight" in shown.stdout
    checks.note("inspect a model", None if whole else shown.stdout, shown)
    run_shown = tool("inspect", "exported", "--verify")
    checks.note("inspect a run", None if run_shown.returncode == 0 and "checkpoint of step" in run_shown.stdout
                else run_shown.stdout, run_shown)
    for at in (9, 200, len(good) // 2, len(good) - 1):
        model.write_bytes(good[:at] + bytes([good[at] ^ 16]) + good[at + 1:])
        loaded = subprocess.run([EXPORT_LOGITS, "mlp", model, data, "logits.safetensors"],
                                capture_output=True, text=True, timeout=60, check=False)
        checks.note(f"model with byte {at} changed", one_error_line(loaded, str(model)), loaded)
        shown = tool("inspect", model, "--verify")
        checks.note(f"inspect byte {at} changed", None if shown.returncode == 1 else "not found", shown)
    model.write_bytes(good)
    part = next(pathlib.Path("exported/checkpoint").glob("step-*/optimizer.safetensors"))
    bytes_ = part.read_bytes()
    part.write_bytes(bytes_[:-1] + bytes([bytes_[-1] ^ 1]))
    shown = tool("inspect", "exported", "--verify")
    checks.note("inspect a damaged checkpoint", None if shown.returncode == 1 and str(part) in shown.stderr
                else "not found", shown)
    checks.note("inspect nothing", None if tool("inspect", "nowhere").returncode == 1 else "no error", shown)


def streams_and_limits(checks):
    """Standard streams that are closed or full, and limits of the process: no silent end."""
    data = pathlib.Path("streams")
    make_folder(data)
    command = [PROGRAM, "--data", data, "--model", "mlp", "--epochs", "1", "--validation-split", "0"]
    for number, redirect in enumerate((">&-", "2>&-", ">&- 2>&- <&-")):
        result = subprocess.run(
            ["sh", "-c", f'"$@" {redirect}', "sh", *map(str, command), "--run", f"closed-{number}"],
            capture_output=True, text=True, timeout=120, check=False)
        whole = pathlib.Path(f"closed-{number}/model.safetensors").exists()
        checks.note(f"streams {redirect}", None if result.returncode == 0 and whole else "no model",
                    result)
    full = subprocess.run([*map(str, command), "--run", "full"], stdout=open("/dev/full", "w"),
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    checks.note("a full standard output", one_error_line(full, "standard output"), full)

    def limit(which, value):
        return lambda: resource.setrlimit(which, (value, value))
    small = subprocess.run([*map(str, command), "--run", "small"], capture_output=True, text=True,
                           timeout=120, check=False, preexec_fn=limit(resource.RLIMIT_FSIZE, 20000))
    checks.note("a limit of file sizes", one_error_line(small, "File too large"), small)


def works_or_says_why(result, run_directory):
    """A run under a limit ends well, with its model, or with one line and status 1."""
    whole = pathlib.Path(run_directory, "model.safetensors").exists()
    if result.returncode == 0:
        return None if whole else "no model"
    errors = [line for line in result.stderr.splitlines() if not line.startswith("binade: warning: ")]
    good = result.returncode == 1 and len(errors) == 1 and errors[0].startswith("binade: error: ")
    return None if good else "expected a model, or status 1 and one line 'binade: error: ...'"


def process_limits(checks, data):
    """Too few descriptors, too little memory, no threads: each works or is one error."""
    if SANITIZED:  # a sanitizer itself needs descriptors, a thread and terabytes of addresses
        return
    command = [*map(str, [PROGRAM, "--data", data, "--model", "mlp", "--epochs", 1, "--workers", 2,
                          "--checkpoint-every", 2, "--async-save"])]
    base = pathlib.Path("limits")  # a user without rights needs a folder of its own
    base.mkdir()
    base.chmod(0o777)
    for path in (pathlib.Path.cwd(), pathlib.Path(data), *pathlib.Path(data).iterdir()):
        path.chmod(0o755)

    def limited(name, which, value, user=None):
        def prepare():
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            resource.setrlimit(which, (value, value))
        directory = base / name
        result = subprocess.run([*command, "--run", str(directory)], capture_output=True, text=True,
                                timeout=120, check=False, preexec_fn=prepare)
        checks.note(f"limit {name}", works_or_says_why(result, directory), result)
        return result.returncode

    files = [limited(f"files-{n}", resource.RLIMIT_NOFILE, n) for n in (*range(4, 11), 64)]
    assert files[0] == 1 and files[-1] == 0, files
    memory = [limited(f"memory-{n}", resource.RLIMIT_AS, n << 20) for n in (48, 96, 192, 384, 4096)]
    assert memory[-1] == 0, memory
    nobody = 65534 if os.getuid() == 0 else None  # for root there is no limit
    if not nobody or subprocess.run([PROGRAM, "--help"], user=nobody, check=False,
                                    capture_output=True).returncode == 0:
        limited("threads", resource.RLIMIT_NPROC, 1, nobody)


def full_shared_memory(checks, data):
    """Nothing of ours lives in /dev/shm: with a full one a run goes on, alone and on two ranks."""
    inside = ("mount -t tmpfs -o size=4k tmpfs /dev/shm && head -c 4096 /dev/zero >/dev/shm/full && "
              "! { echo x >>/dev/shm/more; } 2>/dev/null && exec \"$@\"")
    space = ["unshare", "-m", "sh", "-c", inside, "sh"]
    if not shutil.which("unshare") or subprocess.run([*space, "true"], check=False, capture_output=True).returncode != 0:
        print("skipped: a full /dev/shm needs root and unshare")
        return
    train = [*map(str, [PROGRAM, "--data", data, "--model", "mlp", "--epochs", 1, "--workers", 2, "--async-save"])]
    for name, command in (("one", train), ("two", [TOOL, "launch", "-n", "2", "--", *train])):
        result = subprocess.run([*space, *command, "--run", f"shm-{name}"], capture_output=True, text=True,
                                timeout=120, check=False)
        problem = "" if result.returncode == 0 else f"status {result.returncode}"
        checks.note(f"full /dev/shm, {name}", problem, result)


def bad_run_directories(checks, data):
    pathlib.Path("file").write_text("x", encoding="utf-8")
    for path in ("file", "file/below", "/proc/binade-run", "/dev/null/run"):
        checks.fails("run directory " + path, ["--data", data, "--run", path], [path], "file")
    pathlib.Path("used").mkdir()
    pathlib.Path("used/letters.txt").write_text("dear", encoding="utf-8")
    checks.fails("a used run directory", ["--data", data, "--run", "used"],
                 ["used", "--resume", "--overwrite"], "used")
    train("--data", data, "--model", "mlp", "--epochs", 1, "--run", "used", "--overwrite")
    assert pathlib.Path("used/letters.txt").read_text(encoding="utf-8") == "dear"


def other_settings(checks, data):
    settings = ["--data", data, "--run", "done"]
    train("--model", "mlp", "--epochs", 1, "--batch", 20, *settings)
    for name, value in (("batch", 30), ("lr", 0.5), ("seed", 9), ("epochs", 2), ("clip", 1),
                        ("accumulate", 3), ("precision", "bf16"), ("optimizer", "sgd"),
                        ("schedule", "step"), ("augment", "crop"), ("weight-decay", 0.5),
                        ("loss-scale", 1024), ("model", "cnn"), ("validation-split", 0.3),
                        ("image-size", 16)):
        expected = {"precision": "bf16", "image-size": "height = 16"}.get(name, f"{name} = {value}")
        checks.fails(f"resume with another {name}",
                     [*settings, "--resume", f"--{name}", value], [expected, "done"], "done")
    checks.fails("overwrite with a bad value", [*settings, "--overwrite", "--loss-scale", "abc"],
                 ["--loss-scale", "abc"], "done")


def flip_last_byte(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def damaged_checkpoint(checks, data):
    """Damaged ones are set aside; without a good one nothing is touched, until --overwrite."""
    settings = ["--data", data, "--model", "mlp", "--epochs", 2, "--batch", 20, "--run", "damaged"]
    train(*settings)
    expected = metrics("damaged")
    newest = newest_manifest("damaged")["step"]
    path = pathlib.Path(f"damaged/checkpoint/step-{newest:08d}/model.safetensors")
    best = pathlib.Path("damaged/checkpoint/best/model.safetensors")
    for file in (path, best):  # else the best one, of the same epoch, would serve
        flip_last_byte(file)
    result = run(*settings, "--resume")
    lines = result.stderr.splitlines()
    good = (result.returncode == 0 and all(line.startswith("binade: warning: ") for line in lines)
            and "resumed in epoch 2" in result.stdout and metrics("damaged") == expected
            and all(f"{file.parent.name} is skipped and kept as {file.parent.name}.damaged" in
                    result.stderr for file in (path, best)))
    checks.note("a damaged checkpoint", None if good else "no fall back to the one before", result)
    for file in pathlib.Path("damaged/checkpoint").glob("*/model.safetensors"):
        flip_last_byte(file)
    checks.fails("damaged checkpoints", [*settings, "--resume"],
                 ["step-", "the checksum is wrong", "nothing was changed", "--overwrite"], "damaged")
    before = tree("damaged")
    result = run(*settings, "--overwrite")
    kept = {name.replace("damaged.replaced-1", "damaged", 1): data
            for name, data in tree("damaged.replaced-1").items()}
    good = result.returncode == 0 and kept == before and metrics("damaged") == expected
    checks.note("overwrite", None if good else "the old run is not kept whole", result)


def other_data(checks):
    """The same pictures with other labels have the same count, mean and deviation."""
    make_idx("labelled")
    settings = ["--data", "labelled", "--model", "mlp", "--epochs", 1, "--batch", 20, "--run", "labels"]
    train(*settings)
    labels = pathlib.Path("labelled/train-labels-idx1-ubyte")
    data = labels.read_bytes()
    labels.write_bytes(data[:8] + data[8:][::-1])
    checks.fails("other labels", [*settings, "--resume"], ["got other labels in the train data"],
                 "labels")
    result = run(*settings, "--resume", "--force")
    good = result.returncode == 0 and "warning: resume: got other labels" in result.stderr
    checks.note("other labels with force", None if good else "refused or without a warning", result)


def used_by_another(checks, data):
    settings = ["--data", data, "--model", "mlp", "--epochs", 1000, "--patience", 0, "--run", "shared"]
    with subprocess.Popen([PROGRAM, *map(str, settings)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as owner:
        while newest_manifest("shared") is None and owner.poll() is None:
            time.sleep(0.01)
        for flag in ("--resume", "--overwrite"):
            result = run(*settings, flag)
            checks.note(f"{flag} of a running run",
                        one_error_line(result, f"process {owner.pid} on host", "shared"), result)
        owner.kill()
    assert owner.returncode == -9, "the owner did not run until it was killed"
    assert pathlib.Path("shared/lock").exists()
    result = run("--data", data, "--model", "mlp", "--epochs", 1000, "--patience", 0, "--run",
                 "shared", "--resume", "--lr", 0.5)  # gets past the dead owner's lock
    checks.note("a dead owner", one_error_line(result, "lr = 0.5"), result)


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(begin, end, shape=(4,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


# Description, the file, what the error must name besides the path.
MODELS = [
    ("an empty file", b"", ""),
    ("a header longer than the file", safetensors({}, length=1 << 20), ""),
    ("a header of 2^63 bytes", safetensors({}, length=1 << 63), ""),
    ("a header cut short", safetensors(b'{"w": {"dtype": "F32", "sha'), ""),
    ("a header that is no object", safetensors(b"[1, 2]"), ""),
    ("an unknown dtype", safetensors({"w": tensor(0, 16, dtype="F33")}, bytes(16)), "F33"),
    ("a tensor beyond the end", safetensors({"w": tensor(0, 16)}, bytes(12)), "w"),
    ("a tensor that begins after its end", safetensors({"w": tensor(16, 0)}, bytes(16)), "w"),
    ("a shape that does not fit the bytes", safetensors({"w": tensor(0, 16, (5,))}, bytes(16)),
     "w"),
    ("a shape whose product overflows",
     safetensors({"w": tensor(0, 16, (1 << 62, 1 << 62))}, bytes(16)), "w"),
    ("a negative size", safetensors({"w": tensor(0, 16, (-4,))}, bytes(16)), "w"),
    ("tensors that overlap", safetensors({"v": tensor(0, 16), "w": tensor(8, 24)}, bytes(24)), ""),
    ("a hole between tensors", safetensors({"v": tensor(0, 16), "w": tensor(20, 36)}, bytes(36)),
     ""),
    ("bytes after the last tensor", safetensors({"w": tensor(0, 16)}, bytes(20)), ""),
    ("a name twice", safetensors(b'{"w":%b,"w":%b}' % ((json.dumps(tensor(0, 16)).encode(),) * 2),
                                 bytes(16)), "w"),
    ("a model with other tensors", safetensors({"w": tensor(0, 16)}, bytes(16)), "fc1.weight"),
]


def bad_models(checks, data):
    for case, content, expected in MODELS:
        path = pathlib.Path("bad.safetensors")
        path.write_bytes(content)
        result = subprocess.run([EXPORT_LOGITS, "mlp", path, data, "logits.safetensors"],
                                capture_output=True, text=True, timeout=60, check=False)
        checks.note(case, one_error_line(result, expected, path.name), result)
    assert not pathlib.Path("logits.safetensors").exists(), "a failed export left its file"


def main():
    with temporary_directory():
        checks = Checks()
        data = make_idx("good")
        bad_data(checks)
        bad_flags(checks, data)
        divergence(checks, data)
        truncated_drawing(checks)
        bad_test_image(checks)
        bad_run_directories(checks, data)
        other_settings(checks, data)
        damaged_checkpoint(checks, data)
        other_data(checks)
        used_by_another(checks, data)
        bad_models(checks, data)
        checksums(checks)
        packed(checks)
        model_checksums(checks, data)
        streams_and_limits(checks)
        process_limits(checks, data)
        full_shared_memory(checks, data)
        assert not checks.failures, "\n".join(checks.failures)
        assert not pathlib.Path("run").exists(), "a failed run left its directory"
    print(f"{checks.count} cases")


main()
