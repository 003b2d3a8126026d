"""PyTorch's side of bench/peers/run, the counterpart of main.cpp: reads one command a line and answers
each with one line of JSON.

  version                        of PyTorch, and whether it has MKL and Inductor
  isa                            the vector instructions that Inductor finds; "" without any
  forms WORK STATE               the ways to do the work that may be fastest, "installed" or "strongest"
  prepare WORK FORM THREADS      makes the work in that form and does it a few times; "clear" forgets all
  slice FORM SECONDS             repeats it
  peak                           largest resident memory so far, MiB
  start WORK FILE FORM           the values of its first call, from the parameters and inputs of the file
  curve WORK FILE STEPS LR BATCH losses of each step, likewise

WORK is STEP:MODEL:BATCH:RULE or the name of an op (rows.py); forms are in torch_model_work.py and
torch_ops.py."""
import dataclasses
import json
import math
import sys
import time

import torch

import rows
import safetensors_file
import torch_model_work
import torch_ops

WARM_UP = 3


def read(file):
    return {name: torch.from_numpy(array) for name, array in safetensors_file.read(file).items()}


def model_row(work):
    row = rows.find(work)
    if not row.has_model:
        raise ValueError(f"got '{work}', expected work with a model")
    return row


class Session:
    def __init__(self):
        self.calls = {}  # form: the function and its units of work

    def version(self):
        return {"version": torch.__version__, "mkl": torch.backends.mkl.is_available(),
                "inductor": torch_model_work.IS_2}

    def isa(self):
        try:
            from torch._inductor.cpu_vec_isa import pick_vec_isa
        except ImportError:  # PyTorch before 2.5
            from torch._inductor.codecache import pick_vec_isa
        isa = pick_vec_isa()
        return {"isa": str(isa) if isa else ""}

    def forms(self, work, state):
        row = rows.find(work)
        return {"forms": torch_model_work.forms(row, state) if row.has_model else torch_ops.forms(work)}

    def clear(self):
        self.calls.clear()
        return {"ok": True}

    def prepare(self, work, form, threads):
        torch.set_num_threads(int(threads))
        torch.manual_seed(0)
        if rows.find(work).has_model:
            call = torch_model_work.make_work(rows.find(work), form)
            units = call.units
        else:
            call, units = torch_ops.make_call(work, form)
        with torch_model_work.compiler_settings(form):
            for _ in range(WARM_UP):
                call()
        self.calls[form] = call, units
        return {"ok": True}

    def slice(self, form, seconds):
        call, units_of_call = self.calls[form]
        seconds, units = float(seconds), 0
        cpu, start = time.process_time(), time.perf_counter()
        now = start
        while units == 0 or now - start < seconds:
            call()
            units += units_of_call
            now = time.perf_counter()
        return {"units": units, "wall": now - start, "cpu": time.process_time() - cpu}

    def peak(self):
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return {"peak_mb": int(line.split()[1]) / 1024}

    def start(self, work, file, form):
        with torch_model_work.compiler_settings(form):
            return {"values": torch_model_work.make_work(model_row(work), form, read(file)).values()}

    def curve(self, work, file, steps, lr, batch):
        row = dataclasses.replace(model_row(work), batch=int(batch))
        form = torch_model_work.forms(row, "installed")[0]
        training = torch_model_work.make_work(row, form, read(file), lr=float(lr))
        losses = [loss for _ in range(int(steps)) for loss in training.values()]
        if not all(math.isfinite(loss) for loss in losses):
            raise ValueError(f"losses are not finite: {losses}")
        return {"losses": losses}


def main():
    session = Session()
    answers = {name: getattr(session, name)
               for name in ("version", "isa", "forms", "clear", "prepare", "slice", "peak", "start", "curve")}
    for line in sys.stdin:
        command, *words = line.split()
        try:
            answer = answers[command](*words)
        except Exception as error:  # the other side decides what to do
            answer = {"error": f"{command} {' '.join(words[:2])}: {type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
