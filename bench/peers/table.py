"""The rows of the comparison as JSON, as a table, and between the markers of README.md."""
import json
import os
import re

BEGIN = "<!-- peers: written by bench/peers/run --readme -->"
END = "<!-- end of peers -->"

# work: its name in the table. Also the order of the rows.
TITLES = {
    "mlp": "MLP 784-512-512-10, batch 64, SGD with momentum: step",
    "mlp_adam": "the same, Adam: step",
    "mnist_cnn": "MNIST CNN, batch 64: step",
    "resnet18": "ResNet-18 on 32x32, batch 32: step",
    "resnet18_inference": "ResNet-18, batch 32: inference",
    "resnet18_frozen": "the same against a graph frozen for this shape",
    "char_gpt": "char-GPT 4x128, context 128, batch 16, Adam: step",
    "copy": "copy of 16M floats",
    "gelu": "gelu (erf), 16M floats",
    "gelu_tanh": "gelu (tanh), 16M floats",
    "tanh": "tanh, 16M floats",
    "softmax": "softmax, rows of 1024, 16M floats",
    "layer_norm": "layer norm, rows of 1024, 16M floats",
    "add": "a + b of one number, recorded: per op",
    "chain_forward": "chain of 100 such ops, recorded: per op",
    "chain": "the same with backward: per op",
}


def duration(milliseconds):
    for unit, factor in (("s", 1e-3), ("ms", 1), ("µs", 1e3), ("ns", 1e6)):
        value = milliseconds * factor
        if value >= 1 or unit == "ns":
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    raise AssertionError


def line(row):
    memory = "-"
    if row["binade_peak_mb"] and row["peer_peak_mb"]:
        memory = f"{row['binade_peak_mb']:.0f} / {row['peer_peak_mb']:.0f} MB"
    return (f"| {TITLES[row['work']]} | {row['threads']} | {duration(row['binade_ms'])} "
            f"| {duration(row['peer_ms'])} ({row['peer']}) | {row['ratio']:.2f} | {memory} |")


def markdown(rows):
    head = ["| work | threads | Binade | PyTorch | ratio | peak memory |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join(head + [line(row) for row in rows])


def remarks(rows):
    """How the rows were measured, for the reader."""
    found = []
    if any(row["accepted_load"] for row in rows):
        found.append("Other processes used the processors meanwhile (--accept-load): these are no claims.")
    if any(row["clock"] == "cpu" for row in rows):
        found.append("Times are processor times (--cpu-time).")
    return found


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        info = file.read()
    model = re.search(r"model name\s*: (.*)", info)
    family = re.search(r"cpu family\s*: (.*)", info)
    name = " ".join(model.group(1).split()) if model else os.uname().machine
    flags = [text for flag, text in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if re.search(rf"\b{flag}\b", info)]
    parts = [name + (f" (family {family.group(1)})" if family else ""), *flags[:1]]
    return f"{', '.join(parts)}, {os.cpu_count()} processors"


def replaced(text, table):
    """`text` with the part between the markers replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"expected one '{BEGIN}' and, after it, one '{END}'")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def write_readme(path, rows, date):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    said = " ".join([f"{date}, {machine()}.", *remarks(rows)])
    text = replaced(text, f"{said}\n\n{markdown(rows)}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_json(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
