#!/usr/bin/env python3
"""Writes the parity cases of the ops that ../shared/parity does not cover: generate.py [OUT], by default cases/.

Each case is one op on small drawn inputs, with PyTorch's results and gradients in float64, for random upstream
gradients. The format is binade-parity-1, as in ../shared/parity/README.md. The files of cases/ were made with
PyTorch 2.15; another version gives the same up to the last bits. Only this script needs PyTorch.

A pointwise op of one or two tensors that torch or torch.nn.functional has under the same name gets its cases by
itself. Another op needs its cases in a family below, a line in REFERENCE and a handler in tests/parity/*_ops.cpp. The
test parity_closure names the ops that have no case.
"""
import ctypes
import json
import math
import pathlib
import re
import struct
import sys
import zlib

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent

ERRORS = (RuntimeError, IndexError, ValueError, TypeError)
ELEMENT = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL"}
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}


# The calls of PyTorch ------------------------------------------------------------------------------------
def conv_transpose1d(x, weight, bias, stride, padding, dilation, groups, output_padding):
    return F.conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation)


def feedforward(x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


def batch_second(x, batch_first, reverse):
    x = x.transpose(0, 1) if batch_first else x
    return x.flip(0) if reverse else x


def rnn_relu(x, h0, weight_ih, weight_hh, bias_ih, bias_hh, batch_first, reverse):
    h, steps = h0, []
    for row in batch_second(x, batch_first, reverse):
        h = F.relu(F.linear(row, weight_ih, bias_ih) + F.linear(h, weight_hh, bias_hh))
        steps.append(h)
    return {"output": batch_second_again(torch.stack(steps), batch_first, reverse), "h_n": h}


def batch_second_again(y, batch_first, reverse):
    y = y.flip(0) if reverse else y
    return y.transpose(0, 1) if batch_first else y


def lstm(x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr, batch_first, reverse):
    weights = [w for w in (weight_ih, weight_hh, bias_ih, bias_hh, weight_hr) if w is not None]
    seen = batch_second(x, batch_first, reverse)
    y, h, c = torch.lstm(seen, (h0[None], c0[None]), weights, bias_ih is not None, 1, 0.0, False, False, False)
    return {"output": batch_second_again(y, batch_first, reverse), "h_n": h[0], "c_n": c[0]}


def unique(x):
    return dict(zip(("values", "inverse", "counts"), torch.unique(x, return_inverse=True, return_counts=True)))


def bincount(x, weights, minlength):
    """torch.bincount, whose weights have no gradient, as a sum."""
    size = max(minlength, int(x.max()) + 1 if x.numel() else 0)
    return torch.bincount(x, None, minlength) if weights is None else weights.new_zeros(size).index_add(0, x, weights)


REFERENCE = {
    "add_scalar": lambda x, value: x + value,
    "mul_scalar": lambda x, value: x * value,
    "div_scalar": lambda x, value: x / value,
    "rsub_scalar": lambda x, value: value - x,
    "rdiv_scalar": lambda x, value: value / x,
    "where_scalar": lambda cond, x, value: torch.where(cond, torch.full_like(x, value), x),
    "where_tensor_scalar": lambda cond, x, value: torch.where(cond, x, torch.full_like(x, value)),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "cumprod": torch.cumprod,
    "relu6": lambda x: F.relu6(x),
    "cast": lambda x, dtype: x.to(DTYPES[dtype]),
    "clone": lambda x: x.clone(),
    "bernoulli": lambda p: torch.bernoulli(p),
    "multinomial": lambda p, samples, replacement: torch.multinomial(p, samples, replacement),
    "contiguous": lambda x: x.contiguous(),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "to_device": lambda x: x * 1,
    "sum_to": lambda x, shape: x.sum_to_size(shape),
    "tile": lambda x, repeats: torch.tile(x, repeats),
    "select": lambda x, dim, index: x.select(dim, index),
    "scatter": lambda x, index, src, dim: x.scatter(dim, index, src[tuple(slice(n) for n in index.shape)]),
    "scatter_scalar": lambda x, index, dim, value: x.scatter(dim, index, value),
    "index": lambda x, i, j, apart: x[i, :, j] if apart else x[:, i, j],
    "index_put": lambda x, i, j, values, accumulate: x.index_put((i, j), values, accumulate),
    "scatter_reduce": lambda x, index, src, dim, reduce, include_self: x.scatter_reduce(
        dim, index, src, reduce, include_self=include_self),
    "take_along_dim": lambda x, index, dim: torch.take_along_dim(x, index, dim),
    "index_add": lambda x, index, src, dim, alpha: x.index_add(dim, index, src, alpha=alpha),
    "index_copy": lambda x, index, src, dim: x.index_copy(dim, index, src),
    "index_fill": lambda x, index, dim, value: x.index_fill(dim, index, value),
    "masked_scatter": lambda x, mask, src: x.masked_scatter(mask, src),
    "nonzero": torch.nonzero, "unique": unique, "bincount": bincount,
    "repeat_interleave": lambda x, repeats, dim: torch.repeat_interleave(x, repeats, dim),
    "argsort": lambda x, dim, descending: torch.argsort(x, dim=dim, descending=descending, stable=True),
    "median": lambda x, dim: dict(zip(("values", "indices"), torch.median(x, dim))),
    "quantile": lambda x, q, dim: torch.quantile(x, q.detach(), dim),
    "quantile_scalar": lambda x, q, dim: torch.quantile(x, q, dim),
    "diff": lambda x, n, dim: torch.diff(x, n, dim),
    "movedim": lambda x, source, destination: torch.movedim(x, source, destination),
    "diagonal": lambda x, offset, dim1, dim2: torch.diagonal(x, offset, dim1, dim2),
    "diag_embed": lambda x, offset, dim1, dim2: torch.diag_embed(x, offset, dim1, dim2),
    "diag": lambda x, offset: torch.diag(x, offset),
    "unbind": lambda x, dim: {f"out{i}": y for i, y in enumerate(torch.unbind(x, dim))},
    "meshgrid": lambda x, y, indexing: {f"out{i}": t for i, t in enumerate(torch.meshgrid(x, y, indexing=indexing))},
    "tensordot": lambda x, y, dims_x, dims_y: torch.tensordot(x, y, (dims_x, dims_y)),
    "baddbmm": lambda x, y, z, beta, alpha: torch.baddbmm(x, y, z, beta=beta, alpha=alpha),
    "normalize": lambda x, p, dim: F.normalize(x, p, dim),
    "pairwise_distance": lambda x, y, p, eps: F.pairwise_distance(x, y, p, eps),
    "conv_transpose1d": conv_transpose1d, "feedforward": feedforward, "rnn_relu": rnn_relu, "lstm": lstm,
}
# Signs of vectors are arbitrary, so their squares are compared.
def svd(a, full_matrices):
    u, s, vh = torch.linalg.svd(a, full_matrices)
    k = s.shape[-1]
    return {"s": s, "u": u[..., :k] ** 2, "vh": vh[..., :k, :] ** 2}


def slogdet(a):  # the sign has no gradient
    sign, logabsdet = torch.linalg.slogdet(a)
    return {"sign": sign.detach(), "logabsdet": logabsdet}


def eigh(a, uplo):
    values, vectors = torch.linalg.eigh(a, uplo)
    return {"values": values, "vectors": vectors ** 2}


REFERENCE |= {
    "solve": lambda a, b, left: torch.linalg.solve(a, b, left=left),
    "solve_triangular": lambda a, b, upper, left, unitriangular: torch.linalg.solve_triangular(
        a, b, upper=upper, left=left, unitriangular=unitriangular),
    "inv": lambda a: torch.linalg.inv(a), "det": lambda a: torch.linalg.det(a), "svd": svd, "eigh": eigh,
    "svdvals": lambda a: torch.linalg.svdvals(a), "eigvalsh": lambda a: torch.linalg.eigvalsh(a),
    "slogdet": slogdet,
    "cholesky": lambda a, upper: torch.linalg.cholesky(a, upper=upper),
    "qr": lambda a, mode: dict(zip(("q", "r"), torch.linalg.qr(a, mode))),
    "lstsq": lambda a, b: torch.linalg.lstsq(a, b).solution,
    "pinv": lambda a, rcond: torch.linalg.pinv(a, rtol=rcond) if rcond >= 0 else torch.linalg.pinv(a),
    "matrix_norm": lambda a, order, dim, keepdim: torch.linalg.matrix_norm(a, order, dim, keepdim),
    "matrix_norm_scalar": lambda a, order, dim, keepdim: torch.linalg.matrix_norm(a, float(order), dim, keepdim),
    "cdist": lambda x, y, p: torch.cdist(x, y, float(p)),
}
# torch.hardsigmoid multiplies by 1/6 in float32, whatever the dtype.
# torch.floor_divide has no gradient.
COMPOSED = {"hardsigmoid": lambda x: F.relu6(x + 3) / 6,
            "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor")}
