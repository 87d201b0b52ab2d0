#!/usr/bin/env python3
"""Batten beside installed peers: same checkpoints, token ids and threads, all in f32, in turn, in rounds.

    bench.py                                    everything, as Markdown; an hour or more
    bench.py --quick                            latency and ragged batches of MiniLM, three rounds
    bench.py --only latency/minilm/1 --json F   some figures (--list tells all); lines of JSON are added to F
    report.py F                                 the Markdown of lines, of one run or of several

A figure's name is FIGURE/MODEL/THREADS/CASE; --only takes the start of one, or a pattern with *. Every program runs in a
process of its own; before timing, what it answers is compared with Batten's. A peer that isn't installed or fails is left
out, and said. Run it with the Python that install.sh sets up.
"""
import argparse
import datetime
import fnmatch
import json
import subprocess
import sys
from pathlib import Path

import agree
import cases
import figures
import machine
import models
import paired
import processes
import programs
import report

class Bench:
    """Options, and what all records have in common."""

    def __init__(self, options):
        self.__dict__.update(vars(options))
        self.batten = self.build / "bin/batten"
        self.versions, self.notes, self.last = {}, {}, None
        self.work.mkdir(parents=True, exist_ok=True)
        commit = subprocess.run(["git", "-C", models.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        self.common = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                       "machine": machine.describe(), "commit": commit.stdout.strip(), "precision": "f32"}
        self.lines = []

    def say(self, words):
        print(f"bench: {words}", file=sys.stderr, flush=True)

    def progress(self, item, index):
        if (item, index) != self.last:
            self.last = item, index
            self.say(f"{item}: round {index + 1} of {self.rounds}")

    def emit(self, record):
        line = {**self.common, **record}
        if record["program"] in self.versions:
            line["version"] = self.versions[record["program"]]
        self.lines.append(line)
        if self.json:
            with self.json.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def records(self, item, sessions):
        """Measures a figure: a generator of records."""
        figure, model, threads, case = item.split("/")
        threads = int(threads)
        if figure in ("latency", "ragged64", "short64", "scaling"):
            return getattr(paired, figure)(sessions.get(model, threads), item, case)
        if figure == "decision":
            return paired.decision(self, item, case, threads)
        return {"peaks": lambda: figures.peaks(self, item, threads), "steps": lambda: figures.steps(self, item, model, threads, int(case)),
                "start": lambda: figures.start(self, item, model), "memory": lambda: figures.memory(self, item, model),
                "size": lambda: figures.size(self, item), "compile": lambda: figures.compile_time(self, item, model)}[figure]()

    def measure(self, items):
        """Measures the figures; the names of those that failed."""
        failed = []
        with Sessions(self) as sessions:
            for item in items:
                if not item.startswith(("latency", "ragged64", "short64", "scaling")):
                    sessions.close()  # nobody idles beside the other figures
                try:
                    for record in self.records(item, sessions):
                        self.emit({"program": "batten", **record})
                except processes.Failed as error:
                    self.say(f"{item}: {error}")
                    failed.append(item)
        return failed


class Sessions:
    """The one session that is open: processes on one model, with so many threads."""

    def __init__(self, bench):
        self.bench, self.key, self.session = bench, None, None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def get(self, model, threads):
        if self.key != (model, threads):
            self.close()
            self.session, self.key = paired.Session(self.bench, model, threads).__enter__(), (model, threads)
        return self.session

    def close(self):
        if self.session:
            self.session.__exit__()
        self.key = self.session = None


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="figures whose names start so; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of figures and end")
    parser.add_argument("--quick", action="store_true", help="three short rounds of MiniLM with one thread, unless told otherwise")
    parser.add_argument("--peers", default=",".join(programs.PEERS), metavar="A,B", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, help="default: 9")
    parser.add_argument("--seconds", type=float, help="of each slice, beside warming up (default: 0.15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add each measurement as a line of JSON")
    parser.add_argument("--build", type=Path, default=models.ROOT / "build/release", help="Batten's build folder")
    parser.add_argument("--work", type=Path, default=models.ROOT / "build/peers", help="where models in all formats are kept")
    parser.add_argument("--kime", type=Path, action="append", metavar="PROGRAM", help="the crates' driver, one or several builds")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 9)
    options.seconds = options.seconds or (0.05 if options.quick else 0.15)
    options.only = options.only or (["latency/minilm/1", "ragged64/minilm/1"] if options.quick else ["*"])
    options.peers = [name for name in options.peers.split(",") if name]
    unknown = sorted(set(options.peers) - set(programs.PEERS))
    if unknown:
        parser.error(f"--peers: {', '.join(unknown)} found, some of {', '.join(programs.PEERS)} wanted")
    options.kime = options.kime or [path for path in agree.DRIVERS if path.exists()]
    options.build, options.work = options.build.resolve(), options.work.resolve()
    options.items = [item for item in cases.figures() if any(fnmatch.fnmatch(item, f"{name}*") for name in options.only)]
    if not options.items:
        parser.error(f"--only: no figure's name starts with {' or '.join(options.only)}; --list tells all")
    return options


def main():
    options = parse()
    if options.list:
        print("\n".join(options.items))
        return
    bench = Bench(options)
    failed = bench.measure(options.items)
    print(report.markdown(bench.lines))
    if failed:
        sys.exit(f"bench: error: {len(failed)} figures could not be measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
