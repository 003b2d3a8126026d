#!/usr/bin/env python3
"""The course in docs/precision: figures are those that its program writes, every exercise has a command
that runs and a checker that takes the right answer and no other, and Binade's own formats agree with the
exact arithmetic of the course.

precision_course_test.py BINADE"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import xml.dom.minidom

BINADE = str(pathlib.Path(sys.argv[1]).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs/precision"
sys.path.insert(0, str(COURSE))
import check  # noqa: E402
import figures  # noqa: E402
import rounding as r  # noqa: E402

PAGES = sorted(COURSE.glob("[0-9][0-9]-*.md"))
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


def check_figures():
    with tempfile.TemporaryDirectory() as folder:
        result = run(sys.executable, "-B", str(COURSE / "figures.py"), folder)
        expect(result.returncode == 0, f"figures.py: {result.stderr}")
        names = sorted(path.name for path in pathlib.Path(folder).iterdir())
        expect(names == sorted(path.name for path in (COURSE / "figures").iterdir()), "other figures than committed")
        for name in names:
            now, committed = pathlib.Path(folder, name).read_text(), (COURSE / "figures" / name).read_text()
            expect(now == committed, f"figures/{name} is not what figures.py writes")
            xml.dom.minidom.parseString(now)
            expect("prefers-color-scheme:dark" in now, f"figures/{name} has no dark mode")
            expect('viewBox="0 0 390 ' in now and "font:11px" in now, f"figures/{name} is not made for 390 pixels")


def check_answers():
    for number, (answer, _, _) in check.EXERCISES.items():
        value = float(answer())
        expect(check.right(number, value), f"{number}: the checker refuses {value}")
        for wrong in (value * 1.5 + 1, value / 2 - 1, -value - 1):
            expect(not check.right(number, wrong), f"{number}: the checker takes {wrong}")
    expect(check.parse("2^-25") == 2.0**-25 and check.parse("3/4") == 0.75, "check.py reads no powers or fractions")
    tool = str(COURSE / "check.py")
    for words, status in ((("1.1", "2"), 0), (("1.1", "3"), 1), (("1.1", "x"), 2), (("0.1", "2"), 2), (("1.1",), 2), (("1.1", "1/0"), 2)):
        expect(run(sys.executable, "-B", tool, *words).returncode == status, f"check.py {words}: not status {status}")


# The text that the command of an exercise must print: its answer, as Binade writes it.
PRINTED = {"1.1": "ulp of 2", "2.1": "2049 -> 2048", "2.2": "-> 5.96046448e-08", "3.1": "65504", "3.2": "465 -> nan", "4.1": "2049 -> 2048",
           "4.2": "46.5", "4.3": "257 -> 256", "5.1": "sum 16384", "5.2": "sum 256", "6.1": "22.7", "6.3": "65536 -> inf", "7.1": "1\n",
           "7.3": "1.07812", "8.1": "-> 1 ", "8.2": "-> 0.251953125", "9.1": "448", "10.1": "162754.8 -> inf"}


def check_pages():
    expect(len(PAGES) == 10, f"{len(PAGES)} pages, expected 10")
    seen = []
    for page in PAGES:
        text = page.read_text()
        expect(text.count("](figures/") == 1, f"{page.name}: not one figure")
        expect(text.count("## Derivation") == 1, f"{page.name}: not one derivation")
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            expect((COURSE / link).exists(), f"{page.name}: a link to {link}, which is not there")
        exercises = re.findall(r"^\*\*(\d+\.\d)\*\* .*?\n\n    (.+?)\n", text, re.M | re.S)
        expect(len(exercises) == 3, f"{page.name}: {len(exercises)} exercises with a command, expected 3")
        for number, command in exercises:
            seen.append(number)
            words = shlex.split(command)
            if words[0] == "binade":
                words[0] = BINADE
            else:
                words = [sys.executable, "-B", *words]
            result = run(*words)
            expect(result.returncode == 0, f"{number}: {command}: {result.stderr}")
            wanted = PRINTED.get(number, "")
            expect(wanted in result.stdout, f"{number}: {command} prints {result.stdout!r}, expected {wanted!r} in it")
    expect(seen == list(check.EXERCISES), f"exercises {seen}, but check.py knows {list(check.EXERCISES)}")
    expect(all(page.name in (COURSE / "README.md").read_text() for page in PAGES), "README.md leaves pages out")


def check_against_binade():
    forms = {"f16": r.F16, "bf16": r.BF16, "e4m3fn": r.E4M3, "e5m2": r.E5M2, "e3m2": r.E3M2, "e2m1": r.E2M1}
    for name, form in forms.items():
        numbers = [0.1, 1.3, 2.5, 0.0078125, 1e-6, 17.0, 3.99]
        numbers = [x for x in numbers if form.round(r.F(x)) <= form.largest]
        lines = run(BINADE, "format", name, *(repr(x) for x in numbers)).stdout.splitlines()
        for x, line in zip(numbers, lines):
            got = float(line.split("-> ")[1].split(" ")[0])
            expect(abs(got - float(form.round(r.F(x)))) <= 1e-8 * abs(got), f"{name}: {x} is {got}, the course says {form.round(r.F(x))}")


def check_ring():
    """The figure of the ring lens is of the numbers that binade ring-lens finds."""
    result = run(BINADE, "ring-lens", "--ranks", str(figures.RING_RANKS), "--elements", "4096", "--json")
    rows = json.loads(result.stdout)["rows"]
    for form, dtype, more in ((r.F16, "f16", {}), (r.BF16, "bf16", {}), (r.F16, "f16", {"tree": True}), (r.F16, "f16", {"carried": True})):
        drawn = r.ring_errors(form, figures.RING_RANKS, **more)
        wanted = {"dtype": dtype, "f32_carry": "carried" in more, "division": "none", "order": "tree" if "tree" in more else "ring"}
        hops = [row["hops"] for row in rows if all(row[key] == value for key, value in wanted.items())]
        expect(len(hops) == 1 and len(hops[0]) == len(drawn), f"ring-lens has no row of {wanted}")
        for (count, error), hop in list(zip(drawn, hops[0]))[len(drawn) // 2:]:
            exact = max(error, hop["relative"]) < 1e-7  # sums carried in f32: what is left is f32's own rounding
            expect(exact or 0.7 < error / hop["relative"] < 1.4, f"{wanted}, {count} ranks: ring-lens finds {hop['relative']}, the figure shows {error}")


check_figures()
check_answers()
check_pages()
check_against_binade()
check_ring()
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