REFERENCE["nan_to_num"] = lambda x, nan, posinf, neginf: torch.nan_to_num(x, nan, posinf, neginf)
REFERENCE["isclose"] = lambda x, y, rtol, atol, equal_nan: torch.isclose(x, y, rtol, atol, equal_nan)
REFERENCE["clamp_tensors"] = lambda x, low, high: torch.clamp(x, low, high)
REFERENCE["floor_divide_scalar"] = lambda x, value: torch.div(x, value, rounding_mode="floor")
REFERENCE["remainder_scalar"] = lambda x, value: torch.remainder(x, value)
REFERENCE["fmod_scalar"] = lambda x, value: torch.fmod(x, value)
REFERENCE["pow_scalar"] = lambda x, exponent: torch.pow(x, exponent)
REFERENCE["pow"] = lambda x, y: torch.pow(x, y)
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    REFERENCE[name + "_scalar"] = lambda x, value, op=getattr(torch, name): op(x, value)


# Inputs -------------------------------------------------------------------------------------------------
def normal(*shape, scale=1.0, layout="contiguous"):
    return ("normal", shape, scale, layout)


def off(*points):
    """A vector beside each of the points and far from them: where a function has kinks."""
    return values(*[p + d for p in (0, *points) for d in (-2, -0.5, -0.125, 0.125, 0.5, 2)])


def values(*numbers, dtype=torch.float32):
    return ("values", torch.tensor(numbers, dtype=dtype))


def mask(*shape):
    return ("mask", shape)


def targets(shape, dim, size):
    """Indices that are distinct along dim: what PyTorch writes for equal ones is not defined."""
    return ("targets", shape, dim, size)


def half_exact(x):
    return x.to(torch.bfloat16).to(torch.float16).to(torch.float32)


def drawn(spec, random, half):
    """The stored tensor of an input and how the op sees it."""
    kind, layout = spec[0], "contiguous"
    if kind == "normal":
        _, shape, scale, layout = spec
        base = list(shape)
        if layout == "transposed":
            base[-1], base[-2] = base[-2], base[-1]
            layout = {"transpose": [len(base) - 2, len(base) - 1]}
        elif layout == "sliced":
            base[-1] = 1 + 2 * base[-1]
            layout = {"slice": {"dim": len(base) - 1, "start": 1, "step": 2}}
        x = scale * torch.randn(base, generator=random)
    elif kind == "values":
        x = spec[1]
    elif kind == "mask":
        x = torch.rand(spec[1], generator=random) < 0.5
    else:
        _, shape, dim, size = spec
        order = torch.argsort(torch.rand([size if d == dim else n for d, n in enumerate(shape)], generator=random), dim)
        x = order.narrow(dim, 0, shape[dim]).contiguous()
    return (half_exact(x) if half and x.is_floating_point() else x), layout


