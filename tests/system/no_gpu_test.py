"""no_gpu_test.py SAMPLE...: a build with a device backend on a machine without a device. Every sample
runs on the CPU and says so in one line; asking for a device by name is an error that tells the reason.
Skipped (77) where there is a GPU. The emulated backend counts as one whose devices are hidden."""
import os
import subprocess
import sys
import tempfile

# Arguments that make each sample end within seconds.
ARGUMENTS = {
    "custom_op": [],
    "raw_pointers": [],
    "train_classifier": ["--model", "mlp", "--epochs", "1"],
    "precision_study": ["--only", "accumulation"],
    "regression": ["--epochs", "1"],
    "gan": ["--epochs", "1", "--hidden", "8"],
    "dqn": ["--steps", "20", "--batch", "4"],
    "char_gpt": ["--steps", "4", "--layers", "1", "--width", "16", "--heads", "2", "--context", "16"],
    "lstm_classifier": ["--epochs", "1", "--hidden", "4"],
}
# They need pictures, and share the code that says so with the others.
LEFT_OUT = {"vae", "finetune", "predict"}
HIDDEN = dict(os.environ, BINADE_HOST_DEVICES="0")


def run(*words, folder=None):
    return subprocess.run(words, env=HIDDEN, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)


def check_sample(program, arguments, folder):
    done = run(program, *arguments, folder=folder)
    said = [line for line in done.stdout.splitlines() if "cpu (no GPU: " in line]
    assert done.returncode == 0 and len(said) == 1, (
        f"{program}: status {done.returncode}, expected 0 and one line with 'cpu (no GPU: ', got:\n"
        f"{done.stdout}{done.stderr}")
    print(said[0])


def check_errors(program, folder):
    for device in "cuda", "emulated":
        done = run(program, "--device", device, "--run", f"{folder}/none")
        lines = done.stderr.splitlines()
        assert done.returncode != 0 and len(lines) == 1 and f"got {device}, but" in lines[0] and (
            "use cpu or auto" in lines[0]), f"--device {device}: status {done.returncode}, {lines}"
        assert not os.path.exists(f"{folder}/none"), "an error left a run directory"
        print(lines[0])


def main(programs):
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            name = os.path.basename(program)
            if name == "custom_op" and " on cuda:" in run(program).stdout:
                print("skipped: there is a GPU")
                return 77
            if name not in LEFT_OUT:
                check_sample(program, ARGUMENTS[name], folder)
        check_errors(next(p for p in programs if p.endswith("train_classifier")), folder)
    return 0


sys.exit(main(sorted(map(os.path.abspath, sys.argv[1:]))))
