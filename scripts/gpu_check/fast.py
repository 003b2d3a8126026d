"""Call "fast": how fast is it? It only reports: a slow kernel fails nothing."""
import concurrent.futures
import functools
import json
import os
import statistics

from stage import Failed
from worker import Worker, median_ratio, peer_command, peer_device, take_turns, why_no_torch

HERE = os.path.dirname(os.path.abspath(__file__))
PRECISIONS = ("fp32", "bf16", "fp16")


def kernel_rows(small):
    """The lines of kernels.txt."""
    rows = []
    with open(os.path.join(HERE, "kernels.txt")) as file:
        for line in file:
            words = line.split()
            if not words or line.startswith("#"):
                continue
            sizes = words[3:5] if small else words[1:3]
            rows.append({"kernel": words[0], "rows": int(sizes[0]), "cols": int(sizes[1]),
                         "calls": int(words[5]) + int(words[6]), "compile": words[7] == "compile"})
    return rows


class KernelSpeed:
    """Times every case on our kernels, the library, a copy by the runtime and PyTorch, in turn."""

    def __init__(self, stage):
        self.stage = stage
        self.rounds = 1 if stage.emulated else 5
        self.ours = Worker(stage, stage.programs.command("kernel_bench") + ["--serve", "--device", stage.options.device])
        self.peer = None
        self.no_peer = why_no_torch(stage.options.python)
        if not self.no_peer:
            self.peer = Worker(stage, peer_command(stage.options, "kernels", "--device", peer_device(stage)))

    def prepared(self, case, dtype):
        """Functions that take a sample, by name; what each one times; and why others are left out."""
        kernel, rows, cols = case["kernel"], case["rows"], case["cols"]
        shape = f"{kernel} {rows} {cols} {dtype}"
        facts = self.ours.ask(f"prepare own {shape} own")
        works, missing = {"own": functools.partial(self.sample, self.ours, "own")}, {}
        others = [("copy", self.ours, f"prepare copy memcpy 1 {int(facts['bytes'] / 8) + 1} f32"),
                  ("library", self.ours, f"prepare library {shape} library")]
        if self.peer:
            others.append(("eager", self.peer, f"prepare eager {shape} eager"))
        if self.peer and case["compile"] and dtype == "f16":
            others.append(("compile", self.peer, f"prepare compile {shape} compile"))
        def prepare(worker):
            for name, whose, request in others:
                if whose is not worker:
                    continue
                try:
                    worker.ask(request, 90)
                    works[name] = functools.partial(self.sample, worker, name)
                except Failed as error:
                    missing[name] = str(error)
        workers = list(filter(None, (self.ours, self.peer)))  # they prepare at the same time and take turns later
        with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
            list(pool.map(prepare, workers))
        if self.peer and self.peer.process.poll() is not None:
            self.peer = None
        return facts, works, missing

    @staticmethod
    def sample(worker, name):
        return worker.ask(f"sample {name}")["seconds"]

    def measure(self, case, dtype):
        facts, works, missing = self.prepared(case, dtype)
        samples, failed = take_turns(works, self.rounds, self.stage.end - 5)
        for worker in filter(None, (self.ours, self.peer)):
            try:
                worker.ask("drop")
            except Failed:
                if worker is self.ours:
                    raise
                self.peer = None
        own = samples["own"]
        if not own:
            raise Failed(failed["own"])
        seconds = statistics.median(own)
        copied = samples.get("copy")
        row = {"kernel": case["kernel"], "rows": case["rows"], "cols": case["cols"], "dtype": dtype,
               "microseconds": round(seconds * 1e6, 2), "GB/s": round(facts["bytes"] / seconds * 1e-9, 1),
               "share_of_copy": median_ratio(copied, own), "TFLOP/s": round(facts["flops"] / seconds * 1e-12, 2)}
        for name in ("library", "eager", "compile"):
            row[f"{name}/own"] = median_ratio(samples.get(name), own)
        row["ms_per_step"] = round(case["calls"] * seconds * 1e3, 3)
        why = {**missing, **failed}
        if why:
            self.stage.write(f"{case['kernel']} {dtype}: {json.dumps(why)}\n")
        return row

    def close(self):
        for worker in filter(None, (self.ours, self.peer)):
            worker.kill()