def seen(x, layout):
    if layout == "contiguous":
        return x
    (kind, v), = layout.items()
    return x.transpose(*v) if kind == "transpose" else x[..., v["start"]::v["step"]]


# Cases --------------------------------------------------------------------------------------------------
class Family:
    def __init__(self, name):
        self.name, self.file, self.cases, self.tensors = name, name, [], {}

    def stored(self, key, x):
        self.tensors[key] = x.detach().contiguous().reshape(x.shape)
        return key

    def add(self, op, inputs, attrs=None, length=1, special=False, gradient=True, error=None):
        """One case in float32 and one whose inputs are exact in 16 bits."""
        for half in (False, True):
            name = f"{op}-{len(self.cases)}" + ("-special" if special else "") + ("_f16" if half else "")
            self.case(name, op, inputs, attrs or {}, length, half, error, gradient)

    def case(self, name, op, inputs, attrs, length, half, error, gradient=True):
        random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        case = {"name": name, "op": op, "attrs": attrs, "inputs": {}, "requires_grad": [], "outputs": {},
                "grad_outputs": {}, "grads": {}, "layout": {}, "expect": {"error": error} if error else "value",
                "notes": "", "len": length}
        leaves, arguments = {}, {}
        for arg, spec in inputs.items():
            if spec is None:
                case["inputs"][arg] = arguments[arg] = None
                continue
            x, layout = drawn(spec, random, half)
            case["inputs"][arg], case["layout"][arg] = self.stored(f"{name}/{arg}", x), layout
            leaves[arg] = x.double().requires_grad_(gradient) if x.is_floating_point() else x
            arguments[arg] = seen(leaves[arg], layout)
        self.cases.append(case)
        if error:
            try:
                REFERENCE[op](**arguments, **attrs)
            except ERRORS:
                return
            raise SystemExit(f"{name}: PyTorch does not object")
        outputs = REFERENCE[op](**arguments, **attrs)
        outputs = outputs if isinstance(outputs, dict) else {"out": outputs}
        self.results(case, leaves, outputs, random, half)

    def results(self, case, leaves, outputs, random, half):
        name, upstream = case["name"], {}
        for out, y in outputs.items():
            if y.requires_grad:
                upstream[out] = torch.randn(y.shape, generator=random)
                upstream[out] = half_exact(upstream[out]) if half or y.dtype != torch.float64 else upstream[out]
                case["grad_outputs"][out] = self.stored(f"{name}/upstream.{out}", upstream[out])
            wide = y.double() if y.is_floating_point() else y if y.dtype == torch.bool else y.long()
            case["outputs"][out] = self.stored(f"{name}/{out}", wide)
        if upstream:
            case["requires_grad"] = [arg for arg, x in leaves.items() if x.is_floating_point()]
            gradients = torch.autograd.grad([outputs[o] for o in upstream], [leaves[a] for a in case["requires_grad"]],
                                            [g.to(outputs[o].dtype) for o, g in upstream.items()], allow_unused=True)
            for arg, g in zip(case["requires_grad"], gradients):
                g = torch.zeros_like(leaves[arg]) if g is None else g
                case["grads"][arg] = self.stored(f"{name}/gradient.{arg}", g.double())

    def write(self, folder):
        header, data, end = {"__metadata__": {
            "format": "binade-parity-1", "family": self.name, "torch": torch.__version__.split("+")[0], "seed": "0",
            "cases": json.dumps(self.cases, separators=(",", ":"), allow_nan=False)}}, [], 0
        for key in sorted(self.tensors, key=lambda k: (-self.tensors[k].element_size(), k)):  # wide ones first: aligned
            x = self.tensors[key]
            data.append(ctypes.string_at(x.data_ptr(), x.nbytes) if x.numel() else b"")
            header[key] = {"dtype": ELEMENT[x.dtype], "shape": list(x.shape), "data_offsets": [end, end + len(data[-1])]}
            end += len(data[-1])
        head = json.dumps(header, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 8)
        path = pathlib.Path(folder) / f"{self.file}.safetensors"
        with path.open("wb") as file:
            for part in (struct.pack("<Q", len(head)), head, *data):
                file.write(part)
        print(f"{path}: {len(self.cases)} cases, {path.stat().st_size} bytes")


# The families: what the files hold ----------------------------------------------------------------------
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0)


def pointwise():
    """Pointwise ops, results and gradients within the tolerances."""
    f = Family("pointwise")
    for op, value in (("add_scalar", 0.7), ("mul_scalar", -1.3), ("rsub_scalar", 1.5), ("rdiv_scalar", 0.75),
                      ("div_scalar", -3.0)):
        f.add(op, {"x": off(1)}, {"value": value})
        f.add(op, {"x": normal(3, 5, layout="transposed")}, {"value": value})
        f.add(op, {"x": values(*SPECIAL)}, {"value": value}, special=True)
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        f.add(op + "_scalar", {"x": values(-1, 0, 1, 1, 2)}, {"value": 1})
        f.add(op + "_scalar", {"x": values(*SPECIAL)}, {"value": 0}, special=True)
        f.add(op + "_scalar", {"x": values(-3, 2, 7, dtype=torch.int64)}, {"value": 2})
    for op in ("where_scalar", "where_tensor_scalar"):
        f.add(op, {"cond": mask(3, 1, 5), "x": normal(4, 5)}, {"value": -1.5})
        f.add(op, {"cond": mask(7), "x": normal(7, layout="sliced")}, {"value": 0.25})
    f.add("gelu_tanh", {"x": normal(5, 7, scale=2)})
    f.add("gelu_tanh", {"x": normal(3, 5, layout="transposed")})
    f.add("relu6", {"x": off(6)})
    f.add("relu6", {"x": values(0, 6, -0.0, 7, -1)})
    f.add("relu6", {"x": values(*SPECIAL)}, special=True)
    f.add("relu6", {"x": normal(3, 5, scale=4, layout="transposed")})
    logic(f)
    rounding(f)
    derived(f)
    powers(f)
    return f


