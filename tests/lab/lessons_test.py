#!/usr/bin/env python3
"""Holds docs/kernels and lab/exercises together: lessons_test.py pages | exercises BINADE

pages: a table of a lesson whose first column links a step of a ladder has the counts of that step's comment,
  which ladders_test.py checks; every exercise has a model answer and a lesson that names it; every step stands in a
  table; links lead to files.
exercises BINADE: the check command of every exercise says 1 before and 0 after its model answer. BINADE is the
  program: lessons_test.py exercises build/release/bin/binade
"""
import concurrent.futures
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LESSONS = ROOT / "docs/kernels"
EXERCISES = ROOT / "lab/exercises"
COUNTED = re.compile(r"// Counted \([\dx]+\): ((?:.|\n//)+)")
COUNT = re.compile(r"(global|shared)? ?(\d+) (\w+)(?: (\d+) (\w+))?")
CHECK = re.compile(r"^// Check: binade kernel (\S+) (.+)$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")


def counts_of(step):
    """{"sectors": 512, "shared requests": 3, ...} of the comment of a step."""
    said = re.sub(r"\n// *", " ", COUNTED.search(step.read_text())[1])
    found = {}
    for where, number, what, second, of_second in COUNT.findall(said):
        prefix = "shared " if where == "shared" and what == "requests" else ""
        found[prefix + what] = int(number)
        if second:
            found[of_second] = int(second)
    found["sectors a request"] = found["sectors"] / max(found["requests"], 1)
    found["passes a request"] = found["passes"] / max(found["shared requests"], 1)
    return found


def tables(text):
    """(heads, cells of a row) of the rows of all tables."""
    heads = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            heads = None
        elif heads is None:
            heads = cells
        elif not set(line) <= set("|- :"):
            yield heads, cells


def page_faults():
    faults, shown = [], set()
    pages = sorted(LESSONS.glob("*.md"))
    for page in pages:
        text = page.read_text()
        for name, link in LINK.findall(text):
            if "://" not in link and not (page.parent / link).exists():
                faults.append(f"{page.name}: [{name}]({link}) leads nowhere")
        for heads, cells in tables(text):
            link = LINK.fullmatch(cells[0])
            if not link or not link[2].endswith(".cu") or "ladders/" not in link[2]:
                continue
            step = (page.parent / link[2]).resolve()
            shown.add(step)
            counted = counts_of(step)
            for head, cell in zip(heads[1:], cells[1:]):
                if head not in counted:
                    continue
                want = counted[head]
                want = f"{want:.2f}" if isinstance(want, float) else str(want)
                if cell != want:
                    faults.append(f"{page.name}: {link[1]}, {head}: got {cell}, the step has {want}")
    faults += [f"{step.relative_to(ROOT)}: in no table of docs/kernels"
               for step in sorted((ROOT / "lab/ladders").rglob("*.cu")) if step not in shown]
    everything = "".join(page.read_text() for page in pages)
    for exercise in sorted(EXERCISES.glob("*.cu")):
        path = exercise.relative_to(ROOT).as_posix()
        check = CHECK.search(exercise.read_text())
        if not check or check[1] != path:
            faults.append(f"{path}: no line `// Check: binade kernel {path} --case ...`")
        if not (EXERCISES / "answers" / exercise.name).is_file():
            faults.append(f"{path}: no model answer")
        if everything.count(path) < 1:
            faults.append(f"{path}: no lesson names it")
    return faults


def exercise_faults(binade):
    def outcome(file, rest):
        run = subprocess.run([binade, "kernel", str(file), *shlex.split(rest), "--no-nvcc"], cwd=ROOT, capture_output=True, text=True,
                             check=False, timeout=300)
        return run.returncode, run.stdout + run.stderr

    def one(exercise):
        check = CHECK.search(exercise.read_text())
        for file, want in ((exercise, 1), (EXERCISES / "answers" / exercise.name, 0)):
            status, said = outcome(file, check[2])
            if status != want:
                yield f"{file.relative_to(ROOT)}: exit {status}, expected {want}\n{said}"
            else:
                print(f"{file.relative_to(ROOT)}: exit {status}")
                print("\n".join(f"    {line}" for line in said.splitlines()[:4]))

    exercises = sorted(EXERCISES.glob("*.cu"))
    if not exercises:
        return ["no exercises"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [fault for faults in pool.map(lambda e: list(one(e)), exercises) for fault in faults]


def main():
    what, *binade = sys.argv[1:]
    faults = page_faults() if what == "pages" else exercise_faults(*binade)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
