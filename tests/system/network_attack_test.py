#!/usr/bin/env python3
"""A job of four ranks while strangers attack its control port and its data ports: it ends with the same
result, in about the same time and memory.

network_attack_test.py PROGRAM BINADE [all]: a short form, or every attack by itself with times, and
  ranks in network namespaces (root only).
network_attack_test.py attack HOST KEY SECONDS KIND PORT...: one attacker, for the above.
"""
import faulthandler
import hashlib
import hmac
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

MAGIC, HELLO, CHALLENGE, PROOF, GOODBYE = 0x32444E42, 0, 1, 2, 10
RANKS, MEMORY_KB, REPEATS = 4, 32 << 10, 3
ALLOWED_SLOWDOWN = 1.05  # reported, not asserted: timings never decide a test


def frame(kind, data=b"", size=None):
    return struct.pack("<III", MAGIC, kind, len(data) if size is None else size) + data


def claim(purpose=1, size=RANKS, source=1, target=0, group=0):
    return struct.pack("<IiiiQ", purpose, size, source, target, group)


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def hello(key, who, nonce):
    return frame(HELLO, who + nonce + mac(key, b"binade hello\n", who, nonce))


def connect(host, port, wait=1.0):
    try:
        return socket.create_connection((host, port), wait)
    except OSError:
        return None


def answer_of(stranger):
    """What a listener says to a connection before it hangs up."""
    got = b""
    try:
        while part := stranger.recv(4096):
            got += part
            if len(got) >= 12 and len(got) >= 12 + struct.unpack("<III", got[:12])[2]:
                break
    except OSError:
        pass
    return got


class Attacks:
    """Each method does one thing to a port; run() repeats it."""

    def __init__(self, host, key):
        self.host, self.key, self.held = host, key, []

    def hold(self, stranger):
        if stranger:
            self.held.append(stranger)
            if len(self.held) > 900:
                self.held.pop(0).close()

    def half_open(self, port):
        self.hold(connect(self.host, port))

    def slow(self, port):
        stranger = connect(self.host, port)
        self.hold(stranger)
        for one in self.held[-20:]:
            try:
                one.send(b"B")
            except OSError:
                pass
        time.sleep(0.05)

    def garbage(self, port):
        with connect(self.host, port) or socket.socket() as stranger:
            try:
                stranger.sendall(os.urandom(2000))
            except OSError:
                pass

    def empty(self, port):
        with connect(self.host, port) or socket.socket() as stranger:
            try:
                for kind in range(12):
                    stranger.sendall(frame(kind))
            except OSError:
                pass

    def large(self, port):
        """16 MiB behind each prefix that could lead to them."""
        stranger = connect(self.host, port)
        if stranger:
            stranger.settimeout(0.2)
            try:
                stranger.sendall(frame(HELLO, size=16 << 20) + bytes(16 << 20))
            except OSError:
                pass
            self.hold(stranger)

    def wrong_secret(self, port):
        for source in range(RANKS):
            with connect(self.host, port) or socket.socket() as stranger:
                try:
                    stranger.sendall(hello(b"k" * 32, claim(source=source), os.urandom(32)))
                    answer_of(stranger)
                except OSError:
                    pass

    def impostor(self, port):
        """Says that it is a rank, without any proof."""
        with connect(self.host, port) or socket.socket() as stranger:
            request = struct.pack("<ii64s16s", os.getpid(), 1, b"host", b"127.0.0.1")
            try:
                stranger.sendall(frame(HELLO, claim() + bytes(64)) + frame(PROOF, bytes(32) + request) + frame(GOODBYE))
            except OSError:
                pass

    def replay(self, port):
        """A true hello that was seen before, with the proof for another challenge."""
        with connect(self.host, port) or socket.socket() as stranger:
            who, nonce = claim(), b"n" * 32
            try:
                stranger.sendall(hello(self.key, who, nonce))
                if answer_of(stranger):
                    old = mac(self.key, b"binade connects\n", who, nonce, b"o" * 32)
                    stranger.sendall(frame(PROOF, old))
                    assert not answer_of(stranger), "a replayed proof is welcome"
            except OSError:
                pass

    def reflection(self, port):
        """The proof of the listener, sent back."""
        with connect(self.host, port) or socket.socket() as stranger:
            try:
                stranger.sendall(hello(self.key, claim(), os.urandom(32)))
                challenge = answer_of(stranger)
                if challenge:
                    stranger.sendall(frame(PROOF, challenge[44:76]))
                    assert not answer_of(stranger), "a reflected proof is welcome"
            except OSError:
                pass

    def flood(self, port):
        """2,000 connections at once, as fast as one thread can begin them."""
        opened = []
        for _ in range(2000):
            stranger = socket.socket()
            stranger.setblocking(False)
            stranger.connect_ex((self.host, port))
            opened.append(stranger)
            if len(opened) > 900:
                opened.pop(0).close()
        for stranger in opened:
            stranger.close()
        time.sleep(0.2)

    def run(self, kind, ports, seconds):
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            for port in ports:
                getattr(self, kind)(port)
                count += 1
            time.sleep(0.002)
        return count


