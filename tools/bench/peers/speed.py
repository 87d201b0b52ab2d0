"""Times and memory of the reference's crates and of Batten side by side; the part of agree.py behind --bench.

A round measures each case and lane with every program right after another, in turning order, in processes of their own. A
ratio is that of the medians of one round; its median and quartiles over rounds are shown. Of several builds of the crates
the one that is quickest for a case is compared with.
"""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

# Starts a program and tells its time and its largest resident memory. A small process of its own: a child's figure is never
# less than its parent's, here about 10 MB.
PROBE = """
import json, os, sys, time
start = time.perf_counter_ns()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(json.dumps({"wall_ns": time.perf_counter_ns() - start, "peak_rss_bytes": usage.ru_maxrss * 1024}))
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def build_name(driver):
    return "native" if "native" in driver.parts else "default"


def threads(options):
    return f"{options.threads} thread" + "s" * (options.threads > 1)


def crates(options, driver, work, run, case, lane):
    line = run(driver, options.model, "--batches", options.batches, "--case", case, "--lane", lane, "--threads",
               options.threads, "--bench", "--seconds", options.seconds)
    return {"program": f"kime {build_name(driver)}", **json.loads(line)}


def batten(options, work, run, case, lane, batch):
    found = json.loads(run(options.batten, "bench", options.bundle, "--lane", lane, "--threads", options.threads,
                           "--seconds", options.seconds, "--json", "--batch", batch))
    (row,) = found["batches"]
    return {"program": "batten", "target": found["target"], "case": case, "lane": lane, "threads": found["threads"],
            "tokens": row["tokens"], "seqs": row["seqs"], "runs": row["runs"], "p50_ns": row["p50_us"] * 1e3,
            "p99_ns": row["p99_us"] * 1e3, "memory": found["memory"]}


def once(options, work, case, lane, batch):
    """Whole processes that answer one batch: start to end, and their largest resident memory."""
    answer = work / "once.safetensors"
    commands = {f"kime {build_name(driver)}": [driver, options.model, "--batches", options.batches, "--case", case, "--lane",
                                               lane, "--threads", options.threads, "-o", answer] for driver in options.kime}
    commands["batten"] = [options.batten, "run", options.bundle, "--lane", lane, "--threads", options.threads, "--batch",
                          batch, "-o", answer]
    for program, command in commands.items():
        command = [str(Path(command[0]).resolve()), *map(str, command[1:])]
        done = subprocess.run([sys.executable, "-I", "-S", "-c", PROBE, *command], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"agree: error: {program}: {done.stderr.strip()}")
        yield {"program": program, "case": case, "lane": lane, "threads": options.threads, **json.loads(done.stdout)}


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:.3f}"


def megabytes(count):
    return f"{count / 1e6:.1f}"


def pick(rows, **wanted):
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def best_build(rows, case, lane):
    """The build of the crates with the least median of this case, by name."""
    builds = sorted({row["program"] for row in rows} - {"batten"})
    return min(builds, key=lambda name: statistics.median(r["p50_ns"] for r in pick(rows, program=name, case=case, lane=lane)))


def time_table(rows, keys):
    print("\n| lane | batch | tokens | seqs | crates' build | crates p50 ms | p99 | Batten p50 ms | p99 | crates / Batten | "
          "quartiles |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for case, lane in keys:
        build = best_build(rows, case, lane)
        theirs, ours = pick(rows, program=build, case=case, lane=lane), pick(rows, program="batten", case=case, lane=lane)
        ratios = [a["p50_ns"] / b["p50_ns"] for a, b in zip(theirs, ours)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        cells = [milliseconds(statistics.median(row[key] for row in side)) for side in (theirs, ours)
                 for key in ("p50_ns", "p99_ns")]
        print(f"| {lane} | {case} | {ours[0]['tokens']} | {ours[0]['seqs']} | {build.split()[1]} | {cells[0]} | {cells[1]} | "
              f"{cells[2]} | {cells[3]} | {middle:.2f} | {low:.2f} to {high:.2f} |")


def memory_table(rows, whole, keys):
    print("\n| lane | batch | crates: weights MB | plans | peak resident | Batten: weights mapped MB | own memory | "
          "peak resident | crates start to end ms | Batten |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for case, lane in keys:
        build = best_build(rows, case, lane)
        theirs, ours = (pick(rows, program=name, case=case, lane=lane)[0] for name in (build, "batten"))
        own = sum(ours["memory"][f"{what}_bytes"] for what in ("plan_tables", "arena", "batch_tables", "scratch"))
        (crate,), (bundle,) = (pick(whole, program=name, case=case, lane=lane) for name in (build, "batten"))
        print(f"| {lane} | {case} | {megabytes(theirs['weights_bytes'])} | {megabytes(theirs['plans_bytes'])} | "
              f"{megabytes(crate['peak_rss_bytes'])} | {megabytes(ours['memory']['weights_mapped_bytes'])} | {megabytes(own)} | "
              f"{megabytes(bundle['peak_rss_bytes'])} | {milliseconds(crate['wall_ns'])} | {milliseconds(bundle['wall_ns'])} |")


def cpu_name():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def measure(options, work, batches, run):
    """Measures every case and lane; prints the tables, and writes lines of JSON where asked to.

    batches: case -> path of its batch file, with {} for the lane. run: starts a program and gives its output.
    """
    keys = [(case, lane) for lane in options.lanes for case in batches]
    programs = [lambda case, lane, driver=driver: crates(options, driver, work, run, case, lane) for driver in options.kime]
    programs.append(lambda case, lane: batten(options, work, run, case, lane, str(batches[case]).format(lane)))
    rows = []
    for index in range(options.rounds):
        turn = index % len(programs)
        for case, lane in keys:
            rows += [{"round": index, **program(case, lane)} for program in programs[turn:] + programs[:turn]]
        print(f"agree: round {index + 1} of {options.rounds}", file=sys.stderr, flush=True)
    whole = [row for case, lane in keys for row in once(options, work, case, lane, str(batches[case]).format(lane))]
    target = pick(rows, program="batten")[0]["target"]
    print(f"{cpu_name()}, {os.cpu_count()} CPUs; {threads(options)}, {options.rounds} rounds, Batten's target {target}")
    time_table(rows, keys)
    memory_table(rows, whole, keys)
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows + whole))
