"""Figures of Batten and its peers that are not times of runs side by side: peaks, steps, start, memory, size, compile.

Each is a generator of records, dicts. Programs take turns here too, where a figure is a time.
"""
import json
import subprocess
import tempfile
from pathlib import Path

import numpy
from safetensors.numpy import save_file

import cases
import processes
import setups

# The compile figure's: twenty, from one short text to many.
BUCKETS = [(tokens, max(tokens // 4, 8)) for tokens in (32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 288, 320, 384, 512,
                                                        768, 1024, 1536, 2048, 4096)]
FIRST = cases.sequences([16], seed=16)


def batten_bench(options, setup, *extra):
    return json.loads(processes.run(options.batten, "bench", setup.bundle, "--json", *extra))


def peaks(options, item, threads):
    """This machine's peaks, as `batten bench` measures them; the best of some rounds is what it can do."""
    setup = setups.Setup(options, "minilm")
    setup.prepare("batten")
    for index in range(options.rounds):
        options.progress(item, index)
        found = batten_bench(options, setup, "--tokens", 8, "--seconds", 0.01, "--threads", threads)
        yield {"figure": "peaks", "threads": threads, "round": index, **found["peaks"]}


def steps(options, item, model, threads, tokens):
    """Time and FLOP of Batten's linear and attention steps, with the peak measured right before."""
    setup = setups.Setup(options, model)
    setup.prepare("batten")
    for index in range(options.rounds):
        options.progress(item, index)
        found = batten_bench(options, setup, "--tokens", tokens, "--steps", "--seconds", options.seconds, "--threads", threads)
        (batch,) = found["batches"]
        record = {"figure": "steps", "model": model, "threads": threads, "case": tokens, "round": index, "target": found["target"],
                  **found["peaks"], "outside_us": batch["outside_steps_us"], "whole_us": batch["profiled_mean_us"]}
        for kind in ("linear", "attention"):
            own = [step for step in batch["steps"] if step["kernel"].startswith(kind)]
            record[kind] = {"us": sum(step["us"] for step in own), "flop": sum(step["flop"] for step in own)}
        yield record


def write_first(path):
    """The batch of 16 tokens that a process starts for."""
    save_file({"token_ids": numpy.array(FIRST[0], numpy.int32), "cu_seqlens": numpy.array([0, 16], numpy.int32)}, path)


def installed(options, setup):
    """Peers that can be measured; says which can't."""
    for program in options.peers:
        try:
            setup.prepare(program)
            yield program
        except processes.Failed as error:
            options.say(f"{error}; it is left out")


def start(options, item, model):
    """Batten's whole process, from its start to its end after one answer; a peer from its imports' end to its first answer."""
    setup = setups.Setup(options, model)
    setup.prepare("batten")
    peers = list(installed(options, setup))
    with tempfile.TemporaryDirectory() as work:
        batch = Path(work) / "batch.safetensors"
        write_first(batch)
        command = [options.batten, "run", setup.bundle, "--threads", 1, "--batch", batch, "-o", f"{work}/out.safetensors"]
        for index in range(-1, options.rounds):  # the first, not counted, brings files into the page cache
            found = [("batten", processes.whole(*command))]
            for program in peers:
                with setup.worker(program, 1) as worker:
                    worker.ask("nothing")
                    found.append((program, worker.ask("first", group=FIRST)))
            options.progress(item, index)
            for program, record in found if index >= 0 else []:
                yield {"figure": "start", "model": model, "threads": 1, "program": program, "round": index, **record}


def peer_memory(setup, program, count):
    """What sessions and first answers add to processes with their imports; of each process."""
    workers = [setup.worker(program, 1) for _ in range(count)]
    try:
        for worker in workers:
            worker.ask("nothing")
        before = [processes.memory(worker.pid) for worker in workers]
        for worker in workers:
            worker.ask("first", group=FIRST)
        after = [processes.memory(worker.pid) for worker in workers]
    finally:
        for worker in workers:
            worker.__exit__()
    return [{name: found[name] - had[name] for name in found} for had, found in zip(before, after)]


def batten_memory(options, setup, count):
    """Whole processes of `batten run --jsonl` that have answered one line and wait for the next."""
    command = [options.batten, "run", setup.bundle, "--threads", "1", "--jsonl"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        for process in started:
            process.stdin.write(json.dumps({"ids": FIRST[0]}) + "\n")
            process.stdin.flush()
        for process in started:
            if not process.stdout.readline():
                raise processes.Failed("batten run --jsonl gave no answer")
        return [processes.memory(process.pid) for process in started]
    finally:
        for process in started:
            process.communicate()


def memory(options, item, model):
    """Resident memory of one and of eight processes, each after an answer of 16 tokens."""
    setup = setups.Setup(options, model)
    setup.prepare("batten")
    held = json.loads(processes.run(options.batten, "inspect", setup.bundle, "--memory", "--json"))
    for program in ["batten", *installed(options, setup)]:
        options.progress(item, 0)
        for count in (1, 8):
            found = batten_memory(options, setup, count) if program == "batten" else peer_memory(setup, program, count)
            extra = {"held": held} if program == "batten" else {}
            yield {"figure": "memory", "model": model, "threads": 1, "program": program, "processes": count, "each": found, **extra}


def size(options, item):
    """Bytes of the runtime: Batten's as a stripped shared library, a peer's own libraries that a process maps."""
    setup = setups.Setup(options, "minilm")
    setup.prepare("batten")
    with tempfile.TemporaryDirectory() as work:
        stripped = Path(work) / "libbatten.so"
        processes.run("strip", "-o", stripped, setup.folder("batten") / "libbatten.so")
        yield {"figure": "size", "program": "batten", "bytes": stripped.stat().st_size}
    for program in installed(options, setup):
        options.progress(item, 0)
        with setup.worker(program, 1) as worker:
            worker.ask("first", group=FIRST)
            yield {"figure": "size", "program": program, **worker.ask("libraries")}


def compile_time(options, item, model):
    """Time and largest memory of `batten compile` with twenty buckets and all targets."""
    setup = setups.Setup(options, model)
    setup.prepare("batten")
    with tempfile.TemporaryDirectory() as work:
        table, bundle = Path(work) / "buckets", Path(work) / "out.batten"
        table.write_text("".join(f"text {tokens} {seqs} 0\n" for tokens, seqs in BUCKETS))
        for index in range(min(options.rounds, 3)):
            options.progress(item, index)
            found = processes.whole(options.batten.parent / "batten-compile", "compile", setup.directory, "-o", bundle, "--buckets", table)
            packs = sum(path.stat().st_size for path in bundle.glob("packs/*"))
            yield {"figure": "compile", "model": model, "round": index, "buckets": len(BUCKETS), "pack_bytes": packs, **found}