def powers(f):
    """Powers of integers, which wrap around."""
    whole = values(0, 1, 2, 3, 7, 200, dtype=torch.int64)
    for exponent in (0, 1, 2, 5, 62):
        f.add("pow_scalar", {"x": whole}, {"exponent": exponent})
    f.add("pow", {"x": whole, "y": values(0, 5, 63, 41, 1, 9, dtype=torch.int64)})
    negative = values(-1, -2, -3, 5, dtype=torch.int64)
    f.add("pow_scalar", {"x": negative}, {"exponent": 3})
    f.add("pow_scalar", {"x": values(0, 4, 9, dtype=torch.int64)}, {"exponent": 0.5})
    f.add("pow", {"x": negative, "y": values(63, 64, 41, 40, dtype=torch.int64)})


def rounding(f):
    """Divisions with rounding by a number, kinds of numbers, bounds that are tensors."""
    for op in ("floor_divide_scalar", "remainder_scalar", "fmod_scalar"):
        for value in (2, -3):
            f.add(op, {"x": off(1)}, {"value": value})
            f.add(op, {"x": values(*SPECIAL)}, {"value": value}, special=True, gradient=False)
            f.add(op, {"x": values(7, -7, 6, -6, 0, dtype=torch.int64)}, {"value": value})
    for nan, posinf, neginf in ((0.5, 3, -2), (0, 100, 7)):
        f.add("nan_to_num", {"x": values(*SPECIAL)}, {"nan": nan, "posinf": posinf, "neginf": neginf}, special=True)
        f.add("nan_to_num", {"x": normal(3, 5, layout="transposed")}, {"nan": nan, "posinf": posinf, "neginf": neginf})
    for rtol, atol, equal_nan in ((0.25, 0, False), (0, 0.5, True), (0, 0, True)):
        attrs = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
        f.add("isclose", {"x": values(1, -2, 3, 5, 0), "y": values(1.25, -2, 2, 4.75, 0.5)}, attrs)
        f.add("isclose", {"x": values(*SPECIAL), "y": values(*SPECIAL)}, attrs, special=True)
        f.add("isclose", {"x": values(*SPECIAL), "y": values(*SPECIAL[1:], SPECIAL[0])}, attrs, special=True)
    f.add("clamp_tensors", {"x": normal(4, 5), "low": normal(5), "high": normal(4, 1)})
    f.add("clamp_tensors", {"x": values(1, 2, 3, 5), "low": values(2, 2, 4, 0), "high": values(3, 3, 2, 4)})
    f.add("clamp_tensors", {"x": normal(3, 5, layout="transposed"), "low": normal(5), "high": None})
    f.add("clamp_tensors", {"x": normal(3, 5), "low": None, "high": values(0.25)})


def derived(f):
    """Cases of the ops of unary.h and binary.h that nobody else has, with the default values of their options."""
    known = set((HERE / "shared_ops.txt").read_text().split()) | {case["op"] for case in f.cases} | {"log_sigmoid", "dropout"}
    for header, count in (("unary.h", 1), ("binary.h", 2)):
        text = (HERE.parents[1] / "core/ops" / header).read_text()
        for name, more in re.findall(r"^Tensor (\w+)\(" + ", ".join([r"const Tensor& \w+"] * count) + r"(, [^)]*)?\);", text, re.M):
            options = re.findall(r"double (\w+) = ([-\d.e]+)", more or "")
            function = COMPOSED.get(name) or getattr(torch, name, None) or getattr(F, name, None)
            if name in known or not function or len(options) != (more or "").count(","):
                continue
            known.add(name)
            attrs = {option: float(value) for option, value in options}
            REFERENCE[name] = lambda function=function, **given: function(*given.values())
            positive = torch.isnan(function(*[torch.tensor(-0.5)] * count)).item()  # log2 and its like
            kinked = values(*[v for v in (-5, -3.25, -1.5, -0.5, -0.125, 0.125, 0.5, 1.5, 3.25, 5) if v > 0 or not positive])
            other = values(*reversed(kinked[1].tolist()))
            f.add(name, dict(zip("xy", (kinked, other)[:count])), attrs)
            f.add(name, dict(zip("xy", (values(*SPECIAL), values(*SPECIAL[1:], SPECIAL[0]))[:count])), attrs, special=True,
                  gradient=False)  # PyTorch has no one rule for gradients at NaN
            if not positive:
                f.add(name, dict(zip("xy", (normal(3, 5, layout="transposed"), normal(5))[:count])), attrs)


def logic(f):
    for op in ("logical_and", "logical_or", "logical_xor"):
        REFERENCE[op] = lambda x, y, op=getattr(torch, op): op(x, y)
        f.add(op, {"x": mask(3, 1, 4), "y": mask(2, 4)})
        f.add(op, {"x": values(*SPECIAL), "y": values(0, 1, 0, 1, 0, 0)}, special=True)
        f.add(op, {"x": values(0, 3, -2, 0, dtype=torch.int64), "y": values(0, 0, 1, 5, dtype=torch.int64)})
        f.add(op, {"x": mask(3), "y": mask(4)}, error="shapes")
    REFERENCE["logical_not"] = torch.logical_not
    f.add("logical_not", {"x": mask(3, 5)})
    f.add("logical_not", {"x": values(*SPECIAL)}, special=True)
    f.add("logical_not", {"x": values(0, 3, -2, dtype=torch.int64)})


