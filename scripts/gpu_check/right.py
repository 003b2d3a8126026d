"""Call "right": is everything computed correctly? A failure here is a failure of the check."""
import glob
import json
import os
import re
import shutil

from stage import Failed, Skipped, device_line, find_tool
import worker

OPTIM_TESTS = ("optimizer", "optimizers", "loss_scaler", "clip", "precision_truths", "schedule", "device_step")
OP_TABLE_DRIVERS = ("forward", "gradient", "dtype", "repeat", "exact")
CUDA_TESTS = ("training", "device_runtime", "graphed_step", "trainer", "optimizer_step", "tensor_basics",
              "sequence_training", "precision")

# The checks that are skipped without a tool.
NEEDS = {
    "torch": "no comparison with PyTorch (stages kernel-speed, steps, losses)",
    "compute-sanitizer": "no memcheck, racecheck and synccheck",
    "ncu": "no profile of the hottest kernels",
    "nvidia-smi": "the driver's version is that of the runtime",
    "nvcc": "a kernel that fails cannot be compiled anew on this machine",
}


def missing_tools(options):
    found = {name: find_tool(name) for name in NEEDS if name != "torch"}
    missing = {name: NEEDS[name] for name, path in found.items() if path is None}
    reason = worker.why_no_torch(options.python)
    if reason:
        missing["torch"] = f"{NEEDS['torch']}: {reason}"
    return missing


def doctor(stage):
    text = stage.run(stage.programs.command("binade") + ["doctor"])
    found = re.search(device_line(stage.options.device), text, re.M)
    stage.figures["device"] = found.group(1).strip() if found else "unknown"
    driver = re.search(r"^driver\s+(.*)$", text, re.M)
    stage.figures["driver"] = driver.group(1) if driver else "unknown"
    if shutil.which("nvidia-smi") and not stage.emulated:
        smi = stage.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=False)
        stage.figures["driver"] = smi.strip().splitlines()[0] if smi.strip() else stage.figures["driver"]
    stage.figures["missing"] = missing_tools(stage.options)
    stage.detail = stage.figures["device"]
    if stage.figures["missing"]:
        stage.detail += f"; not here: {', '.join(stage.figures['missing'])}"


def conformance(stage):
    path = os.path.join(stage.options.out, "conformance.json")
    stage.run(stage.programs.command("cuda_conformance") + ["--json", path], check=False)
    try:
        with open(path) as file:
            result = json.load(file)
    except (OSError, ValueError):
        raise Failed("cuda_conformance wrote no result: see the log")
    for key in ("passed", "failed", "skipped"):
        stage.figures[key] = result[key]
    stage.detail = f"{result['passed']} checks"
    if result["failed"] or not result["passed"]:
        names = [c["name"] for c in result["checks"] if c["status"] == "FAIL"]
        raise Failed(f"{result['failed']} of {len(result['checks'])}: {', '.join(names[:5])}")


# Tests compare bits, which repeat only with our own kernels; the vendor's libraries have stages of their own.
FAMILIES = ("BINADE_GEMM", "BINADE_CONV2D", "BINADE_NORM", "BINADE_ATTENTION")  # families that a library implements
OWN = {family: "own" for family in FAMILIES}
LIBRARY = {family: "library" for family in FAMILIES}


def kernel_tests(stage):
    try:
        return stage.programs.tests("kernels", ["kernels_on_device"])  # of the preset emulated
    except Skipped:
        return stage.programs.tests("kernels", ["kernels_*_test"])


def op_table_tests(stage):
    return stage.programs.tests("op_table", [f"op_table_{driver}" for driver in OP_TABLE_DRIVERS])


def kernels(stage):
    stage.run_tests(kernel_tests(stage), OWN)


def op_table(stage):
    stage.run_tests(op_table_tests(stage), OWN)


def library(stage):
    if stage.emulated:
        raise Skipped("the emulated device has no library")
    stage.run_tests(kernel_tests(stage) + op_table_tests(stage), LIBRARY)


def runtime(stage):
    commands = stage.programs.tests("optim", [f"optim_{name}_test" for name in OPTIM_TESTS])
    stage.run_tests(commands + stage.programs.tests("cuda", [f"cuda_{name}_test" for name in CUDA_TESTS]))


