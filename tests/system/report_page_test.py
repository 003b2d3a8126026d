#!/usr/bin/env python3
"""report_page_test.py BINADE [KEEP]: the page of `binade report` in headless Chromium.

Three runs, one of them with 10^6 steps, NaN, broken lines and markup in its names, at 390 and 1400 pixels, light and dark:
nothing is wider than the window, the arrow keys show values, no request leaves the file. Skipped (status 77) without Chromium.
KEEP: a folder for the pictures."""
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

BINADE = str(pathlib.Path(sys.argv[1]).resolve())
KEEP = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZES, MODES = (390, 1400), ("light", "dark")
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def make_run(folder, steps, seed, evil=False):
    rng = random.Random(seed)
    folder.mkdir()
    scale, skipped = 65536.0, 0
    with open(folder / "metrics.jsonl", "w", encoding="utf-8") as file:
        for step in range(1, steps + 1):
            loss = 2.5 * math.exp(-3 * step / steps) + rng.gauss(0, 0.05)
            if step % (steps // 7) == 0:
                scale, skipped = scale / 2, skipped + 1
            line = {"epoch": 5 * step // steps, "step": step, "train_loss": loss, "learning_rate": 1e-3 * (1 - step / steps), "loss_scale": scale,
                    "gradient_norm": abs(rng.gauss(1, 0.2)), "skipped_steps": skipped}
            if evil and step % 1000 == 0:
                line["train_loss"] = None
            if evil and step == steps // 2:
                line["train_loss"] = 1e30
                file.write('{"epoch":0,"st\n\0\0\0\nnull\n')
            file.write(json.dumps(line) + "\n")
            if step % (steps // 5) == 0:
                line |= {"validation_loss": loss + 0.2, "validation_accuracy": 1 - loss / 3, "precision": "fp16", "state_hash": "00"}
                file.write(json.dumps(line) + "\n")
    name = "</script><img src=http://127.0.0.1:9/x>" if evil else "note"
    (folder / "run.json").write_text(json.dumps({"started": "2026-01-01T00:00:00Z", "outcome": "finished", "seconds": 61.5, "step": steps,
                                                 "settings": {"lr": str(seed), name: "<b>" * 50 + "x" * 3000}, "environment": {"cpu": "a"}}))
    with open(folder / "timeline.jsonl", "w", encoding="utf-8") as file:
        for i in range(1, 200):
            file.write(json.dumps({"step": i * steps // 200, "seconds": i, "samples_per_second": 900 + 50 * rng.random(), "wait_share": rng.random(),
                                   "allocated": 4e7, "reserved": 8e7, "memory": {"conv1": 1e7 * rng.random(), "a.very.long.module.path.conv2": 2e7}}) + "\n")


PROBE = """<!doctype html><body style="margin:0"><pre id="out">nothing</pre>
<iframe id="page" src="PAGE" style="width:WIDTHpx;height:900px;border:0"></iframe><script>
const out = document.getElementById('out'), frame = document.getElementById('page');
window.onerror = text => { out.textContent = text; };
window.onload = () => setTimeout(() => {
  const inner = frame.contentDocument, window_ = frame.contentWindow, plots = inner.querySelectorAll('svg[tabindex]');
  const result = {wide: inner.documentElement.scrollWidth, plots: plots.length, readouts: 0, paper: window_.getComputedStyle(inner.body).backgroundColor,
                  images: inner.querySelectorAll('img, link, iframe').length,
                  resources: window_.performance.getEntriesByType('resource').map(r => r.name)};
  for (const svg of plots) {
    svg.focus();
    svg.dispatchEvent(new window_.KeyboardEvent('keydown', {key: 'Home', bubbles: true}));
    svg.dispatchEvent(new window_.KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    result.readouts += svg.closest('figure').querySelector('.readout').textContent.length > 4;
  }
  out.textContent = JSON.stringify(result);
}, 300);
</script></body>"""


def browse(profile, *flags):
    return subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
                           "--allow-file-access-from-files", f"--user-data-dir={profile}", *flags], capture_output=True, text=True, timeout=120, check=False)


def look_at(root, page, what):
    for width in SIZES:
        for mode in MODES:
            dark = ["--blink-settings=preferredColorScheme=0"] if mode == "dark" else []
            probe = root / "probe.html"
            probe.write_text(PROBE.replace("PAGE", page.name).replace("WIDTH", str(width)))
            dom = browse(root / "profile", *dark, "--virtual-time-budget=4000", f"--window-size={width + 100},1200", "--dump-dom", probe.as_uri()).stdout
            begin = dom.find('<pre id="out">')
            text = dom[begin + 14:dom.find("</pre>", begin)]
            try:
                result = json.loads(text.replace("&amp;", "&"))
            except ValueError:
                expect(False, f"{what} at {width}, {mode}: the probe says {text!r:.200}")
                continue
            expect(result["wide"] <= width, f"{what} at {width}, {mode}: {result['wide']} pixels wide")
            expect(result["plots"] > 4 and result["readouts"] == result["plots"],
                   f"{what} at {width}, {mode}: {result['readouts']} of {result['plots']} plots answer to the keyboard")
            expect(result["images"] == 0 and not result["resources"], f"{what}: it asks for {result['resources']}")
            channels = [int(c) for c in result["paper"].removeprefix("rgb(").removesuffix(")").split(",")]
            expect((sum(channels) < 384) == (mode == "dark"), f"{what} at {width}: in {mode} mode the paper is {result['paper']}")
            if KEEP:
                browse(root / "profile", *dark, f"--window-size={max(width, 500)},3600", f"--screenshot={KEEP}/{what}-{width}-{mode}.png",
                       (probe if width < 500 else page).as_uri())


def main():
    if not BROWSER:
        print("skipped: there is no Chromium")
        return 77
    if KEEP:
        KEEP.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, steps, seed, evil in (("a", 2000, 1, False), ("b", 3000, 2, False), ("<b>evil & co", 1_000_000, 3, True)):
            make_run(root / name, steps, seed, evil)
        runs = [str(root / name) for name in ("a", "b", "<b>evil & co")]
        for what, arguments in (("one", runs[2:]), ("three", runs)):
            page = root / f"{what}.html"
            result = subprocess.run([BINADE, "report", *arguments, "--html", str(page)], capture_output=True, text=True, check=False)
            expect(result.returncode == 0, f"{what}: status {result.returncode}, {result.stderr}")
            if result.returncode == 0:
                size = os.path.getsize(page)
                print(f"{what}: {size} bytes")
                expect(size <= 5_000_000, f"{what}: {size} bytes, expected at most 5 MB")
                expect("3 lines of" in page.read_text(), f"{what}: the broken lines are not counted")
                look_at(root, page, what)
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