def shape():
    """Ops that move elements: results are exact."""
    f = Family("shape")
    for repeats in ([2], [2, 3], [2, 1, 3], [0, 2], [1, 2, 1, 2], []):
        f.add("tile", {"x": normal(3, 4)}, {"repeats": repeats}, length=max(1, math.prod(repeats)))
    f.add("tile", {"x": normal(2, 3, 2, layout="transposed")}, {"repeats": [2, 2]}, length=4)
    f.add("tile", {"x": normal()}, {"repeats": [3]}, length=3)
    for dim, index in ((0, 0), (1, -1), (-1, 2), (-3, 1)):
        f.add("select", {"x": normal(2, 3, 5)}, {"dim": dim, "index": index})
        f.add("select", {"x": normal(2, 3, 5, layout="transposed")}, {"dim": dim, "index": index})
    f.add("select", {"x": normal(2, 3)}, {"dim": 1, "index": 3}, error="index out of range")
    f.add("select", {"x": normal(2, 3)}, {"dim": 2, "index": 0}, error="dim out of range")
    scatter(f)
    f.add("contiguous", {"x": normal(3, 5, layout="transposed")})
    f.add("contiguous", {"x": normal(3, 5)})
    f.add("channels_last", {"x": normal(2, 3, 4, 5)})
    f.add("channels_last", {"x": normal(2, 3, 4, 5, layout="transposed")})
    f.add("to_device", {"x": normal(3, 5, layout="transposed")})
    for dtype in ("f16", "bf16", "f32", "f64"):
        f.add("cast", {"x": normal(5, 3)}, {"dtype": dtype})
        f.add("cast", {"x": values(*SPECIAL, 1e-6, 3e-8, 65519, -7)}, {"dtype": dtype}, special=True)
    f.add("cast", {"x": values(-2.75, -0.5, 0, 0.5, 2.75, 100)}, {"dtype": "i64"})
    f.add("cast", {"x": values(-2.75, -0.5, 0, 0.5, 2.75, 100)}, {"dtype": "i32"})
    f.add("cast", {"x": values(0, 0.5, 1.75, 200)}, {"dtype": "u8"})
    f.add("cast", {"x": values(*SPECIAL)}, {"dtype": "bool"}, special=True)
    return f


def scatter(f):
    for sizes, index, dim in (((4, 5), (2, 5), 0), ((4, 5), (3, 2), 1), ((2, 3, 4), (2, 2, 3), -1), ((6,), (4,), 0)):
        where = targets(index, dim % len(sizes), sizes[dim])
        f.add("scatter", {"x": normal(*sizes), "index": where, "src": normal(*index)}, {"dim": dim})
        larger = normal(*[n + 1 for n in index])  # only its corner is used
        f.add("scatter", {"x": normal(*sizes), "index": where, "src": larger}, {"dim": dim})
        f.add("scatter_scalar", {"x": normal(*sizes), "index": where}, {"dim": dim, "value": -2.5})
    where = targets((3, 2), 0, 4)
    f.add("scatter", {"x": normal(4, 2, layout="transposed"), "index": where, "src": normal(3, 2, layout="sliced")},
          {"dim": 0})
    f.add("scatter", {"x": normal(4, 2), "index": where, "src": normal(2, 2)}, {"dim": 0}, error="src too small")
    f.add("scatter", {"x": normal(2, 2), "index": values(0, 1, 5, dtype=torch.int64), "src": normal(3)}, {"dim": 0},
          error="ranks")
    f.add("scatter_scalar", {"x": normal(3), "index": values(0, 3, dtype=torch.int64)}, {"dim": 0, "value": 1},
          error="index out of range")


def whole(*numbers):
    return values(*numbers, dtype=torch.int64)


def index():
    """Indexing, selection by values and arrangement: results are exact."""
    f = Family("index")
    f.add("index", {"x": normal(2, 4, 3, 2), "i": ("values", torch.tensor([[1], [-1]])), "j": whole(0, 2, -3)},
          {"apart": False})
    f.add("index", {"x": normal(4, 2, 3, layout="transposed"), "i": whole(3, 0, 0, 1), "j": whole(2, -1, 0, 2)},
          {"apart": True})
    f.add("index", {"x": normal(2, 4, 3), "i": whole(4), "j": whole(0)}, {"apart": False}, error="index out of range")
    for accumulate in (False, True):
        i, j = whole(0, 3, -2), whole(1, 0, 2)
        f.add("index_put", {"x": normal(4, 3, 2), "i": i, "j": j, "values": normal(3, 2)}, {"accumulate": accumulate})
        f.add("index_put", {"x": normal(4, 3), "i": i, "j": j, "values": normal()}, {"accumulate": accumulate}, length=3)
    f.add("take_along_dim", {"x": normal(3, 4), "index": ("values", torch.tensor([[0, 3, 1]]))}, {"dim": 1})
    f.add("index_copy", {"x": normal(3, 5), "index": whole(4, 0), "src": normal(3, 2)}, {"dim": 1})
    f.add("index_fill", {"x": normal(3, 5), "index": whole(4, 0)}, {"dim": 1, "value": -1.5})
    f.add("masked_scatter", {"x": normal(3, 4), "mask": mask(3, 4), "src": normal(12)})
    f.add("nonzero", {"x": values(0, 1, -0.0, math.nan, 2, 0)})
    f.add("nonzero", {"x": mask(2, 3, 4)})
    f.add("unique", {"x": values(3, -1, 3, 0, -1, 3, 0.5)}, gradient=False)
    f.add("unique", {"x": ("values", torch.tensor([[5, 2], [2, -7]]))})
    for repeats in (whole(2, 0, 3), whole(0, 0, 1)):
        f.add("repeat_interleave", {"x": normal(2, 3), "repeats": repeats}, {"dim": 1}, length=3)
    for descending in (False, True):
        f.add("argsort", {"x": values(3, math.nan, 1, 3, -math.inf, 1)}, {"dim": 0, "descending": descending},
              special=True, gradient=False)
    for dim in (0, 1, -1):
        f.add("median", {"x": normal(5, 6)}, {"dim": dim})
    f.add("median", {"x": values(3, math.nan, 1, math.nan)}, {"dim": 0}, special=True, gradient=False)
    f.add("movedim", {"x": normal(2, 3, 4)}, {"source": [0, 2], "destination": [-1, 0]})
    for offset, d1, d2 in ((0, 0, 1), (2, 0, -1), (-1, 2, 0), (9, 0, 1)):
        f.add("diagonal", {"x": normal(3, 4, 5)}, {"offset": offset, "dim1": d1, "dim2": d2})
        f.add("diag_embed", {"x": normal(2, 3)}, {"offset": offset, "dim1": d1, "dim2": d2})
    f.add("diag", {"x": normal(4)}, {"offset": -1})
    f.add("diag", {"x": normal(4, 3)}, {"offset": 1})
    f.add("unbind", {"x": normal(2, 3, 4)}, {"dim": 1})
    for indexing in ("ij", "xy"):
        f.add("meshgrid", {"x": normal(3), "y": normal(4)}, {"indexing": indexing}, length=4)
    return f


