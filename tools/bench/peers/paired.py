"""Figures measured in pairs: latency, ragged and short batches, two threads over one, and the decision model.

Each is a generator of records, a dict a pair; times in microseconds, whole ones.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy

import agree
import cases
import processes
import rounds
import setups

ALLOWED = 1e-3  # difference between two programs' rows: far above what f32 explains, far below other work


def micro(nanoseconds):
    return [round(value / 1e3) for value in nanoseconds]


class Session:
    """The processes of all programs on one model with so many threads; jobs are given to them, and checked, once."""

    def __init__(self, options, model, threads):
        self.options, self.model, self.threads = options, model, threads
        self.setup = setups.Setup(options, model)
        self.workers, self.jobs = {}, set()

    def __enter__(self):
        for program in ["batten", *self.options.peers]:
            try:
                self.start(program, program, self.threads)
            except processes.Failed as error:
                if program == "batten":
                    raise
                self.options.say(f"{error}; it is left out")
        return self

    def __exit__(self, *unused):
        for worker in self.workers.values():
            worker.__exit__()

    def start(self, name, program, threads):
        self.setup.prepare(program)
        worker = self.setup.worker(program, threads)
        try:
            found = worker.ask("load")
        except processes.Failed:
            worker.__exit__()
            raise
        self.workers[name] = worker
        self.options.versions[program] = found["versions"][program]
        self.options.notes.setdefault(program, found["notes"])

    def drop(self, name, error):
        self.options.say(f"{error}; it is left out")
        self.workers.pop(name).__exit__()

    def give(self, name, job, groups, fixed=False):
        """Gives a program a job, unless it has it."""
        if (name, job) not in self.jobs:
            self.workers[name].ask("job", name=job, groups=groups, fixed=fixed)
            self.jobs.add((name, job))

    def answer(self, name, job):
        with tempfile.TemporaryDirectory() as work:
            path = f"{work}/answer.npy"
            self.workers[name].ask("answer", name=job, path=path)
            return numpy.load(path)

    def take(self, name, job):
        """A slice of a program, the others idle: its times, and the CPU time that the others used meanwhile."""
        processes.settle(self.workers.values())
        others = [worker for worker in self.workers.values() if worker is not self.workers[name]]
        before = [worker.cpu_ns() for worker in others]
        times = self.workers[name].ask("run", name=job, seconds=self.options.seconds)["ns"]
        busy = sum(worker.cpu_ns() - start for worker, start in zip(others, before))
        if busy > 0.02 * sum(times):
            self.options.say(f"warning: idle programs used {busy / 1e6:.1f} ms while {name} ran for {sum(times) / 1e6:.1f} ms")
        return times, busy

    def pairs(self, item, jobs, common):
        """Records of pairs of "batten" and each other name of jobs: name -> job."""
        peers = [name for name in jobs if name != "batten"]
        busy = {}

        def take(name):
            times, busy[name] = self.take(name, jobs[name])
            return times

        for index, peer, found in rounds.measure(self.options.rounds, peers, take):
            self.options.progress(item, index)
            yield {**common, "model": self.model, "threads": self.threads, "program": peer, "round": index,
                   "batten_us": micro(found["batten"]), "us": micro(found[peer]),
                   "idle_us": round(max(busy["batten"], busy[peer]) / 1e3)}

    def checked(self, job, made, groups_of, fixed):
        """Gives every program its groups, checks what it answers against Batten; the largest difference by name.

        groups_of(name): the groups of that program.
        """
        wanted, found = None, {}
        for name in [name for name in ("batten", *self.options.peers) if name in self.workers]:
            groups = groups_of(name)
            try:
                self.give(name, job, groups, fixed)
                rows = self.answer(name, job)
            except processes.Failed as error:
                if name == "batten":
                    raise
                self.drop(name, error)
                continue
            if self.setup.checkpoint.pooled:
                places = cases.order(made, groups)
            else:
                starts = numpy.cumsum([0, *map(len, made)])
                places = [row for place in cases.order(made, groups) for row in range(starts[place], starts[place + 1])]
            arranged = numpy.empty_like(rows)
            arranged[places] = rows
            if name == "batten":
                wanted = arranged
                continue
            found[name] = float(numpy.abs(arranged - wanted).max()) if arranged.shape == wanted.shape else numpy.inf
            if not found[name] <= ALLOWED:
                self.drop(name, f"{name}: its answer differs by {found.pop(name):.3g} from Batten's, at most {ALLOWED:g} wanted")
        return found


def all_programs(session, item, figure, case, made, strategy=None, fixed=False):
    """Pairs of all peers with Batten on these sequences; Batten packs them, peers group them by the strategy."""
    job = f"{figure}-{case}"
    groups_of = {True: [made], False: cases.STRATEGIES[strategy or "batch"](made)}
    found = session.checked(job, made, lambda name: groups_of[name == "batten"], fixed)
    common = {"figure": figure, "case": case, "tokens": cases.tokens([made])}
    for record in session.pairs(item, {name: job for name in ("batten", *found)}, common):
        yield {**record, "difference": found[record["program"]], "padded_tokens": cases.padded_tokens(groups_of[False])}


def latency(session, item, case):
    return all_programs(session, item, "latency", case, cases.sequences([int(case)], seed=int(case)), fixed=True)


def ragged64(session, item, case):
    return all_programs(session, item, "ragged64", case, cases.sequences(cases.ragged_lengths(), seed=64), strategy=case)


def short64(session, item, case):
    """64 short sequences in one call of ours, against a loop of our own."""
    made = cases.sequences(cases.short_lengths(), seed=5)
    session.give("batten", "short64", [made])
    session.give("batten", "short64-loop", cases.loop(made))
    session.workers["batten-loop"] = session.workers["batten"]
    try:
        yield from session.pairs(item, {"batten": "short64", "batten-loop": "short64-loop"},
                                 {"figure": "short64", "case": case, "tokens": cases.tokens([made])})
    finally:
        session.workers.pop("batten-loop")


def scaling(session, item, case):
    """Batten with as many threads as the session has, against Batten with one."""
    made = [cases.sequences([int(case)], seed=int(case))]
    if "batten-1" not in session.workers:
        session.start("batten-1", "batten", 1)
    for name in ("batten", "batten-1"):
        session.give(name, f"scaling-{case}", made)
    yield from session.pairs(item, {name: f"scaling-{case}" for name in ("batten", "batten-1")},
                             {"figure": "scaling", "case": case, "tokens": int(case)})


def decision_files(options, setup):
    """The decision model's bundle and batches, made and checked against the crates where they aren't there."""
    setup.prepare("batten")
    batches = setup.folder("batten") / "bench.safetensors"
    if not batches.exists():
        processes.run(sys.executable, processes.HERE / "make_batches.py", setup.directory, "-o", batches, "--bench")
    agreed = setup.folder("batten") / "agreed"
    if not agreed.exists() or agreed.stat().st_mtime < setup.stamp("batten").stat().st_mtime:
        options.say("decision: comparing outputs with the crates'")
        drivers = [word for driver in options.kime for word in ("--kime", driver)]
        processes.run(sys.executable, agree.__file__, setup.directory, "--batches", batches, "--bundle", setup.bundle,
                      "--batten", options.batten, *drivers)
        agreed.touch()
    return batches


def decision(options, item, case, threads):
    """Batten beside each build of the reference's crates, whose slice is a process, which tells its median."""
    if not options.kime:
        raise processes.Failed("the crates' driver is not built (kime/build.sh)")
    setup = setups.Setup(options, "decision-base")
    batches = decision_files(options, setup)
    drivers = {f"kime-{agree.build_name(driver)}": driver for driver in options.kime}
    with tempfile.TemporaryDirectory() as work, setup.worker("batten", threads) as batten:
        tensors = agree.grouped(agree.load_file(batches))[case]
        path = Path(work) / "batch.safetensors"
        agree.save_file({name: tensors[name] for name in agree.INPUTS["decide"]}, path)
        batten.ask("load")
        batten.ask("job_file", name=case, path=str(path), lane="decide", outputs=len(agree.OUTPUTS["decide"]))

        def take(name):
            if name == "batten":
                return batten.ask("run", name=case, seconds=options.seconds)["ns"]
            found = processes.run("taskset", "-c", ",".join(map(str, processes.cpus(threads))), drivers[name], setup.directory,
                                  "--batches", batches, "--case", case, "--bench", "--lane", "decide", "--threads", threads,
                                  "--seconds", options.seconds)
            return [json.loads(found)["p50_ns"]]

        for index, peer, found in rounds.measure(options.rounds, list(drivers), take):
            options.progress(item, index)
            yield {"figure": "decision", "model": "decision-base", "case": case, "threads": threads, "program": peer, "round": index,
                   "tokens": len(tensors["token_ids"]), "batten_us": micro(found["batten"]), "us": micro(found[peer])}