KINDS = ("half_open", "slow", "garbage", "empty", "large", "wrong_secret", "impostor", "replay", "reflection", "flood")


def listening(pids):
    """(address, port) of every TCP socket that these processes listen at, with the process."""
    inodes = {}
    for pid in pids:
        try:
            for file in os.scandir(f"/proc/{pid}/fd"):
                match = re.match(r"socket:\[(\d+)\]", os.readlink(file.path))
                if match:
                    inodes.setdefault(match[1], pid)
        except OSError:
            pass
    found = []
    for pid in pids[:1] or ["self"]:
        try:
            lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
            assert len(pathlib.Path(f"/proc/{pid}/net/tcp6").read_text().splitlines()) >= 0
        except OSError:
            continue
        for line in lines:
            word = line.split()
            if word[3] == "0A" and word[9] in inodes:
                host, port = word[1].split(":")
                address = socket.inet_ntoa(struct.pack("<I", int(host, 16)))
                found.append((address, int(port, 16), inodes[word[9]]))
    return found


def children(pid):
    out = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if int((process / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                out += [int(process.name), *children(int(process.name))]
        except (OSError, ValueError, IndexError):
            pass
    return out


def environment_of(pid):
    try:
        pairs = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return dict(pair.decode().split("=", 1) for pair in pairs if b"=" in pair)
    except OSError:
        return {}


def control_key(environment):
    use = f"binade key\ncontrol  {environment['BINADE_PORT']}".encode()
    return mac(environment["BINADE_SECRET"].encode(), use)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of those that have ended
    return used.ru_utime + used.ru_stime


def peak_kb(pid):
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    except (OSError, TypeError):
        return 0


class Sink:
    """An unrelated port: accepts and reads as a program does that knows nothing of its strangers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        self.process = os.fork()
        if self.process == 0:
            open_ones = []
            while True:
                ready = select.select([self.listener, *open_ones], [], [])[0]
                for one in ready:
                    try:
                        if one is self.listener:
                            open_ones.append(one.accept()[0])
                        elif not one.recv(4096):
                            open_ones.remove(one)
                    except OSError:
                        open_ones.remove(one)
                del open_ones[:-64]

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        self.listener.close()


class Job:
    """A job of four ranks; the later ones come late, so that its start can be attacked."""

    def __init__(self, steps, late=0.0):
        start = f"sleep $(awk \"BEGIN{{print {late} * $BINADE_RANK}}\"); exec {PROGRAM} work {steps}"
        self.process = subprocess.Popen([BINADE, "launch", "-n", str(RANKS), "sh", "-c", start],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.peaks, self.running, self.cpu = {}, True, 0.0
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def ranks(self):
        return [pid for pid in children(self.process.pid) if "BINADE_RANK" in environment_of(pid)]

    def watch(self):
        while self.running:
            for pid in self.ranks():
                rank = environment_of(pid).get("BINADE_RANK")
                if rank is not None:  # it may have ended since
                    self.peaks[rank] = max(self.peaks.get(rank, 0), peak_kb(pid))
            time.sleep(0.1)

    def targets(self):
        """The key, the control port and the data ports so far."""
        for _ in range(200):
            ranks = self.ranks()
            sockets = listening(ranks)
            if ranks and sockets:
                environment = environment_of(ranks[0])
                return control_key(environment), int(environment["BINADE_PORT"]), sockets
            time.sleep(0.02)
        raise AssertionError("nothing listens")

    def is_running(self):
        """Without taking its exit status."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def end(self):
        before = cpu_of_children()
        output = self.process.communicate(timeout=300)[0]
        self.cpu = cpu_of_children() - before
        self.running = False
        self.watcher.join()
        match = re.search(r"trained to (\d+) in ([\d.e-]+) s", output)
        assert self.process.returncode == 0 and match, f"status {self.process.returncode}:\n{output[-3000:]}"
        return match[1], float(match[2])


def attack(host, key, seconds, kinds, ports):
    """Attackers, one process for each kind."""
    return [subprocess.Popen([sys.executable, "-B", __file__, "attack", host, key.hex(), str(seconds), kind, *map(str, ports)])
            for kind in kinds]


def finish(attackers, kill=False):
    for attacker in attackers:
        if kill:
            attacker.kill()
        status = attacker.wait()
        assert kill or status == 0, f"an attacker ended with {status}"


def attacked(kinds, steps, late, decoy=None):
    """Runs a job under attack from its first socket to its end: result, seconds, peaks."""
    job = Job(steps, late)
    key, control, sockets = job.targets()
    assert all(address == "127.0.0.1" for address, _, _ in sockets), f"off loopback: {sockets}"
    attackers = attack("127.0.0.1", key, 60, kinds, [decoy or control])
    known = {control}
    while job.is_running():
        sockets = listening(job.ranks())
        fresh = {port for _, port, _ in sockets} - known
        assert all(address == "127.0.0.1" for address, _, _ in sockets), f"off loopback: {sockets}"
        if fresh:
            known |= fresh
            attackers += attack("127.0.0.1", key, 60, kinds, [decoy] if decoy else sorted(fresh))
        time.sleep(0.1)
    result, seconds = job.end()
    finish(attackers, kill=True)
    return result, (seconds, job.cpu), job.peaks, len(known) - 1


def expect_unharmed(kinds, steps, late, expected, calm):
    result, seconds, peaks, data_ports = attacked(kinds, steps, late)
    assert result == expected, f"{kinds}: trained to {result}, expected {expected}"
    assert data_ports >= RANKS - 1, f"{kinds}: saw {data_ports} data ports"
    for rank, peak in peaks.items():
        assert peak <= calm[rank] + MEMORY_KB, f"{kinds}: rank {rank} used {peak} KiB, alone {calm[rank]}"
    more = max(peaks[rank] - calm[rank] for rank in peaks)
    return seconds, more


def doctor(*arguments, **environment):
    ended = subprocess.run([BINADE, "doctor", "--security", *arguments], env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    return ended.returncode, ended.stdout


def doctor_tells(job):
    """What listens, who may read the secret and change files; never the secret itself."""
    _, control, _ = job.targets()
    status, output = doctor()
    assert status == 0 and f"at 127.0.0.1 port {control}" in output, f"{status}\n{output}"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "secret"
        path.write_text("the secret of a test\n", encoding="ascii")
        path.chmod(0o600)
        fine = doctor("--run", folder, BINADE_SECRET_FILE=str(path))
        path.chmod(0o644)
        readable = doctor(BINADE_SECRET_FILE=str(path))
        path.chmod(0o600)
        pathlib.Path(folder).chmod(0o777)
        writable = doctor("--run", folder)
        short = doctor(BINADE_SECRET="short secret")
        remote = doctor(RANK="0", WORLD_SIZE="2", MASTER_ADDR="10.1.2.3", MASTER_PORT="1")
        everywhere = doctor(RANK="0", WORLD_SIZE="2", MASTER_ADDR="10.1.2.3", MASTER_PORT="1", BINADE_LISTEN="0.0.0.0")
    assert fine[0] == 0 and "BINADE_SECRET_FILE: 20 bytes" in fine[1], fine
    for (got, output), words in ((readable, "mode is 0644"), (writable, "others may change it"), (short, "holds 12 bytes"),
                                 (remote, "gives the ranks no secret"), (everywhere, "got '0.0.0.0'")):
        assert got == 1 and "UNSAFE" in output and words in output, f"{words}: {got}\n{output}"
    assert not any("the secret of a test" in output for _, output in (fine, readable)), "the secret is printed"


def direct_answers():
    """What single strangers get, in how many seconds."""
    job = Job(50, late=1.2)  # seconds in which only some have come
    key, control, _ = job.targets()
    doctor_tells(job)
    start = time.monotonic()
    silent, large = connect("127.0.0.1", control), connect("127.0.0.1", control)
    large.sendall(frame(HELLO, size=16 << 20))
    assert answer_of(large) == b"" and time.monotonic() - start < 0.6, "a large frame is not refused at once"
    assert answer_of(silent) == b"", "a silent stranger gets an answer"
    silent.close()
    waited = time.monotonic() - start
    replay = connect("127.0.0.1", control)
    replay.sendall(hello(key, claim(), b"n" * 32))
    challenge = answer_of(replay)
    assert struct.unpack("<III", challenge[:12])[1] == CHALLENGE, "a true hello is not challenged"
    replay.sendall(frame(PROOF, mac(key, b"binade connects\n", claim(), b"n" * 32, b"o" * 32)))
    assert answer_of(replay) == b"", "a replayed proof is answered"
    job.end()
    assert waited < 2.5, f"a silent stranger stays for {waited:.1f} s"


def refused_without_a_secret():
    """Off the loopback interface a job without a secret ends with one line."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            own = probe.getsockname()[0]
        except OSError:
            own = "127.0.0.1"
    if own.startswith("127."):
        print("skipped: this machine has no other interface than loopback")
        return
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": own, "MASTER_PORT": "0"}
    ended = subprocess.run([PROGRAM, "world"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    lines = ended.stdout.strip().splitlines()
    assert ended.returncode == 1 and len(lines) == 1 and "BINADE_SECRET_FILE" in lines[0], ended.stdout


# --- every attack, with times, and namespaces ---

def compare_times(steps, expected, calm):
    """Medians of interleaved runs: the attackers at the job, and the same attackers at another port."""
    for kind in KINDS:
        own, other, more = [], [], 0
        for _ in range(REPEATS):
            seconds, grown = expect_unharmed([kind], steps, 0.2, expected, calm)
            own.append(seconds)
            more = max(more, grown)
            sink = Sink()
            other.append(attacked([kind], steps, 0.2, sink.port)[1])
            sink.close()
        (wall, cpu), (other_wall, other_cpu) = (tuple(map(statistics.median, zip(*runs))) for runs in (own, other))
        note = "" if wall <= ALLOWED_SLOWDOWN * other_wall else " (more than 1.05)"
        print(f"{kind:13} {wall:7.3f} s, at another port {other_wall:7.3f} s, ratio {wall / other_wall:.3f}{note}; processor of the "
              f"job {cpu:.2f} s and {other_cpu:.2f} s, ratio {cpu / other_cpu:.3f}; {more:+d} KiB", flush=True)


class Namespaces:
    """Two machines and an attacker on one network, 10.77.0.1 to 3."""

    def __init__(self):
        self.names = [f"binade{os.getpid()}{letter}" for letter in "abc"]

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        for name in self.names:
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
        a, b, c = self.names
        self.ip("-n", c, "link", "add", "br0", "type", "bridge")
        for i, name in enumerate((a, b)):
            self.ip("-n", c, "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            self.ip("-n", c, "link", "set", f"v{i}", "master", "br0", "up")
            self.ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            self.ip("-n", name, "link", "set", "eth0", "up")
        self.ip("-n", c, "addr", "add", "10.77.0.3/24", "dev", "br0")
        self.ip("-n", c, "link", "set", "br0", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)

    def start(self, where, command, **environment):
        return subprocess.Popen(["ip", "netns", "exec", self.names[where], *command],
                                env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def between_machines(steps, expected):
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("skipped: network namespaces need root and ip")
        return
    try:
        with Namespaces() as net, tempfile.TemporaryDirectory() as folder:
            job_between_machines(net, folder, steps, expected)
    except subprocess.CalledProcessError as error:
        print(f"skipped: {' '.join(error.cmd)}: {error.stderr.decode().strip()}")


def job_between_machines(net, folder, steps, expected):
    path = os.path.join(folder, "secret")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
        file.write(os.urandom(32).hex())
    common = {"WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29511"}
    bare = net.start(0, [PROGRAM, "world"], RANK="0", LOCAL_RANK="0", **common)
    output = bare.communicate(timeout=20)[0]
    assert bare.returncode == 1 and "BINADE_SECRET_FILE" in output, output
    common["BINADE_SECRET_FILE"] = path
    ranks = [net.start(rank // 2, [PROGRAM, "work", str(steps)], RANK=str(rank), LOCAL_RANK=str(rank % 2), **common)
             for rank in (0, 1)]
    script = [sys.executable, "-B", __file__, "attack", "10.77.0.1", bytes(32).hex(), "4"]
    attackers = [net.start(2, [*script, kind, "29511"]) for kind in ("flood", "half_open", "garbage")]
    time.sleep(1)
    ranks += [net.start(rank // 2, [PROGRAM, "work", str(steps)], RANK=str(rank), LOCAL_RANK=str(rank % 2), **common)
              for rank in (2, 3)]
    while ranks[3].poll() is None:
        for machine, pair in enumerate((ranks[:2], ranks[2:])):
            for address, port, _ in listening([rank.pid for rank in pair]):
                assert address == f"10.77.0.{machine + 1}", f"listens at {address}:{port}"
        time.sleep(0.1)
    outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
    for attacker in attackers:
        attacker.kill()
        attacker.communicate()
    assert f"trained to {expected} " in outputs[0], outputs
    print("two machines: unharmed, nothing listens elsewhere")


def main():
    everything = len(sys.argv) > 3
    steps = 1500 if everything else 200
    if not everything:
        faulthandler.dump_traceback_later(100, exit=True)  # says where, if it hangs
    job = Job(steps)
    expected, _ = job.end()
    calm = job.peaks
    refused_without_a_secret()
    direct_answers()
    if not everything:
        seconds, more = expect_unharmed(("flood", "large"), steps, 0.2, expected, calm)
        print(f"unharmed: {seconds[0]:.2f} s, {more:+d} KiB")
        return
    compare_times(steps, expected, calm)
    between_machines(steps, expected)


if __name__ == "__main__":
    if sys.argv[1] == "attack":
        HOST, KEY, SECONDS, KIND = sys.argv[2:6]
        Attacks(HOST, bytes.fromhex(KEY)).run(KIND, list(map(int, sys.argv[6:])), float(SECONDS))
    else:
        PROGRAM, BINADE = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
        main()
