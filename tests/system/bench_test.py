#!/usr/bin/env python3
"""bench_test.py BINADE: binade bench and bench diff, without a decision by times."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

BINADE = os.path.abspath(sys.argv[1])


def run(*words, status=0):
    done = subprocess.run([BINADE, "bench", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=280,
                          stdin=subprocess.DEVNULL)
    if done.returncode not in ([status] if isinstance(status, int) else status):
        sys.exit(f"bench {' '.join(words)}: status {done.returncode}, expected {status}: {done.stdout[-2000:]}{done.stderr}")
    return done.stdout, done.stderr


def refused(message, *words, status=2):
    _, err = run(*words, status=status)
    if err.count("\n") != 1 or message not in err:
        sys.exit(f"bench {' '.join(words)}: expected one line with {message!r}, got {err!r}")


def emulated():
    return "EMULATED" in subprocess.run([BINADE, "doctor"], stdout=subprocess.PIPE, text=True).stdout


def main():
    folder = tempfile.mkdtemp()
    file, svg = os.path.join(folder, "times.json"), os.path.join(folder, "roof.svg")
    out, _ = run("softmax_forward:65x33", "softmax_forward:7x1000", "gemm:33x65", "--dtype", "f32,bf16", "--samples", "8",
                 "--device", "cpu", "--json", file, "--svg", svg)
    assert "right before and after (f64 on the CPU)" in out and "cold: " in out, out
    with open(file, encoding="utf-8") as stream:
        record = json.load(stream)
    facts = {"commit", "cpu", "cores", "threads", "isa", "megahertz", "governor", "date", "device", "load", "compiler"}
    assert facts <= set(record["machine"]), record["machine"]
    assert record["cache"].startswith("cold: ") and len(record["cases"]) == 6, record
    for case in record["cases"]:
        assert len(case["samples_seconds"]) == 8 and case["low_seconds"] <= case["median_seconds"] <= case["high_seconds"], case
        assert case["coverage"] >= 0.95 and case["copy_bytes_per_second"] > 0 and case["calls_per_sample"] == 1, case
        assert (case["ceiling_flops_per_second"] > 0) == (case["kernel"] == "gemm"), case
    xml.etree.ElementTree.parse(svg)
    out, _ = run("add:33x5", "--warm", "--samples", "3", "--device", "cpu", "--json", file + ".warm.json")
    assert "warm: " in out, out
    out, _ = run("diff", file, file)
    assert "were not taken in turn" in out and "0 of 6 cases changed" in out, out
    refused("got a file of cold and one of warm caches", "diff", file, file + ".warm.json", status=1)
    refused("got 3 and 3 samples, which cannot tell", "diff", file + ".warm.json", file + ".warm.json", status=1)
    record["machine"]["threads"] += 1
    with open(file + ".other.json", "w", encoding="utf-8") as stream:
        json.dump(record, stream)
    out, _ = run("diff", file, file + ".other.json")
    threads = record["machine"]["threads"]
    assert f"differ beside the commit, which counts as a change too: threads: {threads - 1}, {threads}\n" in out, out
    record["cases"] = []
    with open(file + ".other.json", "w", encoding="utf-8") as stream:
        json.dump(record, stream)
    refused("no case in common", "diff", file, file + ".other.json", status=1)
    # Both builds are this one; whether a time changed is not decided here.
    out, _ = run("diff", BINADE, os.path.dirname(os.path.dirname(BINADE)), "--case", "add:33x65", "--rounds", "8", "--samples", "2",
                 "--device", "cpu", status=(0, 1))
    assert "of 8 pairs" in out and "1 cases changed" in out, out
    # A factor of five is beyond all noise.
    out, _ = run("diff", BINADE, BINADE, "--case", "add:33x65", "--rounds", "9", "--samples", "3", "--device", "cpu", "--plant", "5", status=1)
    assert "SLOWER" in out, out
    refused("got 7 rounds, which cannot tell", "diff", BINADE, BINADE, "--case", "add:3x3", "--rounds", "7", "--device", "cpu", status=1)
    refused("expected two builds or two files", "diff", file, BINADE, status=1)
    refused("expected a build folder", "diff", "/no/such", BINADE, status=1)
    refused("cannot read", "diff", "/no/such.json", file, status=1)
    refused("expected OLD and NEW", "diff", BINADE)
    refused("ended instead of answering", "diff", "/bin/true", BINADE, "--case", "add:3x3", "--device", "cpu", status=1)
    refused("got no case", "--device", "cpu")
    refused("expected KERNEL or KERNEL:ROWSxCOLS", "add:3", status=1)
    refused("no_such", "no_such:3x3", status=1)
    refused("--case has no effect", "add", "--case", "add")
    refused("no effect", "add", "--rounds", "7")
    refused("expected f64, f32, f16 or bf16", "add:3x3", "--dtype", "i64", status=1)
    refused("cannot write", "add:3x3", "--samples", "1", "--device", "cpu", "--json", "/no/such/folder/x.json", status=1)
    for dtype in ("f32", "f16", "bf16"):
        out, _ = run("--all", "--check", "--dtype", dtype, "--device", "cpu")
        assert out.count(": right (") == len(out.splitlines()) > 90, out
    if emulated():
        run("--all", "--check", "--dtype", "f32", "--device", "emulated")


if __name__ == "__main__":
    main()
