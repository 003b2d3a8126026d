#!/usr/bin/env python3
"""trace_test.py PROGRAM BINADE BIN: traces of 20 steps of three trainings (a cnn on JPEGs, a character GPT, a cnn on
two ranks), read by the strict check of trace_check.py. The test prints the share of a step that is inside ops, data and
updates (aim: 97%), which other programs change and no test requires; the memory track ends every step with the
allocator's own statistics."""
import pathlib
import shutil
import subprocess
import sys

from classifier_runs import PROGRAM, SOURCE, temporary_directory, train
import trace_check

BINADE = str(pathlib.Path(sys.argv[2]).resolve())
CHAR_GPT = str(pathlib.Path(sys.argv[3]).resolve() / "char_gpt")
STEPS = 20
WINDOW = ("--profile", f"3,1,{STEPS}")
CNN = ("--data", "jpegs", "--model", "cnn", "--image-size", 32, "--batch", 16, "--workers", 0, "--seed", 1)


def make_jpegs(folder):
    """Class folders of pictures that are valid JPEGs of several kinds."""
    pictures = sorted((SOURCE / "tests/fuzz/corpus/jpeg").glob("good-*.jpg"))
    assert len(pictures) > 3, pictures
    for part, count in (("train", 96), ("test", 8)):
        for name in ("one", "two"):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                shutil.copy(pictures[i % len(pictures)], folder / part / name / f"{i}.jpg")


def run(*command):
    result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 0, f"{command}: {result.returncode}\n{result.stderr[-2000:]}"


def check_trace(path):
    found = trace_check.check(path)
    print(path, found)
    assert found["steps"] == STEPS, found
    assert 0 < found["covered"] <= 1.001, found
    assert found["memory_checks"] == STEPS + 1 and found["memory_wrong"] == 0, f"{path}: the memory track is not that of the allocator: {found}"
    assert found["ops"] > 10 * STEPS and found["lines"] > 0, found


def main():
    with temporary_directory() as folder:
        make_jpegs(folder / "jpegs")
        train(*CNN, *WINDOW, "--epochs", 4, "--run", "cnn")
        check_trace("cnn/trace.json")
        run(CHAR_GPT, "--steps", 30, "--layers", 2, "--width", 128, "--heads", 4, "--context", 128, "--batch", 16, *WINDOW, "--run", "gpt")
        check_trace("gpt/trace.json")
        run(BINADE, "launch", "-n", 2, PROGRAM, *CNN, "--threads", 1, *WINDOW, "--epochs", 8, "--run", "ranks")
        for name in ("trace.json", "trace-rank1.json"):
            check_trace(f"ranks/{name}")
        # The check can fail: one event that ends later than the one around it, and a counter that is off.
        text = pathlib.Path("cnn/trace.json").read_text(encoding="utf-8")
        for old, new, expected in (('"dur": ', '"dur": 9', "ends after"), ('"dur": ', '"dur": -', "below 0")):
            pathlib.Path("wrong.json").write_text(text.replace(old, new, 40), encoding="utf-8")
            try:
                trace_check.check("wrong.json")
            except trace_check.Wrong as error:
                assert expected in str(error), error
            else:
                raise AssertionError(f"{new} was not noticed")
        print(subprocess.run([BINADE, "trace", "cnn"], capture_output=True, text=True, check=True).stdout[:3000])


if __name__ == "__main__":
    main()