def huge(stage):
    if stage.emulated:
        raise Skipped("tensors above 2^32 elements take minutes on the emulated device")
    # A test needs up to 30 GB, or is skipped.
    stage.run_tests(stage.programs.tests("train", ["train_huge_tensors_test"]),
                    {"BINADE_HUGE_TENSORS": stage.options.device}, jobs=2)


def parity(stage):
    folder = stage.options.cases or os.path.join(stage.options.here, "cases")
    files = sorted(glob.glob(os.path.join(folder, "*.safetensors")))
    if not files and not stage.options.cases:
        raise Skipped("no --cases, and none in the bundle")
    if not files:
        raise Failed(f"no *.safetensors in {folder}")
    command = stage.programs.command("parity_runner") + ["--device", stage.options.device, "--allow-not-covered"]
    if stage.emulated:
        command += ["--every", "8"]
    wrong, passed = [], 0
    for file, text in zip(files, stage.run_all([(command + [file], None) for file in files])):
        lines = [str(text)] if isinstance(text, Failed) else text.strip().splitlines()
        counts = re.search(r"(\d+) passed, (\d+) failed", lines[-1]) if lines else None
        passed += int(counts.group(1)) if counts else 0
        if not counts or int(counts.group(2)):
            wrong.append(f"{os.path.basename(file)}: {lines[-1] if lines else 'no output'}")
    stage.figures["passed"] = passed
    stage.detail = f"{passed} cases of {len(files)} files"
    if wrong:
        raise Failed(f"{len(wrong)} of {len(files)} files: {'; '.join(wrong[:3])}"[:400])


def models(stage):
    if stage.emulated:
        raise Skipped("too slow on the emulated device; the stage runtime trains small models")
    data = stage.options.data
    # Minimum accuracies on MNIST, and on the images that train_classifier draws without data.
    least = {("cnn", "fp16"): 99.0, ("cnn", "fp32"): 99.0, ("mlp", "fp16"): 97.5, ("mlp", "fp32"): 97.5}
    wrong = []
    for (model, precision), accuracy in least.items():
        run = os.path.join(os.path.abspath(stage.options.out), "runs", f"{model}-{precision}")
        command = stage.programs.command("train_classifier") + [
            "--model", model, "--precision", precision, "--device", stage.options.device, "--epochs", "3",
            "--run", run, "--overwrite"]
        text = stage.run(command + (["--data", os.path.abspath(data)] if data else []))
        found = re.search(r"test accuracy: ([0-9.]+)%", text)
        if not found:
            raise Failed(f"{model} {precision}: no accuracy in the output")
        stage.figures[f"{model}_{precision}_accuracy"] = float(found.group(1))
        wanted = accuracy if data else 90.0 if model == "cnn" else 50.0
        if float(found.group(1)) < wanted:
            wrong.append(f"{model} {precision} {found.group(1)}% < {wanted}%")
    stage.detail = ", ".join(f"{k.replace('_accuracy', '')} {v}%" for k, v in stage.figures.items())
    if wrong:
        raise Failed("; ".join(wrong))


# Ranks that share a GPU must look like separate machines (NCCL_HOSTID, which nccl_check sets), so
# that only sockets connect them.
NCCL_ENVIRONMENT = {
    "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0", "NCCL_CUMEM_ENABLE": "0",
    "NCCL_MAX_NCHANNELS": "2", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}


def nccl(stage):
    environment = dict(NCCL_ENVIRONMENT)
    if stage.emulated:
        fake = os.path.join(os.path.abspath(stage.programs.bin), "libfake_nccl.so")
        if not os.path.exists(fake):
            raise Skipped(f"{fake} is not built")
        environment["BINADE_NCCL_LIBRARY"] = fake
    rows = stage.figures["ranks"] = []
    for ranks in (2, 4):
        command = stage.programs.command("binade") + ["launch", "-n", str(ranks), "--"]
        text = stage.run(command + stage.programs.command("nccl_check") + [stage.options.device],
                         environment, check=False)
        skipped = re.search(r"^nccl_check: skipped: (.*)$", text, re.M)
        if skipped:
            raise Skipped(f"{ranks} ranks: {skipped.group(1)}"[:300])
        lines = [line for line in text.splitlines() if line.startswith("{")]
        if not lines:
            last = [line for line in text.strip().splitlines() if "error" in line][:1]
            raise Failed(f"{ranks} ranks: {last[0] if last else 'no result'}"[:300])
        rows.append(json.loads(lines[-1]))
    stage.detail = f"{sum(row['sums'] for row in rows)} sums on 2 and 4 ranks"
