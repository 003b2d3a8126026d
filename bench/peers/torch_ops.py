"""Single ops in PyTorch, the counterpart of work.cpp. Forms: "out" writes into existing memory, "compile" is
torch.compile, "c++" is PyTorch without Python (torch_overhead.cpp)."""
import ctypes
import pathlib

import torch
import torch.nn.functional as F

COLS = 1024
IS_2 = int(torch.__version__.split(".")[0]) >= 2
OVERHEAD = ("add", "chain_forward", "chain")
# setup compiles it against the PyTorch of the distribution.
OVERHEAD_LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build/peers/torch_overhead.so"
HAS_OVERHEAD_LIBRARY = OVERHEAD_LIBRARY.exists() and torch.__file__.startswith("/usr/lib/")


def forms(work):
    if work in OVERHEAD:
        return ["eager"] + ["c++"] * HAS_OVERHEAD_LIBRARY
    if work == "copy":
        return ["out"]
    return ["eager"] + ["out"] * (work != "layer_norm") + ["eager+compile"] * IS_2


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
    function = calls[work, form.split("+")[0]]
    if form.endswith("+compile"):
        function = torch.compile(function)

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
    """The function to repeat, and its units of work."""
    if work in OVERHEAD:
        return overhead_call(work, form), 1000 if work == "add" else 100
    return elementwise_call(work, form), 1
