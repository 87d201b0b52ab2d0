#!/usr/bin/env python3
"""A process of one program: told what to do in lines of JSON on its standard input, it answers each with one.

    worker.py PROGRAM CHECKPOINT FOLDER --threads N

Started by processes.py. A process of its own keeps a program's threads, memory and environment from the others'.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

import processes


class Worker:
    """What can be asked for: each method but __init__, with its arguments by name; a dict is the answer."""

    def __init__(self, options):
        import models
        import programs

        self.options, self.jobs, self.last = options, {}, {}
        self.program = programs.load(options.program)
        self.checkpoint = models.Checkpoint(options.checkpoint)

    def make_engine(self):
        self.engine = self.program.Engine(self.checkpoint, self.options.folder, self.options.threads)

    def prepare(self):
        self.options.folder.mkdir(parents=True, exist_ok=True)
        self.program.prepare(self.checkpoint, self.options.folder)
        return {}

    def load(self):
        self.make_engine()
        return {"title": self.program.TITLE, "versions": self.program.versions(self.options.folder),
                "notes": {name: str(value) for name, value in self.engine.notes.items()}}

    def first(self, group):
        """Nanoseconds from here, all modules imported and nothing opened, to the answer of a group."""
        start = time.perf_counter_ns()
        self.make_engine()
        self.engine.bind(group, False)()
        return {"ns": time.perf_counter_ns() - start}

    def job(self, name, groups, fixed):
        self.jobs[name] = groups, [self.engine.bind(group, fixed) for group in groups]
        return {}

    def job_file(self, name, path, lane, outputs):
        """A job of one batch out of a file, which Batten alone takes."""
        self.jobs[name] = None, [self.engine.bind_file(path, lane, outputs)]
        return {}

    def answer(self, name, path):
        """Runs a job once and writes what it gives."""
        import numpy

        groups, runs = self.jobs[name]
        numpy.save(path, numpy.concatenate([self.engine.rows(group, run()) for group, run in zip(groups, runs)]))
        return {}

    def run(self, name, seconds):
        """Nanoseconds of each run of a job, all its groups, for some time; at least one run.

        It warms up for a fifth of the time before, at least one run, but not for a job that takes longer than a second: it
        is its own warm-up.
        """
        runs, times = self.jobs[name][1], []

        def once():
            start = time.perf_counter_ns()
            for run in runs:
                run()
            return time.perf_counter_ns() - start

        begin, warm = time.perf_counter_ns(), self.last.get(name, 0) > 1e9
        while not warm:
            once()
            warm = time.perf_counter_ns() - begin > seconds * 2e8
        begin = time.perf_counter_ns()
        while not times or time.perf_counter_ns() - begin < seconds * 1e9:
            times.append(once())
        self.last[name] = times[-1]
        return {"ns": times}

    def libraries(self):
        """Bytes of the program's own shared libraries that this process has mapped; those for other devices are left out."""
        paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
        own = [Path(path) for path in paths if any(f"/{name}/" in path for name in self.program.LIBRARIES)]
        sizes = {path.name: path.stat().st_size for path in own if not any(word in path.name for word in ("cuda", "nvrtc"))}
        return {"bytes": sum(sizes.values()), "files": sizes}

    def nothing(self):
        """Only what being asked makes: imported modules."""
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    os.sched_setaffinity(0, processes.cpus(options.threads))  # before a library counts CPUs
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    worker = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or Worker(options)
            reply = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # the other side says it
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


main()
