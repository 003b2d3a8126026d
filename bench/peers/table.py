"""The rows of the comparison as JSON, as a table, and between the markers of README.md."""
import json
import os
import re
import statistics

from rows import find

BEGIN = "<!-- peers: written by bench/peers/run --readme -->"
END = "<!-- end of peers -->"

def duration(milliseconds):
    for unit, factor in (("s", 1e-3), ("ms", 1), ("µs", 1e3), ("ns", 1e6)):
        value = milliseconds * factor
        if value >= 1 or unit == "ns":
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    raise AssertionError


HEAD = """| work | threads | Binade | PyTorch as installed | ratio | PyTorch at its strongest | ratio | peak memory |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def memory(row):
    if row["binade_peak_mb"] and row["peer_peak_mb"]:
        return f"{row['binade_peak_mb']:.0f} / {row['peer_peak_mb']:.0f} MB"
    return "-"


def strongest_form(row):
    """The form that won, and whether it won without the preloaded libraries."""
    form = f"{row['peer']} {row['form']}"
    return form + ", as installed" if row["state"] == "installed" else form


def ratio(value):
    """Prints the ratio in bold if PyTorch is faster."""
    if value is None:
        return "-"
    return f"**{value:.2f}**" if round(value, 2) < 1 else f"{value:.2f}"


def line(row):
    """A row for one number of threads and one PyTorch."""
    installed = "-"
    if row["installed_ms"] is not None:
        installed = f"{duration(row['installed_ms'])} ({row['peer']} {row['installed_form']})"
    return (f"| {find(row['work']).title} | {row['threads']} | {duration(row['binade_ms'])} | {installed} "
            f"| {ratio(row['installed_ratio'])} | {duration(row['peer_ms'])} ({strongest_form(row)}) "
            f"| {ratio(row['ratio'])} | {memory(row)} |")


def against_all(rows):
    """Rows against the fastest PyTorch, one for each work and number of threads: as installed and at its
    strongest these may be different ones."""
    found = {}
    for row in rows:
        found.setdefault((row["work"], row["threads"]), []).append(row)
    joined = []
    for group in found.values():
        best = dict(min(group, key=lambda row: row["ratio"]))
        installed = [row["installed_ratio"] for row in group if row["installed_ratio"] is not None]
        best["installed_ratio"] = min(installed, default=None)
        joined.append(best)
    return joined


def by_work(rows):
    """{work: rows of all numbers of threads}, sorted by the least ratio to the strongest form."""
    found = {}
    for row in rows:
        found.setdefault(row["work"], []).append(row)
    return dict(sorted(found.items(), key=lambda item: min(row["ratio"] for row in item[1])))


def sorted_table(rows):
    """One line for each work; numbers of threads share a cell."""
    lines = ["| work | Binade | to PyTorch as installed | to its strongest form | that form | peak memory |",
             "| --- | --- | --- | --- | --- | --- |"]
    for work, group in by_work(rows).items():
        cells = [[duration(row["binade_ms"]) for row in group], [ratio(row["installed_ratio"]) for row in group],
                 [ratio(row["ratio"]) for row in group], list(dict.fromkeys(map(strongest_form, group))),
                 [memory(group[-1])]]
        lines.append(" | ".join([f"| {find(work).title}", *(" / ".join(cell) for cell in cells)]) + " |")
    return "\n".join(lines)


def mean_line(rows):
    """Geometric means over the rows, for each number of threads."""
    texts = []
    for threads in dict.fromkeys(row["threads"] for row in rows):
        chosen = [row for row in rows if row["threads"] == threads]
        means = []
        for key, what in (("installed_ratio", "as installed"), ("ratio", "at its strongest")):
            values = [row[key] for row in chosen if row[key] is not None]
            if values:
                means.append(f"{statistics.geometric_mean(values):.2f} to PyTorch {what}")
        texts.append(f"{threads} thread{'s' * (threads != 1)}: {', '.join(means)}")
    return f"Geometric mean of the {len(by_work(rows))} rows, {'; '.join(texts)}."


def markdown(rows):
    """Models with their geometric mean, then single ops, each sorted; against the fastest PyTorch."""
    rows = against_all(rows)
    parts = []
    models = [row for row in rows if find(row["work"]).has_model]
    ops = [row for row in rows if not find(row["work"]).has_model]
    if models:
        parts += [sorted_table(models), mean_line(models)]
    if ops:
        parts += ["Single ops:", sorted_table(ops)]
    counts = list(dict.fromkeys(str(row["threads"]) for row in rows))
    if len(counts) > 1:
        parts.insert(0, f"Cells with several figures are of {' / '.join(counts)} threads, peak memory of {counts[-1]}.")
    return "\n\n".join(parts)


def remarks(rows):
    """Tells the reader how the rows were measured."""
    found = list(dict.fromkeys(row["remark"] for row in rows))
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


def write_readme(path, rows, said):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = replaced(text, f"{said}\n\n{markdown(rows)}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_json(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
