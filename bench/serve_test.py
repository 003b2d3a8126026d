#!/usr/bin/env python3
"""serve_test.py KERNEL_BENCH STEP_BENCH: both answer each request with one JSON object, and go on after a wrong one."""
import json
import subprocess
import sys

KERNELS = """prepare own relu_forward 33 40 f32
sample own
prepare other gemm_wide 5 8 f32 own
sample other
prepare copy memcpy 1 1000 f32
prepare own sort 4 4 f32 library
prepare wrong no_such_kernel 1 1 f32
prepare wrong add 4 4 i64
prepare wrong add 0 4 f32
sample gone
nonsense
drop
"""


def answers(command, requests):
    done = subprocess.run(command, input=requests, stdout=subprocess.PIPE, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def expect(what, condition, got):
    if not condition:
        sys.exit(f"{what}: got {got}")


def main():
    kernel_bench, step_bench = sys.argv[1:]
    got = answers([kernel_bench, "--serve", "--device", "cpu"], KERNELS)
    expect("as many answers as requests", len(got) == KERNELS.count("\n"), got)
    expect("bytes of relu", got[0] == {"key": "own", "bytes": 10560, "flops": 0, "calls": got[0]["calls"]}, got[0])
    expect("times", got[1]["seconds"] > 0 and got[3]["seconds"] > 0, got)
    expect("the flops of a product", got[2]["flops"] == 2 * 5 * 8 * 32, got[2])
    for number, text in ((5, "expected own: it has no other"), (6, "expected one of"), (7, "expected f64, f32, f16 or bf16"),
                         (8, "expected positive numbers"), (9, "expected the key of a prepared case"),
                         (10, "expected prepare, sample or drop")):
        expect("an error", text in got[number].get("error", ""), got[number])
    expect("what was prepared", got[11] == {"dropped": 2}, got[11])  # the third request replaced the first, and failed
    flags = ["--model", "gpt2", "--batch", "1", "--tokens", "8", "--layers", "1", "--width", "16", "--heads", "1",
             "--vocabulary", "50", "--device", "cpu", "--warmup", "1", "--steps", "1", "--serve"]
    got = answers([step_bench, *flags], "sample\nwrong\nsample\n")
    expect("ready", got[0] == {"ready": True}, got)
    expect("samples", got[1]["milliseconds"] > 0 and got[3]["milliseconds"] > 0, got)
    expect("an error", "expected sample" in got[2]["error"], got)
    expect("the figures", got[4]["samples"] == 2 and got[4]["peak_bytes"] > 0, got[4])
    expect("no sample, no figures", answers([step_bench, *flags], "") == [{"ready": True}], "more")


if __name__ == "__main__":
    main()
