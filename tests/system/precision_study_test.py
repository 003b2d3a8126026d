#!/usr/bin/env python3
"""precision_study: its bounds hold, fail when the mechanism is off, and its files say the same.

precision_study_test.py PROGRAM [all|DEVICE]: the quick experiments, the whole study (also on the data sets
of ../shared, where it is) and every --break, or the quick experiments on a device."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
ALL = sys.argv[2:] == ["all"]
DEVICE = ["--device", sys.argv[2]] if len(sys.argv) > 2 and not ALL else []
QUICK = ["swallowed-updates", "accumulation", "reductions"]
TRAINED = "three-curves"  # whose steps must suit the data
DATA = pathlib.Path(__file__).resolve().parents[3] / "shared/data"
EXPERIMENTS = 10
MOST_CPU_SECONDS = 1200  # of a whole run: ten minutes on two cores

failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def run(*flags):
    return subprocess.run([PROGRAM, *flags], capture_output=True, text=True, check=False)


def check_files(directory, names, what):
    """The two files of a run, about these experiments; returns what the JSON says holds."""
    page = (directory / "index.html").read_text()
    for outside in ("<script", "<link", "src=", "url(", "http"):
        expect(outside not in page, f"{what}: the page has {outside}, expected one self-contained file")
    expect("prefers-color-scheme: dark" in page, f"{what}: the page has no dark mode")
    results = json.loads((directory / "results.json").read_text())["experiments"]
    expect([e["name"] for e in results] == names, f"{what}: results.json is about other experiments")
    for experiment in results:
        checks = experiment["checks"]
        expect(checks, f"{what}: {experiment['name']} checks nothing")
        expect(experiment["holds"] == all(c["holds"] for c in checks),
               f"{what}: {experiment['name']} does not say what its checks say")
        expect(f'id="{experiment["name"]}"' in page, f"{what}: no section {experiment['name']}")
    expect(page.count("<svg viewBox=\"0 0 620") == sum(len(e.get("plots", [])) for e in results),
           f"{what}: the page has not every plot")
    return [e["holds"] for e in results]


def check_broken(directory, what):
    """Without its mechanism every check that holds because of it fails."""
    checks = [c for e in json.loads((directory / "results.json").read_text())["experiments"] for c in e["checks"]]
    expect(any(c["by_mechanism"] for c in checks), f"{what}: no check depends on the mechanism")
    for check in checks:
        expect(not (check["by_mechanism"] and check["holds"]), f"{what}: {check['what']} holds")


def check_run(directory, names, flags, what):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run("--run", str(directory), *flags)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{what}: status {result.returncode}, {spent:.1f} CPU seconds")
    expect(result.returncode in (0, 1), f"{what}: status {result.returncode}: {result.stderr}")
    if result.returncode in (0, 1):
        holds = check_files(directory, names, what)
        expect(all(holds) == (result.returncode == 0), f"{what}: status {result.returncode}, {holds}")
    if "--break" in flags:
        expect(result.returncode == 1, f"{what}: holds without its mechanism\n{result.stdout}")
        if result.returncode in (0, 1):
            check_broken(directory, what)
    else:
        expect(result.returncode == 0, f"{what}: fails\n{result.stdout}")
    return spent


def check_error(flags, *expected):
    result = run(*flags)
    lines = result.stderr.splitlines()
    expect(result.returncode == 2 and len(lines) == 1 and lines[0].startswith("binade: error: ") and
           all(text in lines[0] for text in expected),
           f"{flags}: status {result.returncode}, {result.stderr}; expected one error with {expected}")


listed = run("--list")
names = [line.split()[0] for line in listed.stdout.splitlines()]
expect(listed.returncode == 0 and len(names) == EXPERIMENTS, f"--list: {listed.stdout}")
with tempfile.TemporaryDirectory() as temporary:
    directory = pathlib.Path(temporary)
    for name in names if ALL else QUICK if not DEVICE else []:
        check_run(directory, [name], ["--break", name], f"--break {name}")
    if ALL:
        spent = check_run(directory, names, [], "the whole study")
        expect(spent <= MOST_CPU_SECONDS, f"the whole study took {spent:.0f} CPU seconds")
        if DATA.is_dir():
            check_run(directory, names, ["--data", str(DATA)], "the whole study on data sets")
        else:
            print("the whole study on data sets: skipped: no ../shared")
    else:
        for name in QUICK if DEVICE else [*QUICK, TRAINED]:
            check_run(directory, [name], ["--only", name, *DEVICE], f"--only {name} {' '.join(DEVICE)}")
    check_error(["--run", temporary, "--only", "nothing"], "'nothing'", "three-curves")
    check_error(["--run", temporary, "--break", "nothing"], "'nothing'", "three-curves")
    check_error(["--run", temporary, "--data", temporary], temporary, "input.txt")
    check_error(["--only", QUICK[0], "--break", QUICK[1]], QUICK[0], QUICK[1])

for failure in failures:
    print("FAIL", failure)
sys.exit(1 if failures else 0)