def combinations():
    """Sums and interpolations of chosen elements, and distances."""
    f = Family("combinations")
    for include_self in (True, False):
        for reduce in ("sum", "mean", "prod", "amax", "amin"):
            attrs = {"dim": 1, "reduce": reduce, "include_self": include_self}
            where = ("values", torch.tensor([[0, 2, 0, 2, 0], [3, 3, 3, 3, 1]]))
            x, src = normal(3, 4), normal(2, 5)
            if reduce[0] == "a":  # no ties
                x, src = (("values", t.reshape(shape)) for t, shape in (
                    (torch.tensor([3, -1, 2, 7, 0, 5, -4, 1, 8, -3, 6, 4.0]) + 0.5, (3, 4)),
                    (torch.tensor([9, -2, 3, 4, 5, -5, 1, 0, 8, 2.0]), (2, 5))))
            f.add("scatter_reduce", {"x": x, "index": where, "src": src}, attrs, length=6)
    f.add("scatter_reduce", {"x": values(2, 0, 3, 0), "index": whole(0, 0, 1, 2, 2), "src": values(0, 5, 4, 0, 0)},
          {"dim": 0, "reduce": "prod", "include_self": True}, length=3)
    f.add("index_add", {"x": normal(3, 5), "index": whole(4, 0, 4), "src": normal(3, 3)}, {"dim": 1, "alpha": -1.5},
          length=3)
    f.add("bincount", {"x": whole(4, 0, 4, 1), "weights": normal(4)}, {"minlength": 3}, length=3)
    f.add("bincount", {"x": whole(4, 0, 4, 1), "weights": None}, {"minlength": 7})
    for dim in (0, 1, -1):
        f.add("quantile", {"x": normal(5, 6), "q": values(0, 0.25, 1)}, {"dim": dim}, gradient=True)
        f.add("quantile_scalar", {"x": normal(5, 6)}, {"q": 0.375, "dim": dim})
    for n, dim in ((1, 0), (2, -1), (9, 1)):
        f.add("diff", {"x": normal(3, 5)}, {"n": n, "dim": dim})
    f.add("tensordot", {"x": normal(3, 4, 5), "y": normal(2, 5, 3)}, {"dims_x": [2, 0], "dims_y": [1, 2]}, length=15)
    for sizes in ((2, 3, 5), (5,), (2, 1, 1)):
        f.add("baddbmm", {"x": normal(*sizes), "y": normal(2, 3, 4), "z": normal(2, 4, 5)}, {"beta": 0.5, "alpha": -2},
              length=4)
    for p, dim in ((2, 1), (1, 0), (3, -1)):
        f.add("normalize", {"x": normal(3, 5)}, {"p": p, "dim": dim}, length=5)
        f.add("pairwise_distance", {"x": normal(3, 5), "y": normal(1, 5)}, {"p": p, "eps": 1e-3}, length=5)
    return f


