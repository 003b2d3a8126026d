"""Code that the PyTorch samples share, as ours share train/flags.h and the library: the flags, a Lightning
Trainer made from them, metrics.jsonl, drawn pictures. `count` leaves this file out."""

import argparse
import hashlib
import json
import math
import pathlib
import random
import sys

import lightning
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from PIL import Image, ImageDraw
from torchvision import transforms
from torchvision.datasets import MNIST, ImageFolder

PRECISIONS = {"fp32": "32-true", "fp16": "16-mixed", "bf16": "bf16-mixed"}


def parser(name, description, without=(), **defaults):
    """An ArgumentParser with the shared flags, except those without a meaning here."""
    made = argparse.ArgumentParser(prog=name, description=description)
    shared = {
        "data": (str, "", "directory of the data"),
        "epochs": (int, 10, "passes over the data; 0: no limit"),
        "steps": (int, 0, "steps of the optimizer at most; 0: no limit"),
        "batch": (int, 64, "samples of a step"),
        "lr": (float, 1e-3, "learning rate"),
        "seed": (int, 0, "of all random numbers"),
        "threads": (int, 0, "compute threads; 0: all cores"),
        "run": (str, "", "directory for metrics and checkpoints"),
        "checkpoint_every": (int, 0, "steps between checkpoints; 0: at the end of an epoch only"),
    }
    for flag, (kind, value, help_text) in shared.items():
        if flag not in without:
            option = "--" + flag.replace("_", "-")
            made.add_argument(option, type=kind, default=defaults.get(flag, value), help=help_text)
    made.add_argument("--precision", default="fp32", choices=PRECISIONS)
    made.add_argument("--device", default="auto", help="auto, cpu or cuda")
    if "run" not in without:
        made.add_argument("--resume", action="store_true", help="continue the run in --run")
        made.add_argument("--overwrite", action="store_true", help="begin anew in --run")
    return made


def start(made):
    """Parses the flags, chooses the run directory and seeds the generators."""
    flags = made.parse_args()
    if flags.device == "auto":
        flags.device = "cuda" if torch.cuda.is_available() else "cpu"
    if getattr(flags, "threads", 0):
        torch.set_num_threads(flags.threads)
    if "run" in flags:
        free = (f"runs/{made.prog}-{i}" for i in range(1, 10**6))
        flags.run = pathlib.Path(flags.run or next(d for d in free if not pathlib.Path(d).exists()))
        if (
            flags.run.exists()
            and any(flags.run.iterdir())
            and not (flags.resume or flags.overwrite)
        ):
            made.exit(1, f"{flags.run}: not empty; give --resume, --overwrite or another --run\n")
        flags.run.mkdir(parents=True, exist_ok=True)
    lightning.seed_everything(getattr(flags, "seed", 0), verbose=False)
    return flags


def state_hash(*states):
    """The SHA-256 of all tensors in state dicts."""
    digest = hashlib.sha256()
    for state in states:
        for name, value in sorted(state.items(), key=lambda item: str(item[0])):
            digest.update(str(name).encode())
            if isinstance(value, torch.Tensor):
                digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def write_line(run, **values):
    with open(run / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")


class JsonLines(Callback):
    """Writes metrics.jsonl, one line per epoch."""

    def __init__(self, run):
        self.run = run

    def on_train_epoch_end(self, trainer, module):
        values = {key: float(value) for key, value in trainer.callback_metrics.items()}
        write_line(
            self.run,
            epoch=trainer.current_epoch,
            step=trainer.global_step,
            **values,
            state_hash=state_hash(module.state_dict()),
        )


def trainer(flags, monitor="validation_loss", mode="min", patience=10, **options):
    """A Trainer made from the flags: checkpoints in RUN/checkpoint, early stopping, metrics.jsonl."""
    flags.run.mkdir(parents=True, exist_ok=True)
    folder = flags.run / "checkpoint"
    callbacks = [
        JsonLines(flags.run),
        ModelCheckpoint(folder, "best", monitor=monitor, mode=mode, enable_version_counter=False),
        ModelCheckpoint(
            folder,
            "last",
            every_n_train_steps=flags.checkpoint_every or None,
            enable_version_counter=False,
        ),
    ]
    if patience:
        callbacks.append(EarlyStopping(monitor, mode=mode, patience=patience))
    return lightning.Trainer(
        max_epochs=flags.epochs or -1,
        max_steps=flags.steps or -1,
        precision=PRECISIONS[flags.precision],
        accelerator=flags.device,
        devices=1,
        default_root_dir=flags.run,
        logger=False,
        callbacks=callbacks,
        enable_model_summary=False,
        enable_progress_bar=sys.stdout.isatty(),
        **options,
    )


def fit(flags, trainer, model, train, validation):
    """Calls trainer.fit(), resuming if asked; afterwards the model has the best weights."""
    last = flags.run / "checkpoint/last.ckpt"
    trainer.fit(
        model, train, validation, ckpt_path=last if flags.resume and last.exists() else None
    )
    best = torch.load(flags.run / "checkpoint/best.ckpt", weights_only=False)
    model.load_state_dict(best["state_dict"])


def total_steps(flags, loader):
    """The steps of a run that early stopping does not end, for schedules."""
    total = flags.epochs * len(loader) or flags.steps
    return min(total, flags.steps) if flags.steps else total


def warmup_cosine(optimizer, warmup, total, min_ratio):
    """A schedule that rises linearly, then falls as half a cosine to min_ratio of the learning rate."""

    def ratio(step):
        if step < warmup:
            return (step + 1) / warmup
        share = min((step - warmup) / max(total - warmup, 1), 1)
        return min_ratio + (1 - min_ratio) * (1 + math.cos(math.pi * share)) / 2

    return torch.optim.lr_scheduler.LambdaLR(optimizer, ratio)


def open_pictures(folder):
    """The training and the test part of MNIST's files or of an image folder, in [0, 1]."""
    change = transforms.ToTensor()
    if pathlib.Path(folder, "MNIST").exists():
        return MNIST(folder, True, change), MNIST(folder, False, change)
    return [ImageFolder(pathlib.Path(folder, part), change) for part in ("train", "test")]


def draw_glyphs(folder, train, test, size=32):
    """Draws pictures of ten letters at random places into an image folder."""
    for part, count in (("train", train), ("test", test)):
        for i in range(count):
            letter = "ABCDEFGHIJ"[i % 10]
            picture = Image.new("L", (size, size), random.randrange(60))
            place = (random.randrange(size // 4), random.randrange(size // 8))
            ImageDraw.Draw(picture).text(
                place, letter, fill=random.randrange(150, 256), font_size=0.7 * size
            )
            path = pathlib.Path(folder, part, letter, f"{i}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            picture.save(path)