def kernel_speed(stage):
    rows = stage.figures["kernels"] = []
    cases = [(case, dtype) for dtype in ("f16", "f32") for case in kernel_rows(stage.emulated)]
    if stage.emulated and not stage.options.all_cases:  # one of each kind
        cases = cases[3:80:9] + cases[100:170:17]
    speed, failed, late = KernelSpeed(stage), [], 0
    try:
        for case, dtype in cases:
            if stage.left() < 10:
                late += 1
                continue
            try:
                rows.append(speed.measure(case, dtype))
            except Failed as error:
                failed.append(f"{case['kernel']} {dtype}: {error}")
                if speed.ours.process.poll() is not None:  # the device is lost: nothing else can be measured
                    speed.close()
                    speed = KernelSpeed(stage)
    finally:
        speed.close()
    stage.detail = f"{len(rows)} measurements"
    if late:
        stage.detail += f", {late} left out for lack of time"
    if speed.no_peer:
        stage.detail += f"; not compared with PyTorch: {speed.no_peer}"
    if failed:
        raise Failed(f"{len(failed)} of {len(cases)} cases did not run: {'; '.join(failed[:4])}"[:500])


# Models and their batch sizes; sizes on the emulated device say nothing about speed.
MODELS = {
    "gpt2": {"flags": ["--batch", "8", "--tokens", "1024"],
             "loss": ["--batch", "4", "--tokens", "512", "--lr", "3e-4"],
             "small": ["--batch", "2", "--tokens", "16", "--layers", "1", "--width", "32", "--heads", "2",
                       "--vocabulary", "100"]},
    "resnet50": {"flags": ["--batch", "64"],
                 "loss": ["--batch", "32", "--image", "128", "--lr", "3e-4"],
                 "small": ["--batch", "2", "--image", "32", "--blocks", "1,1,1,1", "--width", "4", "--classes", "10"]}}


def step_flags(stage, model, precision, kind):
    sizes = MODELS[model]["small"] if stage.emulated else MODELS[model][kind]
    return ["--model", model, "--precision", precision, *sizes]


def steps_of(stage, model, precision, forms):
    """Returns one row per form. All forms are set up at once and timed in turn."""
    flags = step_flags(stage, model, precision, "flags")
    own = ["--device", stage.options.device, "--serve", "--warmup", "2" if stage.emulated else "4",
           "--steps", "1" if stage.emulated else "4"]
    commands = {}
    for form in forms:
        if form.startswith("torch"):
            commands[form] = peer_command(stage.options, "step", "--device", peer_device(stage), "--form",
                                          form.split("-")[1], *flags)
        else:
            commands[form] = (stage.programs.command("step_bench") + flags + own
                              + (["--graph"] if form == "graph" else []))
    workers = {form: Worker(stage, command) for form, command in commands.items()}
    works, why = {}, {}

    def wait(form):
        workers[form].answer()  # waits until it is ready
        return lambda: workers[form].ask("sample")["milliseconds"]
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        for form, future in [(form, pool.submit(wait, form)) for form in workers]:
            try:
                works[form] = future.result()
            except Failed as error:
                why[form] = str(error)
    samples, failed = take_turns(works, 1 if stage.emulated else 7, stage.end - 15)
    rows = []
    for form, worker in workers.items():
        last = worker.finish(20)
        if not samples.get(form):
            stage.write(f"{model} {precision} {form}: {why.get(form) or failed.get(form)}\n")
            rows.append({"model": model, "precision": precision, "form": form, "ms": None, "eager/this": None,
                         "peak_MB": None, "reserved_MB": None, "graph_replays": None})
            continue
        rows.append({"model": model, "precision": precision, "form": form,
                     "ms": round(statistics.median(samples[form]), 3),
                     "eager/this": median_ratio(samples.get("eager"), samples[form]),
                     # A captured step allocates nothing in its replays: its memory counts as reserved.
                     "peak_MB": round(last["peak_bytes"] / 1e6) if last and form != "graph" else None,
                     "reserved_MB": round(last["reserved_bytes"] / 1e6) if last else None,
                     "graph_replays": last.get("graph_replays") if last else None})
    return rows, {**why, **failed}


