"""Timing on a machine that others use too: a slice of time in which other processes took more of the
processors than noise explains is thrown away and taken again.

What others used is the machine's busy time (/proc/stat, which counts ticks of 10 ms for each processor,
and what the host took away) less the processor time of our own processes."""
import os
import statistics
import time

TICKS = 0.022   # seconds; the counts of two processors may each be off by one tick
SHARE = 0.03    # of one processor


class Busy(Exception):
    """Raised if other processes keep using the processors."""


def busy_seconds(line):
    """Total processor seconds of all processes, from the first line of /proc/stat."""
    fields = line.split()
    if len(fields) < 9 or fields[0] != "cpu":
        raise ValueError(f"got '{line.strip()}', expected the line 'cpu ...' of /proc/stat")
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(x) for x in fields[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid):
    """Processor seconds of a process, including threads that have ended."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's clock id for that process


class Machine:
    """Reads the clocks. `pids` are our own processes beside this one."""

    def __init__(self, pids=()):
        self.pids = list(pids)

    def clock(self):
        return time.perf_counter()

    def busy(self):
        with open("/proc/stat", encoding="ascii") as file:
            return busy_seconds(file.readline())

    def own(self):
        times = os.times()
        return sum(times[:4]) + sum(process_seconds(pid) for pid in self.pids)

    def sleep(self, seconds):
        time.sleep(seconds)


def others_share(machine, action):
    """The result of action(), the share of one processor that others used meanwhile, and whether that
    is more than noise."""
    start, busy, own = machine.clock(), machine.busy(), machine.own()
    result = action()
    foreign = (machine.busy() - busy) - (machine.own() - own)
    elapsed = max(machine.clock() - start, 1e-9)
    return result, max(0.0, foreign / elapsed), foreign > TICKS + SHARE * elapsed


def take(machine, action, accept=False, patience=60):
    """Repeats action() for at most `patience` seconds until it is not disturbed. Returns its result and
    what others used meanwhile. `accept` takes any result."""
    deadline = machine.clock() + patience
    while True:
        result, share, disturbed = others_share(machine, action)
        if accept or not disturbed:
            return result, share
        while True:  # until a moment is quiet
            if machine.clock() > deadline:
                raise Busy(f"other processes used {100 * share:.0f}% of a processor")
            if not others_share(machine, lambda: machine.sleep(0.2))[2]:
                break


class Contest:
    """Contestants take turns with one slice per round. Forms of the peer that are clearly
    slower drop out after the second round, except the best one."""

    DROP = 1.15

    def __init__(self):
        self.times = {}   # name: milliseconds of its slices
        self.shares = []  # share of a processor that others used

    def add(self, name, milliseconds, share):
        self.times.setdefault(name, []).append(milliseconds)
        self.shares.append(share)

    def median(self, name):
        return statistics.median(self.times[name])

    def best(self, names):
        return min(names, key=self.median)

    def remaining(self, names):
        """The forms in `names` that are worth another slice; all are of one peer in one state."""
        if not names:
            return []
        if any(len(self.times.get(name, ())) < 2 for name in names):
            return list(names)
        fastest = min(min(self.times[name]) for name in names)
        return [name for name in names if min(self.times[name]) <= self.DROP * fastest]
