"""The same work in PyTorch (written for 2.11), timed on request; scripts/gpu-check takes turns with it.

peer.py kernels --device D                 answers like `kernel_bench --serve`, where the provider is the form:
                                           eager, or compile (torch.compile)
peer.py step --model M --form F ...        answers like `step_bench --serve`, and with --train like that
"""
import argparse
import json
import sys
import time

import torch

import peer_models
from peer_kernels import make_case

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


def answer(value):
    print(json.dumps(value), flush=True)


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Case:
    """Times as bench/kernel_timer.h does: a sample is as many calls as take 5 ms."""

    def __init__(self, call, device):
        self.call, self.device, self.calls = call, device, 1
        self.sample()
        while self.sample() * self.calls < 5e-3 and self.calls < 100000:
            self.calls *= 2

    def sample(self):
        synchronize(self.device)
        start = time.perf_counter()
        for _ in range(self.calls):
            self.call()
        synchronize(self.device)
        return (time.perf_counter() - start) / self.calls


def prepared(words, device):
    kernel, rows, cols, dtype, form = words[0], int(words[1]), int(words[2]), DTYPES[words[3]], words[4]
    function, arguments = make_case(kernel, rows, cols, dtype, device)
    if form == "compile":
        torch._dynamo.reset()
        function = torch.compile(function, dynamic=False)
    elif form != "eager":
        raise ValueError(f"got form '{form}', expected eager or compile")
    return Case(lambda: function(*arguments), device)


def serve_kernels(device):
    cases = {}
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "prepare":
                cases.pop(words[1], None)
                with torch.no_grad():
                    cases[words[1]] = prepared(words[2:], device)
                answer({"key": words[1], "calls": cases[words[1]].calls})
            elif words[0] == "sample":
                with torch.no_grad():
                    answer({"key": words[1], "seconds": cases[words[1]].sample()})
            elif words[0] == "drop":
                count = len(cases)
                cases.clear()
                if device.type == "cuda":
                    torch.cuda.empty_cache()
                answer({"dropped": count})
            else:
                raise ValueError(f"got '{line.strip()}', expected prepare, sample or drop")
        except Exception as error:  # a failure of this request only
            answer({"error": f"{type(error).__name__}: {error}".splitlines()[0]})


def serve_step(work, device, steps, warmup):
    for _ in range(warmup):
        work.step()
    synchronize(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    answer({"ready": True})
    for line in sys.stdin:
        if line.strip() != "sample":
            answer({"error": f"got '{line.strip()}', expected sample"})
            continue
        start = time.perf_counter()
        for _ in range(steps):
            work.step()
        synchronize(device)
        answer({"milliseconds": 1e3 * (time.perf_counter() - start) / steps})
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    reserved = torch.cuda.max_memory_reserved(device) if device.type == "cuda" else 0
    answer({"peak_bytes": peak, "reserved_bytes": reserved, "graph_replays": None})


def train(work, count):
    losses = [work.step().item() for _ in range(count)]
    last = min(20, count)
    shown = [loss for i, loss in enumerate(losses) if i % max(1, count // 10) == 0 or i + 1 == count]
    answer({"train_steps": count, "losses": shown, "mean_of_last": last, "mean_loss": sum(losses[-last:]) / last,
            "skipped_steps": work.skipped_steps()})


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kernels", "step"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--form", default="eager", choices=("eager", "compile"))
    parser.add_argument("--model", default="gpt2", choices=("gpt2", "resnet50"))
    parser.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "bf16"))
    for name, default in (("batch", 8), ("tokens", 1024), ("layers", 12), ("width", 0), ("heads", 12),
                          ("vocabulary", 50257), ("image", 224), ("classes", 1000), ("train", 0), ("batches", 0),
                          ("steps", 0), ("warmup", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--blocks", default="3,4,6,3")
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


def main():
    options = parse_options()
    device = torch.device(options.device)
    # f32 must be f32 here too: products and convolutions must not use TF32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    if options.what == "kernels":
        return serve_kernels(device)
    work = peer_models.Work(options, device)
    if options.train:
        return train(work, options.train)
    serve_step(work, device, options.steps or (4 if device.type == "cuda" else 1), options.warmup)


if __name__ == "__main__":
    main()