def steps(stage):
    no_peer = why_no_torch(stage.options.python)
    rows = stage.figures["steps"] = []
    wrong, late = [], 0
    for precision in PRECISIONS:
        for model in MODELS:
            if stage.left() < 30:
                late += 1
                continue
            # Compiling takes a minute, so only fp16 is compiled, if there is time.
            compile = precision == "fp16" and stage.left() > 90
            peers = [] if no_peer else ["torch-eager"] + ["torch-compile"] * compile
            made, why = steps_of(stage, model, precision, ["eager", "graph"] + peers)
            rows += made
            wrong += [f"{model} {precision} {form}: {text}" for form, text in why.items()
                      if not form.startswith("torch")]
    stage.detail = f"{sum(row['ms'] is not None for row in rows)} of {len(rows)} ways to do a step"
    if late:
        stage.detail += f", {late} settings left out for lack of time"
    if no_peer:
        stage.detail += f"; not compared with PyTorch: {no_peer}"
    if wrong:
        raise Failed("; ".join(wrong)[:500])


def losses(stage):
    """Losses after 300 steps from the same drawn weights on the same drawn batches (bench/drawn_batch.h)."""
    no_peer = why_no_torch(stage.options.python)
    count, batches = ("12", "3") if stage.emulated else ("300", "16")
    works = []
    for model in MODELS:
        for precision in PRECISIONS:
            flags = step_flags(stage, model, precision, "loss") + ["--train", count, "--batches", batches]
            works.append((model, precision, "own",
                          stage.programs.command("step_bench") + flags + ["--device", stage.options.device]))
            if not no_peer:
                works.append((model, precision, "torch", peer_command(
                    stage.options, "step", "--device", peer_device(stage), "--form", "eager", *flags)))
    rows, wrong = stage.figures.setdefault("losses", []), []
    # Nothing is timed, so several processes share the GPU.
    with concurrent.futures.ThreadPoolExecutor(min(4, stage.options.jobs)) as pool:
        futures = [pool.submit(loss_of, stage, command) for _, _, _, command in works]
        for (model, precision, whose, _), future in zip(works, futures):
            try:
                answer = future.result()
                rows.append({"model": model, "precision": precision, "whose": whose,
                             "first": answer["losses"][0], "loss": answer["mean_loss"],
                             "skipped_steps": answer["skipped_steps"]})
            except Failed as error:
                if whose == "own":
                    wrong.append(f"{model} {precision}: {error}")
                stage.write(f"{model} {precision} {whose}: {error}\n")
    stage.detail = f"{len(rows)} losses after {count} steps"
    if wrong:
        raise Failed("; ".join(wrong)[:500])


def loss_of(stage, command):
    text = stage.run(command)
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed("no result")
    return json.loads(lines[-1])


def half_precision(stage_figures):
    """The table "16 bits against 32" from the figures of the stages steps and losses."""
    rows = []
    steps_rows, loss_rows = stage_figures.get("steps", []), stage_figures.get("losses", [])
    for model in MODELS:
        for whose, form in (("own", "eager"), ("own", "graph"), ("torch", "torch-eager")):
            made = {row["precision"]: row for row in steps_rows
                    if row["model"] == model and row["form"] == form and row["ms"]}
            lost = {row["precision"]: row["loss"] for row in loss_rows
                    if row["model"] == model and row["whose"] == whose}
            full = made.get("fp32")
            for precision in ("fp32", "fp16", "bf16"):
                row = made.get(precision)
                if not row:
                    continue
                rows.append({"model": model, "whose": whose, "form": form, "precision": precision, "ms": row["ms"],
                             "times_as_fast": round(full["ms"] / row["ms"], 2) if full else None,
                             "peak_MB": row["peak_MB"], "reserved_MB": row["reserved_MB"],
                             "share_of_memory": round(row["peak_MB"] / full["peak_MB"], 2)
                             if full and full["peak_MB"] and row["peak_MB"] else None,
                             "loss": lost.get(precision)})
    return rows