# A matrix without short cuts: orthogonal factors around the given singular values.
def conditioned(*shape, singular, symmetric=False):
    random = torch.Generator().manual_seed(len(shape) * 1000 + sum(shape))
    m, n = shape[-2:]
    u = torch.linalg.qr(torch.randn(*shape[:-1], m, generator=random, dtype=torch.float64)).Q
    v = u if symmetric else torch.linalg.qr(torch.randn(*shape[:-2], n, n, generator=random, dtype=torch.float64)).Q
    k = min(m, n)
    s = torch.tensor([singular[i % len(singular)] * (1 + i // len(singular)) for i in range(k)], dtype=torch.float64)
    x = (u[..., :k] * s) @ v[..., :k].mT
    return "values", (0.5 * (x + x.mT) if symmetric else x).float()


WELL, ILL, CONDITION = (1.0, 2.5, 4.0), (1.0, 30.0, 1000.0), 1000.0


def linalg():
    """Linear algebra. The length of badly conditioned cases has the square of the condition number."""
    f = Family("linalg")
    for singular, condition in ((WELL, 4.0), (ILL, CONDITION)):
        length = 4 * condition ** 2

        def matrix(*shape, symmetric=False):
            return conditioned(*shape, singular=singular, symmetric=symmetric)

        for shape in ((3, 3), (2, 1, 3, 3)):
            for op in ("inv", "det", "slogdet"):
                f.add(op, {"a": matrix(*shape)}, length=length)
            f.add("cholesky", {"a": matrix(*shape, symmetric=True)}, {"upper": len(shape) > 2}, length=length)
            f.add("eigh", {"a": matrix(*shape, symmetric=True)}, {"uplo": "LU"[len(shape) > 2]}, length=length)
            f.add("solve", {"a": matrix(*shape), "b": normal(4, 3, 2)}, {"left": True}, length=length)
            f.add("solve", {"a": matrix(*shape), "b": normal(2, 3)}, {"left": False}, length=length)
            f.add("svd", {"a": matrix(*shape)}, {"full_matrices": False}, length=length)
            f.add("qr", {"a": matrix(*shape)}, {"mode": "complete"}, length=length)
        f.add("lstsq", {"a": matrix(5, 3), "b": normal(5, 2)}, length=length ** 2 / 16)
        f.add("lstsq", {"a": matrix(2, 3, 5), "b": normal(2, 3, 1)}, length=length ** 2 / 16)
        f.add("solve", {"a": matrix(3, 3), "b": normal(3)}, {"left": True}, length=length)
        f.add("eigvalsh", {"a": matrix(3, 3, symmetric=True)}, length=length)
        for shape in ((5, 3), (2, 3, 4)):
            f.add("qr", {"a": matrix(*shape)}, {"mode": "reduced"}, length=length)
            f.add("svd", {"a": matrix(*shape)}, {"full_matrices": True}, length=length)
            f.add("svdvals", {"a": matrix(*shape)}, length=length)
            for order in ("fro", "nuc"):
                f.add("matrix_norm", {"a": matrix(*shape)}, {"order": order, "dim": [-2, -1], "keepdim": False},
                      length=length)
    for order in (1, -1, 2, -2, "inf", "-inf"):
        f.add("matrix_norm_scalar", {"a": normal(2, 3, 4)}, {"order": order, "dim": [0, -1], "keepdim": True}, length=64)
    for upper in (True, False):
        for left, b in ((True, normal(3, 2)), (False, normal(2, 2, 3))):
            f.add("solve_triangular", {"a": conditioned(3, 3, singular=(4.0,)), "b": b},
                  {"upper": upper, "left": left, "unitriangular": not left}, length=256)
    singular_and_empty(f)
    pseudoinverses(f)
    return f


def pseudoinverses(f):
    for length, singular in ((64, WELL), (64 * 900, (1.0, 30.0))):
        for shape in ((3, 3), (2, 5, 3), (2, 4)):
            f.add("pinv", {"a": conditioned(*shape, singular=singular)}, {"rcond": -1}, length=length)
    f.add("pinv", {"a": ("values", torch.tensor([[1.0, 2], [2, 4], [3, 6]]))}, {"rcond": 1e-3}, length=256)
    f.add("pinv", {"a": ("values", torch.eye(3))}, {"rcond": -1}, length=64)
    f.add("pinv", {"a": normal(3, 0)}, {"rcond": -1})


def distances():
    """Distances of all pairs of rows."""
    f = Family("distances")
    for p in (0.5, 1, 2, 3, "inf"):
        f.add("cdist", {"x": normal(2, 3, 4), "y": normal(5, 4)}, {"p": p}, length=64)
    for p in (1, 2):  # distance 0
        f.add("cdist", {"x": ("values", torch.tensor([[1.0, 2], [3, 4]])), "y": ("values", torch.tensor([[1.0, 2], [0, 1]]))},
              {"p": p}, length=4)
    f.add("cdist", {"x": normal(0, 3), "y": normal(2, 3)}, {"p": 2})
    f.add("cdist", {"x": normal(3, 3), "y": normal(2, 4)}, {"p": 2}, error="row lengths")
    return f


def singular_and_empty(f):
    singular = ("values", torch.tensor([[[2.0, 1], [1, 3]], [[1, 2], [2, 4]]]))
    f.add("inv", {"a": singular}, error="singular")
    f.add("solve", {"a": singular, "b": normal(2, 1)}, {"left": True}, error="singular")
    f.add("cholesky", {"a": singular}, {"upper": False}, error="not positive definite")
    f.add("solve", {"a": normal(3, 3), "b": normal(2, 1)}, {"left": True}, error="rows")
    f.add("inv", {"a": normal(2, 3)}, error="not square")
    f.add("qr", {"a": normal(2, 3)}, {"mode": "full"}, error="mode")
    f.add("svdvals", {"a": ("values", torch.full((2, 2), math.nan))}, error="NaN")
    for op in ("det", "slogdet", "svdvals"):  # PyTorch's gradient of a singular matrix is not that of det
        f.add(op, {"a": singular}, length=16, gradient=False)
    f.add("svdvals", {"a": ("values", torch.tensor([[1.0, 2], [2, 4], [3, 6]]))}, length=64)
    f.add("lstsq", {"a": ("values", torch.tensor([[1.0, 2], [2, 4], [3, 6]])), "b": normal(3, 2)}, length=1024)
    for op, attrs in (("inv", {}), ("det", {}), ("slogdet", {}), ("cholesky", {"upper": False}), ("eigh", {"uplo": "L"}),
                      ("svd", {"full_matrices": True}), ("qr", {"mode": "complete"})):
        for shape in ((0, 2, 2), (2, 0, 0)):
            f.add(op, {"a": normal(*shape)}, attrs)
    for shape in ((0, 3), (3, 0)):
        for mode in ("reduced", "complete"):
            f.add("qr", {"a": normal(*shape)}, {"mode": mode}, gradient=False)
        for full in (True, False):
            f.add("svd", {"a": normal(*shape)}, {"full_matrices": full}, gradient=False)
        f.add("lstsq", {"a": normal(*shape), "b": normal(shape[0], 2)}, gradient=False)
        f.add("matrix_norm", {"a": normal(*shape)}, {"order": "nuc", "dim": [-2, -1], "keepdim": False})
        f.add("matrix_norm_scalar", {"a": normal(*shape)}, {"order": 1, "dim": [-2, -1], "keepdim": False}, gradient=False)
    f.add("solve", {"a": normal(0, 0), "b": normal(0, 3)}, {"left": True})
    f.add("solve", {"a": normal(0, 2, 2), "b": normal(2, 3)}, {"left": True})


def layers():
    """Sums and products: convolution, recurrent layers, feed-forward, sum_to and cumprod."""
    f = Family("layers")
    products(f)
    for groups, stride, padding, dilation, more in ((1, 1, 0, 1, 0), (1, 2, 1, 1, 1), (2, 3, 2, 2, 2), (3, 1, 1, 3, 0),
                                                    (1, 2, 0, 3, 2)):
        f.add("conv_transpose1d", {"x": normal(2, 6, 7), "weight": normal(6, 4, 3), "bias": normal(4 * groups)},
              {"stride": [stride], "padding": [padding], "dilation": [dilation], "groups": groups,
               "output_padding": [more]}, length=36)
    plain = {"stride": [2], "padding": [1], "dilation": [1], "groups": 1, "output_padding": [0]}
    f.add("conv_transpose1d", {"x": normal(1, 3, 5, layout="transposed"), "weight": normal(3, 2, 4, layout="sliced"),
                               "bias": None}, plain, length=16)
    f.add("conv_transpose1d", {"x": normal(1, 3, 5), "weight": normal(4, 2, 3), "bias": None}, plain, error="channels")
    f.add("conv_transpose1d", {"x": normal(1, 3, 5), "weight": normal(3, 2, 3), "bias": normal(3)}, plain, error="bias")
    for biases in (True, False):
        b1, b2 = (normal(9), normal(5)) if biases else (None, None)
        f.add("feedforward", {"x": normal(3, 4, 6), "w1": normal(9, 6, scale=0.5), "b1": b1,
                              "w2": normal(5, 9, scale=0.5), "b2": b2}, length=12 * 9)
    f.add("feedforward", {"x": normal(5, 6, layout="transposed"), "w1": normal(9, 6, layout="sliced"), "b1": None,
                          "w2": normal(5, 9, layout="transposed"), "b2": None}, length=5 * 9)
    f.add("feedforward", {"x": normal(5, 6), "w1": normal(9, 6), "b1": None, "w2": normal(5, 8), "b2": None},
          error="shapes")
    for sizes, to in (((3, 4), [4]), ((3, 4), [3, 1]), ((2, 3, 4), [1, 4]), ((2, 3), []), ((2, 3), [2, 3])):
        f.add("sum_to", {"x": normal(*sizes)}, {"shape": to}, length=math.prod(sizes))
    f.add("sum_to", {"x": normal(2, 5, layout="transposed")}, {"shape": [1, 5]}, length=2)
    f.add("sum_to", {"x": normal(3, 4)}, {"shape": [3]}, error="shapes")
    recurrent(f)
    return f


def products(f):
    for sizes, dim in (((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 5), -2), ((4, 0), 1), ((), 0)):
        f.add("cumprod", {"x": normal(*sizes)}, {"dim": dim}, length=max(1, math.prod(sizes)))
    f.add("cumprod", {"x": normal(3, 4, layout="transposed")}, {"dim": 1}, length=4)
    for zeros in ((2, 0, 3, -1, 0.5), (0, 2, 0, -1, 3), (1, -2, 3, 4, 0), (0, 0, 0, 0, 0)):
        f.add("cumprod", {"x": values(*zeros)}, {"dim": 0}, length=5)
    f.add("cumprod", {"x": values(2, 0, -3, 4, dtype=torch.int64)}, {"dim": 0})
    f.add("cumprod", {"x": values(2, math.nan, 0, math.inf, 1)}, {"dim": 0}, length=5, special=True, gradient=False)
    f.add("cumprod", {"x": normal(3, 4)}, {"dim": 2}, error="dim out of range")


def recurrent(f):
    steps, batch, size, hidden, projection = 5, 3, 4, 6, 2
    for number, (batch_first, reverse, biases) in enumerate(((False, False, True), (True, False, False),
                                                             (False, True, True), (True, True, True))):
        x = normal(*((batch, steps) if batch_first else (steps, batch)), size)
        attrs = {"batch_first": batch_first, "reverse": reverse}
        for op, gates in (("rnn_relu", 1), ("lstm", 4)):
            state = projection if op == "lstm" and number % 2 == 0 else hidden
            b_ih, b_hh = (normal(gates * hidden, scale=0.4), normal(gates * hidden, scale=0.4)) if biases else (None, None)
            inputs = {"x": x, "h0": normal(batch, state), "weight_ih": normal(gates * hidden, size, scale=0.4),
                      "weight_hh": normal(gates * hidden, state, scale=0.4), "bias_ih": b_ih, "bias_hh": b_hh}
            if op == "lstm":
                hr = normal(projection, hidden, scale=0.4) if state == projection else None
                inputs = {**inputs, "c0": normal(batch, hidden), "weight_hr": hr}
            f.add(op, inputs, attrs, length=steps * batch * hidden)


def random():
    """Copies, and draws whose outcome is certain: other numbers than PyTorch's are drawn."""
    f = Family("random")
    for layout in ("contiguous", "transposed", "sliced"):
        f.add("clone", {"x": normal(3, 5, layout=layout)})
    f.add("clone", {"x": normal()})
    f.add("bernoulli", {"p": values(0, 1, 1, 0, 1, 0, 0)}, gradient=False)
    f.add("bernoulli", {"p": values(0, 1.5)}, error="not a probability", gradient=False)
    f.add("bernoulli", {"p": values(math.nan, 0.5)}, error="not a probability", gradient=False)
    certain = values(0, 0, 3, 0)
    f.add("multinomial", {"p": certain}, {"samples": 3, "replacement": True}, gradient=False)
    f.add("multinomial", {"p": certain}, {"samples": 1, "replacement": False}, gradient=False)
    f.add("multinomial", {"p": values(1, -1)}, {"samples": 1, "replacement": True}, error="negative", gradient=False)
    f.add("multinomial", {"p": values(0, 0)}, {"samples": 1, "replacement": True}, error="all 0", gradient=False)
    f.add("multinomial", {"p": values(1, math.inf)}, {"samples": 1, "replacement": True}, error="infinite",
          gradient=False)
    f.add("multinomial", {"p": normal(2, 2, 2)}, {"samples": 1, "replacement": True}, error="rank", gradient=False)
    return f


FAMILIES = (pointwise, shape, index, combinations, layers, random, linalg, distances)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "cases")
    folder.mkdir(parents=True, exist_ok=True)
    import generate_everyday
    import generate_models
    import generate_modules
    for family in (*FAMILIES, generate_everyday.everyday, generate_modules.modules, generate_models.models):
        family().write(folder)


if __name__ == "__main__":
    main()
