"""PyTorch's side of bench/peers/run, the counterpart of main.cpp: reads one command a line and answers
each with one line of JSON.

  version                        of PyTorch
  forms WORK                     the ways to do the work that may be fastest here
  prepare WORK FORM THREADS      makes the work in that form and does it a few times; "clear" forgets all
  slice FORM SECONDS             repeats it
  peak                           largest resident memory so far, MiB
  curve WORK FILE STEPS LR BATCH loss of each step, from the weights and batches of the file

Forms: "channels_last" is a memory order, "out" writes into existing memory, "compile" is torch.compile,
"frozen" is what torch.jit.optimize_for_inference makes of the traced model, for this one shape,
"c++" is PyTorch without Python (torch_overhead.cpp)."""
import ctypes
import json
import math
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

import safetensors_file
import torch_models

WARM_UP = 3
TIMED_RATE = 1e-5  # as in training.cpp
IS_2 = int(torch.__version__.split(".")[0]) >= 2
COLS = 1024

TRAINING = {  # model, sample, classes, batch, rule
    "mlp": (torch_models.mlp, (1, 28, 28), 10, 64, "sgd"),
    "mlp_adam": (torch_models.mlp, (1, 28, 28), 10, 64, "adam"),
    "mnist_cnn": (torch_models.mnist_cnn, (1, 28, 28), 10, 64, "sgd"),
    "resnet18": (torch_models.ResNet18, (3, 32, 32), 10, 32, "sgd_decay"),
    "char_gpt": (torch_models.CharGpt, (128,), 65, 16, "adam"),
}
IMAGES = ("mnist_cnn", "resnet18", "resnet18_inference")
OVERHEAD = ("add", "chain_forward", "chain")
# Compiled by setup against the PyTorch of the distribution.
OVERHEAD_LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build/peers/torch_overhead.so"
HAS_OVERHEAD_LIBRARY = OVERHEAD_LIBRARY.exists() and torch.__file__.startswith("/usr/lib/")


def forms(work):
    if work in IMAGES:
        found = ["eager", "channels_last"]
    elif work == "char_gpt":
        found = ["masked", "baddbmm"] + ["sdpa"] * IS_2
    elif work in TRAINING:
        found = ["eager"]
    elif work in OVERHEAD:
        return ["eager"] + ["c++"] * HAS_OVERHEAD_LIBRARY
    elif work == "copy":
        return ["out"]
    elif work == "resnet18_frozen":
        return ["frozen", "frozen_channels_last"]
    else:
        return ["eager"] if work == "layer_norm" else ["eager", "out"]
    return found + [found[-1] + "+compile"] * IS_2


def make_optimizer(parameters, rule, lr):
    kind, settings = torch.optim.SGD, {"lr": lr, "momentum": 0.9}
    if rule == "adam":
        kind, settings = torch.optim.Adam, {"lr": lr}
    elif rule == "sgd_decay":
        settings["weight_decay"] = 5e-4
    parameters = list(parameters)
    if IS_2:
        try:
            return kind(parameters, fused=True, **settings)
        except (TypeError, RuntimeError):  # not on the CPU in this version
            pass
    return kind(parameters, **settings)


def make_model(work, form):
    if work == "char_gpt":
        model = torch_models.CharGpt(form.split("+")[0])
    else:
        model = TRAINING[work][0]()
    if form.startswith("channels_last"):
        model = model.to(memory_format=torch.channels_last)
    return model


def ordered(x, form):
    return x.contiguous(memory_format=torch.channels_last) if form.startswith("channels_last") else x


def compiled(model, form):
    return torch.compile(model) if form.endswith("+compile") else model


class Training:
    def __init__(self, work, form, lr=TIMED_RATE):
        self.model = make_model(work, form)
        self.call_model = compiled(self.model, form)
        self.optimizer = make_optimizer(self.model.parameters(), TRAINING[work][4], lr)

    def step(self, x, target):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.call_model(x), target)
        loss.backward()
        self.optimizer.step()
        return loss


def training_call(work, form):
    _, sample, classes, batch, _ = TRAINING[work]
    training = Training(work, form)
    if work == "char_gpt":
        x = torch.randint(0, classes, (batch, *sample))
        target = torch.randint(0, classes, (x.numel(),))
    else:
        x = ordered(torch.randn(batch, *sample), form)
        target = torch.randint(0, classes, (batch,))
    return lambda: training.step(x, target)


