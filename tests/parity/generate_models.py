#!/usr/bin/env python3
"""Writes the parity cases of whole models: generate_models.py [OUT] [--full], by default cases/.

A case is a model with drawn weights under the names and in the layout of its published checkpoint: GPT-2, whose
weights of attn.c_* and mlp.c_* are [in, out], and torchvision's ResNet. The forms of both are written out here, so
only torch is needed. tests/parity/models.cpp compares logits, loss, gradients, running statistics and the losses of
a few optimizer steps. --full writes OUT/models-full.safetensors (2 GB): GPT-2 124M and ResNet-50 at their true size,
for parity_runner --dtype f64 and --dtype f32.
"""
import argparse
import pathlib
import zlib

import torch
import torch.nn.functional as F

import generate
from generate import Family, half_exact

ADAMW = {"op": "adamw", "lr": 0.003, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "amsgrad": False}
SGD = {"op": "sgd", "lr": 0.01, "momentum": 0.9, "dampening": 0.0, "weight_decay": 5e-4, "nesterov": False}


# GPT-2 --------------------------------------------------------------------------------------------------
def gpt2(x, p, buffers, layers, heads, ln_eps):
    def norm(h, name):
        return F.layer_norm(h, h.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"], ln_eps)

    def conv1d(h, name):
        return h @ p[f"{name}.weight"] + p[f"{name}.bias"]
    h = p["wte.weight"][x] + p["wpe.weight"][:x.shape[1]]
    later = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
    for i in range(layers):
        width = h.shape[-1]
        q, k, v = (part.unflatten(-1, (heads, width // heads)).transpose(1, 2)
                   for part in conv1d(norm(h, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(width, -1))
        scores = (q @ k.mT / (width // heads) ** 0.5).masked_fill(later, -torch.inf)
        h = h + conv1d((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), f"h.{i}.attn.c_proj")
        inner = F.gelu(conv1d(norm(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        h = h + conv1d(inner, f"h.{i}.mlp.c_proj")
    return norm(h, "ln_f") @ p["wte.weight"].T


def gpt2_shapes(vocabulary, context, width, layers, scale):
    shapes = {"wte.weight": ((vocabulary, width), scale), "wpe.weight": ((context, width), scale)}

    def conv1d(name, inputs, outputs):
        shapes.update({f"{name}.weight": ((inputs, outputs), scale), f"{name}.bias": ((outputs,), scale)})

    def norm(name):
        shapes.update({f"{name}.weight": ((width,), "near 1"), f"{name}.bias": ((width,), 0.1)})
    for i in range(layers):
        norm(f"h.{i}.ln_1")
        conv1d(f"h.{i}.attn.c_attn", width, 3 * width)
        conv1d(f"h.{i}.attn.c_proj", width, width)
        norm(f"h.{i}.ln_2")
        conv1d(f"h.{i}.mlp.c_fc", width, 4 * width)
        conv1d(f"h.{i}.mlp.c_proj", 4 * width, width)
    norm("ln_f")
    return shapes


# ResNet -------------------------------------------------------------------------------------------------
def resnet(x, p, buffers, depth, blocks, small_images):
    def conv(h, name, stride=1):
        w = p[f"{name}.weight"]
        return F.conv2d(h, w, None, stride, w.shape[-1] // 2)

    def norm(h, name):
        return F.batch_norm(h, buffers[f"{name}.running_mean"], buffers[f"{name}.running_var"], p[f"{name}.weight"],
                            p[f"{name}.bias"], training=True)

    def block(h, at, stride):
        count = 3 if depth >= 50 else 2
        y = h
        for i in range(1, count + 1):
            y = norm(conv(y, f"{at}.conv{i}", stride if i == count - 1 else 1), f"{at}.bn{i}")
            y = F.relu(y) if i < count else y
        if f"{at}.downsample.0.weight" in p:
            h = norm(conv(h, f"{at}.downsample.0", stride), f"{at}.downsample.1")
        return F.relu(y + h)
    h = F.relu(norm(conv(x, "conv1", 1 if small_images else 2), "bn1"))
    h = h if small_images else F.max_pool2d(h, 3, 2, 1)
    for stage, count in enumerate(blocks):
        for i in range(count):
            h = block(h, f"layer{stage + 1}.{i}", 2 if stage > 0 and i == 0 else 1)
    return F.linear(h.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def resnet_shapes(channels, classes, width, depth, blocks, small_images, last_norm="near 1"):
    """`last_norm`: the weight of a block's last batch norm."""
    shapes = {}

    def conv(name, out, inputs, kernel):
        shapes[f"{name}.weight"] = ((out, inputs, kernel, kernel), (2 / (inputs * kernel * kernel)) ** 0.5)

    def norm(name, size, weight="near 1"):
        shapes.update({f"{name}.weight": ((size,), weight), f"{name}.bias": ((size,), 0.1)})
    conv("conv1", width, channels, 3 if small_images else 7)
    norm("bn1", width)
    inputs = width
    for stage, count in enumerate(blocks):
        inner = width << stage
        out = 4 * inner if depth >= 50 else inner
        for i in range(count):
            at = f"layer{stage + 1}.{i}"
            row = ((inner, inputs, 1), (inner, inner, 3), (out, inner, 1)) if depth >= 50 else (
                (inner, inputs, 3), (inner, inner, 3))
            for number, (to, of, kernel) in enumerate(row, 1):
                conv(f"{at}.conv{number}", to, of, kernel)
                norm(f"{at}.bn{number}", to, last_norm if number == len(row) else "near 1")
            if inputs != out or (stage > 0 and i == 0):
                conv(f"{at}.downsample.0", out, inputs, 1)
                norm(f"{at}.downsample.1", out)
            inputs = out
    shapes.update({"fc.weight": ((classes, inputs), inputs ** -0.5), "fc.bias": ((classes,), 0.1)})
    return shapes


# Cases --------------------------------------------------------------------------------------------------
def drawn(shapes, random, exact):
    """Weights in float32, and in 16 bits exact if wanted."""
    result = {}
    for name, (shape, scale) in shapes.items():
        w = torch.randn(shape, generator=random)
        w = float(scale.split()[1]) * (1 + 0.2 * w) if isinstance(scale, str) else scale * w
        result[name] = half_exact(w) if exact else w
    return result


def statistics(parameters, dtype=torch.float64):
    """Running statistics of every batch norm, as they begin: conv and linear layers have no 1-d weight."""
    names = [name[:-len(".weight")] for name, w in parameters.items() if name.endswith(".weight") and w.dim() == 1]
    return {f"{name}.{kind}": make(parameters[f"{name}.weight"].shape, dtype=dtype) for name in names
            for kind, make in (("running_mean", torch.zeros), ("running_var", torch.ones))}


def losses_of(forward, weights, has_norms, y, hyper, steps, dtype=torch.float64):
    leaves = {name: w.to(dtype, copy=True).requires_grad_() for name, w in weights.items()}
    more = {key: value for key, value in hyper.items() if key != "op"}
    optimizer = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[hyper["op"]](leaves.values(), **more)
    buffers, losses = statistics(weights, dtype) if has_norms else {}, []
    for _ in range(steps + 1):
        logits = forward(leaves, buffers)
        loss = F.cross_entropy(logits.flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def f32_deviation(model, weights, given, y, attrs, gradients, losses, hyper):
    """How far PyTorch's own f32 is from these results in f64: of the gradients the largest ratio of the root mean
    squares of differences and values, of the losses the largest relative difference. An activation that is rounded to the other side of relu's
    kink changes gradients of a deep network by percents."""
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    logits = model(given, leaves, statistics(weights, torch.float32), **attrs)
    F.cross_entropy(logits.flatten(0, -2), y.flatten()).backward()
    found = max(((leaf.grad.double() - gradients[name].grad).norm() / gradients[name].grad.norm()).item()
                for name, leaf in leaves.items())
    narrow = losses_of(lambda p, buffers: model(given, p, buffers, **attrs), weights, True, y, hyper,
                       len(losses) - 1, torch.float32)
    return {"gradients": found, "losses": ((narrow - losses) / losses).abs().max().item()}


def add(f, name, model, x, y, shapes, attrs, hyper, steps, length=1024):
    """x is a shape of images or of tokens below `classes`, y a shape of labels. `length` is that of the sums that the
    tolerances are for; above 1024 the case also says how far PyTorch's f32 is from its f64."""
    random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    exact, classes = name.endswith("_f16"), shapes.get("fc.bias", shapes.get("wte.weight"))[0][0]
    weights = drawn(shapes, random, exact)
    has_norms = model is resnet
    given = torch.randn(x, generator=random) if has_norms else torch.randint(classes, x, generator=random)
    given = half_exact(given) if exact and has_norms else given
    labels = torch.randint(classes, y, generator=random)
    wide = given.double() if has_norms else given

    def forward(p, buffers):
        return model(wide, p, buffers, **attrs)
    leaves = {key: w.double().requires_grad_() for key, w in weights.items()}
    buffers = statistics(weights) if has_norms else {}
    logits = forward(leaves, buffers)
    loss = F.cross_entropy(logits.flatten(0, -2), labels.flatten())
    loss.backward()
    losses = losses_of(forward, weights, has_norms, labels, hyper, steps)
    outputs = {"logits": logits, "loss": loss, **buffers, "losses": losses}
    if length > 1024:
        attrs = {**attrs, "f32_deviation": f32_deviation(model, weights, given, labels, attrs, leaves, losses, hyper)}
    inputs, number = {"x": given, "y": labels, **weights}, len(f.cases)
    f.cases.append({
        "name": name, "op": f"model_{model.__name__}", "attrs": {**attrs, "optimizer": hyper, "steps": steps, "clip": None},
        "inputs": {key: f.stored(f"{number}.{key}", value) for key, value in inputs.items()},
        "requires_grad": list(weights), "grad_outputs": {}, "layout": {key: "contiguous" for key in inputs},
        "outputs": {key: f.stored(f"{number}.out.{key}", value) for key, value in outputs.items()},
        "grads": {key: f.stored(f"{number}.d.{key}", leaf.grad) for key, leaf in leaves.items()},
        "expect": "value", "notes": "", "len": length})


def models():
    """GPT-2 and ResNet of a few blocks and channels."""
    f = Family("models")
    attrs = {"layers": 2, "heads": 2, "ln_eps": 1e-5}
    add(f, "model_gpt2-published_f16", gpt2, (3, 5), (3, 5), gpt2_shapes(11, 7, 8, 2, 0.3), attrs, ADAMW, 5)
    attrs = {"depth": 50, "blocks": [2, 1, 1, 1], "small_images": False}
    # No 16-bit cases: in 13 rounded convolutions with relu single gradients change by more than the bounds.
    add(f, "model_resnet-bottleneck", resnet, (4, 1, 40, 36), (4,), resnet_shapes(1, 5, 2, **attrs), attrs, SGD, 5)
    return f


def full():
    f = Family("models")
    f.file = "models-full"
    attrs = {"layers": 12, "heads": 12, "ln_eps": 1e-5}
    add(f, "model_gpt2-124M", gpt2, (2, 48), (2, 48), gpt2_shapes(50257, 1024, 768, 12, 0.02), attrs, ADAMW, 1)
    attrs = {"depth": 50, "blocks": [3, 4, 6, 3], "small_images": False}
    # A network whose blocks change little, as trained ones do; else rounding errors grow with every block.
    shapes = resnet_shapes(3, 1000, 64, **attrs, last_norm="near 0.3")
    add(f, "model_resnet-50", resnet, (4, 3, 224, 224), (4,), shapes, attrs, SGD, 1, length=16384)
    return f


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path, default=generate.HERE / "cases")
    parser.add_argument("--full", action="store_true", help="the true sizes")
    flags = parser.parse_args()
    (full() if flags.full else models()).write(flags.out)
