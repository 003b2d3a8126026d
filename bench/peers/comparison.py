"""Times the rows of the comparison: a slice of Binade, then one of every form of every PyTorch, in turn."""
import sys

import processes
import rows
import slices
import strongest


def skipped(form, words):
    """True if a part of the form's name begins with one of the words."""
    return any(part.startswith(word) for part in form.split("+") for word in words)


class Comparison:
    """The processes for one number of threads: Binade's and those of each PyTorch."""

    def __init__(self, flags, threads):
        self.flags, self.threads = flags, threads
        self.states = [state for state in strongest.STATES if state not in flags.skip]
        self.binade = processes.binade(flags.program)
        self.peers = [strongest.Peer(python, threads, "compile" not in flags.skip) for python in flags.python]
        self.machine = slices.Machine([self.binade.pid] + [worker.pid for worker in self.torch_processes()])

    def torch_processes(self):
        return [worker for peer in self.peers for worker in peer.processes]

    def has_ended(self):
        """True if a process has ended by itself, so that nothing more can be measured."""
        return any(worker.process.poll() is not None for worker in [self.binade, *self.torch_processes()])

    def close(self):
        self.binade.close()
        for peer in self.peers:
            peer.close()

    def slice(self, contest, name, worker, form):
        answer, share = slices.take(
            self.machine, lambda: worker.ask("slice", form, self.flags.seconds), self.flags.accept_load)
        spent = answer["cpu" if self.flags.cpu_time else "wall"]
        contest.add(name, 1e3 * spent / answer["units"], share)
        return answer

    def rows(self, name):
        """Returns one row for each PyTorch."""
        work = rows.spec(name)
        self.binade.ask("prepare", work, "eager", self.threads)
        for worker in self.torch_processes():
            worker.ask("clear")
        contestants = [self.prepared(peer, work) for peer in self.peers]
        contest, allocations = slices.Contest(), 0
        for _ in range(self.flags.rounds):
            allocations = self.slice(contest, "binade", self.binade, "eager")["allocations"]
            for peer, forms in zip(self.peers, contestants):
                for state in self.states:
                    for entry in contest.remaining([entry for entry in forms if entry[1] == state]):
                        self.slice(contest, entry, peer.workers[state], entry[2])
        ours_peak = None if self.flags.no_memory else self.peak(processes.binade(self.flags.program), work, "eager")
        for peer, forms in zip(self.peers, contestants):
            yield {"work": name, "threads": self.threads, "peer": peer.name, "remark": peer.remark,
                   **self.figures(contest, forms), **self.memory(peer, work, contest.best(forms), ours_peak),
                   "others_share": max(contest.shares), "accepted_load": self.flags.accept_load,
                   "clock": "cpu" if self.flags.cpu_time else "wall",
                   "rounds": self.flags.rounds, "allocations_in_last_slice": allocations}

    def figures(self, contest, forms):
        """The best form as installed, if measured, and the best of all forms."""
        ours = contest.median("binade")
        installed = [entry for entry in forms if entry[1] == "installed"]
        found = {"binade_ms": ours, "installed_form": None, "installed_ms": None, "installed_ratio": None}
        if installed:
            best = contest.best(installed)
            theirs = contest.median(best)
            found.update(installed_form=best[2], installed_ms=theirs, installed_ratio=theirs / ours)
        best = contest.best(forms)
        theirs = contest.median(best)
        return {**found, "form": best[2], "state": best[1], "peer_ms": theirs, "ratio": theirs / ours,
                "forms_ms": {f"{state} {form}": contest.median((peer, state, form)) for peer, state, form in forms}}

    def prepared(self, peer, work):
        """(peer, state, form) for what this PyTorch can do. Where the states coincide, a form runs once."""
        done, failures = [], []
        for state in self.states:
            worker = peer.workers[state]
            for form in worker.ask("forms", work, state)["forms"]:
                twice = any(peer.workers[other] is worker and same == form for _, other, same in done)
                if twice or skipped(form, self.flags.skip):
                    continue
                try:
                    worker.ask("prepare", work, form, self.threads)
                    done.append((peer.name, state, form))
                except processes.WorkerError as error:
                    failures.append(str(error))
        if not done:
            raise processes.WorkerError("; ".join(failures) or f"{work}: --skip leaves no form of {peer.name}")
        for failure in failures:
            print(f"run: left out: {failure.splitlines()[0]}", file=sys.stderr)
        return done

    def memory(self, peer, work, best, ours):
        """Peak memory of Binade and of the best form, each in a process that does this work only."""
        theirs = None if self.flags.no_memory else self.peak(peer.start(best[1]), work, best[2])
        return {"binade_peak_mb": ours, "peer_peak_mb": theirs}

    def peak(self, worker, work, form):
        with worker:
            worker.ask("prepare", work, form, self.threads)
            worker.ask("slice", form, 0)
            return worker.ask("peak")["peak_mb"]