def inference_call(form):
    order = form.removeprefix("frozen_")
    model = make_model("resnet18", order).eval()
    call_model = compiled(model, form)
    x = ordered(torch.randn(32, 3, 32, 32), order)
    if form.startswith("frozen"):
        with torch.no_grad():
            call_model = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, x)))

    def call():
        with torch.no_grad():
            call_model(x)
    return call


def elementwise_call(work, form):
    x = torch.randn(1 << 14, COLS)
    y = torch.empty_like(x)
    weight, bias = torch.ones(COLS), torch.zeros(COLS)
    gelu = torch._C._nn.gelu
    calls = {
        ("copy", "out"): lambda: y.copy_(x),
        ("gelu", "eager"): lambda: F.gelu(x),
        ("gelu", "out"): lambda: gelu(x, out=y),
        ("gelu_tanh", "eager"): lambda: F.gelu(x, approximate="tanh"),
        ("gelu_tanh", "out"): lambda: gelu(x, approximate="tanh", out=y),
        ("tanh", "eager"): lambda: torch.tanh(x),
        ("tanh", "out"): lambda: torch.tanh(x, out=y),
        ("softmax", "eager"): lambda: torch.softmax(x, -1),
        ("softmax", "out"): lambda: torch._softmax(x, -1, False, out=y),
        ("layer_norm", "eager"): lambda: F.layer_norm(x, (COLS,), weight, bias),
    }
    function = calls[work, form]

    def call():
        with torch.no_grad():
            function()
    return call


def overhead_call(work, form):
    if form == "c++":
        return getattr(ctypes.CDLL(str(OVERHEAD_LIBRARY)), work)
    x, one = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)

    def chain():
        y = x
        for _ in range(100):
            y = y + one
        return y

    def adds():
        for _ in range(1000):
            x + one

    def both():
        chain().backward()
        x.grad = one.grad = None
    return {"add": adds, "chain_forward": chain, "chain": both}[work]


def make_call(work, form):
    """The function to repeat, and the units of work it does."""
    if work in TRAINING:
        return training_call(work, form), 1
    if work in ("resnet18_inference", "resnet18_frozen"):
        return inference_call(form), 1
    if work in OVERHEAD:
        return overhead_call(work, form), 1000 if work == "add" else 100
    return elementwise_call(work, form), 1


class Session:
    def __init__(self):
        self.calls = {}  # by form

    def version(self):
        return {"version": torch.__version__}

    def forms(self, work):
        return {"forms": forms(work)}

    def clear(self):
        self.calls.clear()
        return {"ok": True}

    def prepare(self, work, form, threads):
        torch.set_num_threads(int(threads))
        torch.manual_seed(0)
        self.calls[form] = make_call(work, form)
        for _ in range(WARM_UP):
            self.calls[form][0]()
        return {"ok": True}

    def slice(self, form, seconds):
        call, units_of_call = self.calls[form]
        seconds, units = float(seconds), 0
        cpu, start = time.process_time(), time.perf_counter()
        now = start
        while units == 0 or now - start < seconds:
            call()
            units += units_of_call
            now = time.perf_counter()
        return {"units": units, "wall": now - start, "cpu": time.process_time() - cpu}

    def peak(self):
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return {"peak_mb": int(line.split()[1]) / 1024}

    def curve(self, work, file, steps, lr, batch):
        tensors = {name: torch.from_numpy(array) for name, array in safetensors_file.read(file).items()}
        batches = []
        while f"input.{len(batches)}" in tensors:
            i = len(batches)
            batches.append((tensors.pop(f"input.{i}"), tensors.pop(f"target.{i}")))
        if not batches or len(batches[0][0]) != int(batch):
            raise ValueError(f"{file}: expected batches of {batch}")
        training = Training(work, forms(work)[0], float(lr))
        missing, unexpected = training.model.load_state_dict(tensors, strict=False)
        missing = [name for name in missing if not name.endswith("num_batches_tracked")]
        if missing or unexpected:
            raise ValueError(f"{file}: missing {missing}, unexpected {unexpected}")
        losses = [training.step(*batches[i % len(batches)]).item() for i in range(int(steps))]
        if not all(math.isfinite(loss) for loss in losses):
            raise ValueError(f"losses are not finite: {losses}")
        return {"losses": losses}


def main():
    session = Session()
    answers = {name: getattr(session, name)
               for name in ("version", "forms", "clear", "prepare", "slice", "peak", "curve")}
    for line in sys.stdin:
        command, *words = line.split()
        try:
            answer = answers[command](*words)
        except Exception as error:  # the other side decides what to do
            answer = {"error": f"{command}: {type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
