"""The two states in which PyTorch is measured: "installed", with the libraries that its package brings, and
"strongest", with libraries preloaded that remove two limits of the packages:

- MKL asks whether the processor is Intel's and otherwise uses slower kernels: mkl_vendor.cpp answers.
- Inductor (torch.compile) uses vector instructions only if a test program finds Sleef's functions."""
import ctypes.util
import os

import processes

MKL_VENDOR = processes.ROOT / "build/peers/libmkl_vendor.so"  # compiled by setup
STATES = ("installed", "strongest")


def is_intel():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "GenuineIntel" in file.read()


def mkl_preload(has_mkl, intel, library):
    """Returns (library to preload or None, what to print)."""
    if not has_mkl:
        return None, "has no MKL"
    if intel:
        return None, "MKL needs no answer to its vendor check on Intel's processors"
    if not os.path.exists(library):
        return None, f"MKL's vendor check is not answered, because {library.name} is missing (bench/peers/setup)"
    return str(library), "MKL's vendor check answered"


def sleef_preload(has_inductor, library):
    if not has_inductor:
        return None, "has no Inductor"
    if not library:
        return None, "Sleef is absent, because libsleef is not installed (bench/peers/setup)"
    return library, "Sleef preloaded"


def preloads(version, intel=None, mkl_vendor=MKL_VENDOR, sleef=None):
    """The libraries to preload for a PyTorch, given its answer to "version", and what to print about them."""
    intel = is_intel() if intel is None else intel
    sleef = ctypes.util.find_library("sleef") if sleef is None else sleef
    found = [mkl_preload(version.get("mkl", False), intel, mkl_vendor),
             sleef_preload(version.get("inductor", False), sleef)]
    libraries = [library for library, _ in found if library]
    said = [text for _, text in found]
    if not libraries:
        said.append("so both states have the same libraries and differ in forms alone")
    return libraries, ", ".join(said)


class Peer:
    """One PyTorch with one number of threads: one process per state, or one for both if they coincide."""

    def __init__(self, python, threads, with_isa=False):
        self.python, self.threads = python, threads
        installed = self.start("installed")
        version = installed.ask("version")
        self.name = "torch " + version["version"].split("+")[0]
        self.libraries, said = preloads(version)
        self.workers = {"installed": installed, "strongest": installed}
        if self.libraries:
            self.workers["strongest"] = self.start("strongest")
        if with_isa and version.get("inductor"):
            found = [worker.ask("isa")["isa"] or "none" for worker in self.processes]
            said += f", Inductor finds vector instructions: {' as installed, '.join(found)}"
            said += " at its strongest" if len(found) > 1 else ""
        self.remark = f"{self.name} at its strongest: {said}."

    def start(self, state):
        """Starts a process in the environment of a state."""
        return processes.torch(self.python, self.threads, self.libraries if state == "strongest" else ())

    @property
    def processes(self):
        return list(dict.fromkeys(self.workers.values()))

    def close(self):
        for worker in self.processes:
            worker.close()
