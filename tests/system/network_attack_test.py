#!/usr/bin/env python3
"""A job of four ranks while strangers attack its control port and its data ports: it ends with the same
result, in about the same time and memory.

network_attack_test.py PROGRAM BINADE [all]: a short form, or every attack by itself with times, and
  ranks in network namespaces (root only).
network_attack_test.py attack KEY KIND HOST:PORT[:RANK]...: one attacker, for the above, until it is killed;
  with RANK at a data port.
network_attack_test.py sink HOST PORT: an unrelated port, for the above.
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

MAGIC, HELLO, CHALLENGE, PROOF, ROSTER, GOODBYE = 0x32444E42, 0, 1, 2, 4, 10
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
    """Each method does one thing to an address; run() repeats it."""

    def __init__(self, key, targets):
        self.key, self.held, self.claims = key, [], {}
        for target in targets:
            host, port, *rank = target.split(":")
            self.claims[host, int(port)] = claim(2, RANKS, RANKS - 1, int(rank[0])) if rank else claim()

    def hold(self, stranger):
        if stranger:
            self.held.append(stranger)
            if len(self.held) > 900:
                self.held.pop(0).close()

    def half_open(self, at):
        self.hold(connect(*at))

    def slow(self, at):
        stranger = connect(*at)
        self.hold(stranger)
        for one in self.held[-20:]:
            try:
                one.send(b"B")
            except OSError:
                pass
        time.sleep(0.05)

    def garbage(self, at):
        with connect(*at) or socket.socket() as stranger:
            try:
                stranger.sendall(os.urandom(2000))
            except OSError:
                pass

    def empty(self, at):
        with connect(*at) or socket.socket() as stranger:
            try:
                for kind in range(12):
                    stranger.sendall(frame(kind))
            except OSError:
                pass

    def large(self, at):
        """16 MiB behind each prefix that could lead to them."""
        stranger = connect(*at)
        if stranger:
            stranger.settimeout(0.2)
            try:
                stranger.sendall(frame(HELLO, size=16 << 20) + bytes(16 << 20))
            except OSError:
                pass
            self.hold(stranger)

    def wrong_secret(self, at):
        for source in range(RANKS):
            with connect(*at) or socket.socket() as stranger:
                try:
                    stranger.sendall(hello(b"k" * 32, claim(source=source), os.urandom(32)))
                    answer_of(stranger)
                except OSError:
                    pass

    def impostor(self, at):
        """Says that it is a rank, without any proof."""
        with connect(*at) or socket.socket() as stranger:
            request = struct.pack("<ii64s16s", os.getpid(), 1, b"host", b"127.0.0.1")
            try:
                stranger.sendall(frame(HELLO, self.claims[at] + bytes(64)) + frame(PROOF, bytes(32) + request) + frame(GOODBYE))
            except OSError:
                pass

    def replay(self, at):
        """A true hello that was seen before, with the proof for another challenge."""
        with connect(*at) or socket.socket() as stranger:
            who, nonce = self.claims[at], b"n" * 32
            try:
                stranger.sendall(hello(self.key, who, nonce))
                if answer_of(stranger):
                    old = mac(self.key, b"binade connects\n", who, nonce, b"o" * 32)
                    stranger.sendall(frame(PROOF, old))
                    assert not answer_of(stranger), "a replayed proof is welcome"
            except OSError:
                pass

    def reflection(self, at):
        """The proof of the listener, sent back."""
        with connect(*at) or socket.socket() as stranger:
            try:
                stranger.sendall(hello(self.key, self.claims[at], os.urandom(32)))
                challenge = answer_of(stranger)
                if challenge:
                    stranger.sendall(frame(PROOF, challenge[44:76]))
                    assert not answer_of(stranger), "a reflected proof is welcome"
            except OSError:
                pass

    def flood(self, at):
        """2,000 connections at once, as fast as one thread can begin them."""
        opened = []
        for _ in range(2000):
            stranger = socket.socket()
            stranger.setblocking(False)
            stranger.connect_ex(at)
            opened.append(stranger)
            if len(opened) > 900:
                opened.pop(0).close()
        for stranger in opened:
            stranger.close()
        time.sleep(0.2)

    def run(self, kind):
        end = time.monotonic() + 900  # it is killed before
        while time.monotonic() < end:
            for at in self.claims:
                getattr(self, kind)(at)
            time.sleep(0.002)


KINDS = ("half_open", "slow", "garbage", "empty", "large", "wrong_secret", "impostor", "replay", "reflection", "flood")
KEYED = ("replay", "reflection")  # these know what is no secret on the way


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
    use = f"binade key\ncontrol {environment.get('JOB', '')} {environment['BINADE_PORT']}".encode()
    return mac(environment["BINADE_SECRET"].encode(), use)


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of those that have ended
    return used.ru_utime + used.ru_stime


def peak_kb(pid):
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
    except (OSError, TypeError):
        return 0


def serve_strangers(host, port):
    """An unrelated port: accepts and reads as a program does that knows nothing of its strangers, and hangs up on
    one that sends more than 4 kB. If it read all of it, the attacker would be the slower for it."""
    listener, open_ones = socket.create_server((host, port), backlog=4096), {}  # with the bytes that they sent
    print("listens", flush=True)
    while True:
        ready = select.select([listener, *open_ones], [], [])[0]
        for one in ready:
            try:
                if one is listener:
                    open_ones[one.accept()[0]] = 0
                    continue
                sent = len(one.recv(4097))
                open_ones[one] += sent
                if sent == 0 or open_ones[one] > 4096:
                    one.close()
                    del open_ones[one]
            except OSError:
                open_ones.pop(one, None)
        for one in list(open_ones)[:-64]:
            one.close()
            del open_ones[one]


class Sink:
    def __init__(self, start, target):
        self.target = target
        self.process = start([sys.executable, "-B", __file__, "sink", *target.split(":")])
        assert self.process.stdout.readline() == "listens\n", "nothing listens at the unrelated port"

    def close(self):
        self.process.kill()
        self.process.communicate()


def start_here(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Relay:
    """Between the last rank and rank 0, at another address with the same port. It reads the roster as anybody on
    the way can, and holds it back, so that ranks wait at their data ports; the test knows the secret too, and so
    has the key of the data ports."""

    ADDRESS = "127.0.0.2"

    def __init__(self, control_key, port):
        self.control_key, self.port, self.held = control_key, port, 0.0
        self.key, self.ports = None, []
        self.known, self.released = threading.Event(), threading.Event()
        self.listener = socket.create_server((self.ADDRESS, port))
        self.listener.settimeout(20)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            inner = self.listener.accept()[0]
            outer = socket.create_connection(("127.0.0.1", self.port), 20)
        except OSError:
            return
        for one in (inner, outer):
            one.settimeout(None)
        threading.Thread(target=self.pump, args=(inner, outer), daemon=True).start()
        self.pump_frames(outer, inner)

    @staticmethod
    def pump(source, target):
        try:
            while part := source.recv(4096):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def pump_frames(self, source, target):
        try:
            while len(prefix := source.recv(12, socket.MSG_WAITALL)) == 12:
                _, kind, size = struct.unpack("<III", prefix)
                data = source.recv(size, socket.MSG_WAITALL) if size else b""
                if kind == ROSTER:
                    self.hold(data)
                target.sendall(prefix + data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def hold(self, roster):
        start = time.monotonic()
        self.ports = [int(line.split()[2]) for line in roster[32:].decode().splitlines()]
        self.key = mac(self.control_key, b"binade key\n", b"data " + roster[:32])
        self.known.set()
        self.released.wait(10)
        self.held = time.monotonic() - start

    def close(self):
        self.released.set()
        self.listener.close()


class Job:
    """A job of four ranks; the later ones come late, so that its start can be attacked, the last one through a
    relay if there is one."""

    network = "127.0.0."

    def __init__(self, steps, late=0.0, through_relay=False, closed=None):
        """Each rank begins `late` seconds after the one before; all but rank 0 only when no file `closed` exists."""
        relay = f"[ $BINADE_RANK != {RANKS - 1} ] || export BINADE_ADDRESS={Relay.ADDRESS}; " if through_relay else ""
        gate = f'while [ $BINADE_RANK != 0 ] && [ -e "{closed}" ]; do sleep 0.05; done; ' if closed else ""
        start = f"{relay}{gate}sleep $(awk \"BEGIN{{print {late} * $BINADE_RANK}}\"); exec {PROGRAM} work {steps}"
        self.process = start_here([BINADE, "launch", "-n", str(RANKS), "sh", "-c", start])
        self.watch_ranks()

    def watch_ranks(self):
        self.peaks, self.running, self.cpu = {}, True, 0.0
        self.watcher = threading.Thread(target=self.watch, daemon=True)  # a test that fails ends at once
        self.watcher.start()

    def ranks(self):
        return [pid for pid in children(self.process.pid) if "BINADE_RANK" in environment_of(pid)]

    def watch(self):
        while self.running:
            for pid in self.ranks():
                rank = rank_of(pid)
                if rank is not None:  # it may have ended since
                    self.peaks[rank] = max(self.peaks.get(rank, 0), peak_kb(pid))
            time.sleep(0.1)

    def sockets(self):
        return listening(self.ranks())

    def secrets(self, rank):
        return environment_of(rank)

    def targets(self):
        """The key, the control port and the data ports so far."""
        for _ in range(200):
            ranks = self.ranks()
            sockets = self.sockets()
            if ranks and sockets:
                environment = self.secrets(ranks[0])
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


def attack(key, kind, targets, start=start_here):
    return start([sys.executable, "-B", __file__, "attack", key.hex(), kind, *targets])


def finish(attackers):
    """Every attacker attacked until now, and none of them was welcome."""
    for attacker in attackers:
        attacker.kill()
    for attacker in attackers:
        output = attacker.communicate()[0]
        assert attacker.returncode == -signal.SIGKILL, f"an attacker ended with {attacker.returncode}: {output}"


def rank_of(pid):
    return environment_of(pid).get("BINADE_RANK") or environment_of(pid).get("RANK")


class Attack:
    """Attackers of every kind at the sockets of a job as they appear, or at a decoy instead."""

    def __init__(self, job, kinds, start=start_here, decoy=None, relay=False):
        self.job, self.kinds, self.start, self.decoy = job, kinds, start, decoy
        self.key, self.control, _ = job.targets()
        self.relay = Relay(self.key, self.control) if relay else None
        self.attackers, self.done, self.begun = [], set(), 0.0

    def watch(self):
        """Attacks what is new. Half a second after the roster came, the last rank may have it."""
        sockets = self.job.sockets()
        assert all(address.startswith(self.job.network) for address, _, _ in sockets), f"elsewhere: {sockets}"
        named = [(f"{address}:{port}", None if port == self.control else rank_of(pid), port) for address, port, pid in sockets]
        data_key = self.relay.key if self.relay else None
        for kind in self.kinds:
            wait = self.relay and kind in KEYED and not data_key
            control = [name for name, _, port in named if port == self.control and (kind, port) not in self.done]
            data = [f"{name}:{rank}" for name, rank, port in named if rank and (kind, port) not in self.done and not wait]
            for key, targets in ((self.key, control), (data_key or self.key, data)):
                if targets:
                    self.done |= {(kind, int(target.split(":")[1])) for target in targets}
                    self.attackers.append(attack(key, kind, [self.decoy] if self.decoy else targets, self.start))
        if data_key and not self.begun:
            self.begun = time.monotonic()
        elif data_key and time.monotonic() > self.begun + 0.5:
            self.relay.released.set()

    def end(self):
        finish(self.attackers)
        if self.relay:
            self.relay.close()
        return len({port for _, port in self.done} - {self.control})


def attacked(job, kinds, **how):
    """A job under attack from its first socket to its end: result, (seconds, processor seconds), peaks, number
    of data ports. The seconds in which the relay held the last rank back do not count."""
    attackers = Attack(job, kinds, **how)
    while job.is_running():
        attackers.watch()
        time.sleep(0.05)
    result, seconds = job.end()
    data_ports = attackers.end()
    held = attackers.relay.held if attackers.relay else 0
    return result, (seconds - held, job.cpu), job.peaks, data_ports


def expect_unharmed(job, kinds, expected, calm, **how):
    result, seconds, peaks, data_ports = attacked(job, kinds, **how)
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


def is_hung_up_on(stranger):
    """True if it gets the end of the connection, and nothing before. Waits for it: silence is no end."""
    return bool(select.select([stranger], [], [], 20)[0]) and answer_of(stranger) == b""


def large_frame_is_refused(control):
    """A frame that is too large costs the connection at once: before that of a silent stranger who came first,
    which is returned with the time of its start. Both at one look say only that this program had to wait."""
    for _ in range(3):
        start = time.monotonic()
        silent = connect("127.0.0.1", control)
        large = connect("127.0.0.1", control)
        large.sendall(frame(HELLO, size=16 << 20))
        ended = select.select([silent, large], [], [], 20)[0]
        assert ended and ended != [silent], "a large frame is not refused at once"
        assert is_hung_up_on(large), "a large frame gets an answer"
        if ended == [large]:
            return silent, start
        silent.close()
    raise AssertionError("a large frame is not refused before a silent stranger in 3 tries")


def direct_answers():
    """What single strangers get, in how many seconds."""
    with tempfile.TemporaryDirectory() as folder:  # the other ranks come when it is gone
        closed = pathlib.Path(folder) / "closed"
        closed.touch()
        job = Job(50, closed=closed)
        key, control, _ = job.targets()
        doctor_tells(job)
        silent, start = large_frame_is_refused(control)
        assert is_hung_up_on(silent), "a silent stranger gets an answer, or stays"
        silent.close()
        waited = time.monotonic() - start
        replay = connect("127.0.0.1", control)
        replay.sendall(hello(key, claim(), b"n" * 32))
        challenge = answer_of(replay)
        assert struct.unpack("<III", challenge[:12])[1] == CHALLENGE, "a true hello is not challenged"
        replay.sendall(frame(PROOF, mac(key, b"binade connects\n", claim(), b"n" * 32, b"o" * 32)))
        assert is_hung_up_on(replay), "a replayed proof is answered, or its connection stays"
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


def replays_at_data_ports(steps, expected):
    """With the key of the data ports, while ranks wait there: what was recorded opens no connection."""
    job = Job(steps, 0.2, through_relay=True)
    key, control, _ = job.targets()
    relay = Relay(key, control)
    assert relay.known.wait(30), "no roster"
    for rank in (0, RANKS - 2):  # the last one connects to these first
        for proof_of in (lambda challenge: bytes(32), lambda challenge: challenge[44:76]):
            who, nonce = claim(2, RANKS, RANKS - 1, rank), os.urandom(32)
            stranger = connect("127.0.0.1", relay.ports[rank], 5)
            stranger.sendall(hello(relay.key, who, nonce))
            challenge = answer_of(stranger)
            assert struct.unpack("<III", challenge[:12])[1] == CHALLENGE, f"rank {rank}: the key is not that of its port"
            stranger.sendall(frame(PROOF, proof_of(challenge)))
            assert answer_of(stranger) == b"", f"rank {rank}: a stranger is welcome"
            stranger.close()
    relay.released.set()
    result, _ = job.end()
    relay.close()
    assert result == expected, f"trained to {result}, expected {expected}"


# --- every attack, with times, and namespaces ---

def compare_times(make_job, start, decoy, calm, expected, repeats, **how):
    """Medians of interleaved runs: the attackers at the job, and the same attackers at another port."""
    for kind in KINDS:
        own, other, more = [], [], -MEMORY_KB
        for _ in range(repeats):
            seconds, grown = expect_unharmed(make_job(), [kind], expected, calm, start=start, **how)
            own.append(seconds)
            more = max(more, grown)
            sink = Sink(start, decoy)
            other.append(attacked(make_job(), [kind], start=start, decoy=decoy, **how)[1])
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


class MachinesJob(Job):
    """The same job on two machines, started by hand."""

    network = "10.77.0."

    def __init__(self, net, secret, steps, late=0.0):
        common = {"WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29511",
                  "BINADE_SECRET_FILE": secret}
        self.environment = {"BINADE_SECRET": pathlib.Path(secret).read_text(encoding="ascii"), "BINADE_PORT": "29511",
                            "JOB": "torchrun "}
        start = f"sleep $(awk \"BEGIN{{print {late} * $RANK}}\"); exec {PROGRAM} work {steps}"
        self.processes = [net.start(rank // 2, ["sh", "-c", start], RANK=str(rank), LOCAL_RANK=str(rank % 2), **common)
                          for rank in range(RANKS)]
        self.process = self.processes[0]
        self.watch_ranks()

    def ranks(self):
        return [process.pid for process in self.processes if environment_of(process.pid).get("RANK")]

    def secrets(self, _):
        return self.environment

    def sockets(self):
        pairs = [[p.pid for p in self.processes[i : i + 2]] for i in (0, 2)]
        return [found for pair in pairs for found in listening(pair)]

    def end(self):
        for process in self.processes[1:]:
            process.wait(300)
        return super().end()


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
    bare = net.start(0, [PROGRAM, "world"], RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE="2",
                     MASTER_ADDR="10.77.0.1", MASTER_PORT="29511")
    output = bare.communicate(timeout=20)[0]
    assert bare.returncode == 1 and "BINADE_SECRET_FILE" in output, output
    job = MachinesJob(net, path, steps)
    result, _ = job.end()
    assert result == expected, f"trained to {result}, expected {expected}"
    print("between machines, nothing listens elsewhere:")
    compare_times(lambda: MachinesJob(net, path, steps, 0.8), lambda command: net.start(2, command), "10.77.0.3:29600",
                  job.peaks, expected, 1)


def main():
    everything = len(sys.argv) > 3
    steps = 6000 if everything else 200  # long beside the start, where strangers are heard
    if not everything:
        faulthandler.dump_traceback_later(100, exit=True)  # says where, if it hangs
    job = Job(steps)
    expected, _ = job.end()
    calm = job.peaks
    refused_without_a_secret()
    direct_answers()
    if not everything:
        replays_at_data_ports(steps, expected)
        seconds, more = expect_unharmed(Job(steps, 0.2), ("flood", "large", "half_open"), expected, calm)
        print(f"unharmed: {seconds[0]:.2f} s, {more:+d} KiB")
        return
    replays_at_data_ports(steps, expected)
    with socket.create_server(("127.0.0.1", 0)) as free:
        decoy = f"127.0.0.1:{free.getsockname()[1]}"
    compare_times(lambda: Job(steps, 0.2, through_relay=True), start_here, decoy, calm, expected, REPEATS, relay=True)
    between_machines(steps, expected)


if __name__ == "__main__":
    if sys.argv[1] == "attack":
        Attacks(bytes.fromhex(sys.argv[2]), sys.argv[4:]).run(sys.argv[3])
    elif sys.argv[1] == "sink":
        serve_strangers(sys.argv[2], int(sys.argv[3]))
    else:
        PROGRAM, BINADE = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
        main()
