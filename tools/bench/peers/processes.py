"""Processes that are measured: worker processes, asked and watched while they should be idle, and whole runs of a program."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
# Set on some machines for older libraries' sake; they slow a program, or change how its threads wait.
UNSET = ("OMP_WAIT_POLICY", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

# Starts a program and tells its time and its largest resident memory. A small process of its own: a child's figure is never
# less than its parent's, here about 10 MB.
PROBE = """
import json, os, sys, time
start = time.perf_counter_ns()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(json.dumps({"ns": time.perf_counter_ns() - start, "peak_rss_bytes": usage.ru_maxrss * 1024}), file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


class Failed(Exception):
    """A program that could not be run; its message is for people."""


def environment(extra=()):
    return {**{name: value for name, value in os.environ.items() if name not in UNSET}, **dict(extra)}


def run(*command):
    """Runs a program; its standard output."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment())
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"{Path(str(command[0])).name} ended with status {done.returncode}: {words}")
    return done.stdout


def whole(*command):
    """Runs a program from start to end: its nanoseconds and its largest resident memory."""
    command = [sys.executable, "-I", "-S", "-c", PROBE, *map(str, command)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment())
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode:
        raise Failed(f"{Path(command[5]).name} failed: {done.stderr.strip()}")
    return json.loads(last)


def cpus(threads):
    """The CPUs that a program with so many threads runs on: the last ones allowed."""
    return sorted(os.sched_getaffinity(0))[-threads:]


def memory(pid):
    """Resident bytes of a process: its own, written or not, those shared with others, its share of all."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size = line.split(":")
        found[name] = int(size.split()[0]) * 1024
    return {"dirty_bytes": found["Private_Dirty"], "clean_bytes": found["Private_Clean"],
            "shared_bytes": found["Shared_Clean"] + found["Shared_Dirty"], "pss_bytes": found["Pss"]}


class WorkerProcess:
    """worker.py with one program. `ask` raises Failed where the program does."""

    def __init__(self, program, checkpoint, folder, threads, extra=()):
        self.program = program
        command = [sys.executable, HERE / "worker.py", program, checkpoint, folder, "--threads", threads]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment(extra))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def ask(self, do, **arguments):
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"{self.program}: its process ended with status {self.process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(f"{self.program}: {reply['error']}")
        return reply

    def cpu_ns(self):
        """CPU time of all its threads so far."""
        return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{self.pid}/task").glob("*/schedstat"))

def settle(workers):
    """Waits until no thread of the workers spins any more, a second at most."""
    for _ in range(100):
        before = sum(worker.cpu_ns() for worker in workers)
        time.sleep(0.01)
        if sum(worker.cpu_ns() for worker in workers) - before < 500_000:
            return
