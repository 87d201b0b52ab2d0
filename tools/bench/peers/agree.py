#!/usr/bin/env python3
"""Runs the reference's crates and Batten on the same decision checkpoint and batches, and compares what they answer.

    agree.py MODEL_DIR --batches FILE --bundle BUNDLE               outputs agree, or exit 1
    agree.py MODEL_DIR --batches FILE --recorded kime|out           the crates against outputs that the file holds

x agrees with y where |x - y| <= 1e-5 |y| + 5e-6, the goldens' tolerance; y is the crates' value, or the recorded one.
BUNDLE is MODEL_DIR compiled, with buckets that hold the batches. Needs numpy and safetensors.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).parents[3]
DRIVERS = [Path(__file__).parent / "kime/target" / build / "batten-peer-kime" for build in ("release", "native/release")]
RELATIVE, ABSOLUTE = 1e-5, 5e-6
OUTPUTS = {"decide": ("logits", "act"), "embed": ("pooled",)}
INPUTS = {"decide": ("token_ids", "cu_seqlens", "markers", "cu_markers", "seq_types"), "embed": ("token_ids", "cu_seqlens")}


def build_name(driver):
    return "native" if "native" in driver.parts else "default"


def run(*command):
    """Runs a program; its standard output. Ends with the program's own last words where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"agree: error: {Path(command[0]).name} ended with status {done.returncode}: {words}")
    return done.stdout


class Difference:
    """What is known about one output over all cases."""

    def __init__(self):
        self.values = self.equal = 0
        self.largest, self.share, self.where = 0.0, 0.0, "-"
        self.failures = []

    def add(self, case, got, wanted):
        if got.shape != wanted.shape:
            self.failures.append(f"{case}: shape {list(got.shape)}, {list(wanted.shape)} wanted")
            return
        self.values += got.size
        self.equal += int((got.view(numpy.uint32) == wanted.view(numpy.uint32)).sum())
        if not got.size:
            return
        off = numpy.abs(got.astype(numpy.float64) - wanted)
        shares = numpy.nan_to_num(off / (RELATIVE * numpy.abs(wanted.astype(numpy.float64)) + ABSOLUTE), nan=numpy.inf)
        index = numpy.unravel_index(shares.argmax(), shares.shape)
        self.largest = max(self.largest, float(off.max()))
        if shares[index] > self.share:
            self.share, self.where = float(shares[index]), f"{case} {[int(i) for i in index]}"
        if shares[index] > 1:
            self.failures.append(f"{case}: {int((shares > 1).sum())} of {got.size} values; at {[int(i) for i in index]} "
                                 f"{got[index]:.8g}, {wanted[index]:.8g} wanted")


def report(title, differences):
    """Prints the differences; whether there was none too large."""
    print(f"\n{title}\n")
    print("| output | values | equal bits | largest difference | of what is allowed | where |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, d in differences.items():
        print(f"| {name} | {d.values} | {d.equal / max(d.values, 1):.1%} | {d.largest:.2e} | {d.share:.1%} | {d.where} |")
    for name, d in differences.items():
        for line in d.failures[:5]:
            print(f"agree: {name}: {line}", file=sys.stderr)
        if len(d.failures) > 5:
            print(f"agree: {name}: {len(d.failures)} batches differ in all", file=sys.stderr)
    return not any(d.failures for d in differences.values())


def compare(options, cases, answer):
    """Differences of answer(case) -> {output: array} from what each case wants."""
    differences = {name: Difference() for lane in options.lanes for name in OUTPUTS[lane]}
    for case, wanted in cases.items():
        got = answer(case)
        for name, difference in differences.items():
            for side, found in (("answered", got), ("wanted", wanted)):
                if name not in found:
                    sys.exit(f"agree: error: case {case}: no {name} is {side}, only {', '.join(found) or 'nothing'}")
            difference.add(case, got[name], wanted[name])
    return differences


def crates_outputs(options, driver, work):
    """{case: {output: array}} of the crates."""
    path = work / "kime.safetensors"
    lanes = [word for lane in options.lanes for word in ("--lane", lane)]
    run(driver, options.model, "--batches", options.batches, "-o", path, "--threads", options.threads, *lanes)
    return grouped(load_file(path))


def batten_outputs(options, work, case):
    answers = {}
    for lane in options.lanes:
        path = work / "out.safetensors"
        run(options.batten, "run", options.bundle, "--lane", lane, "--threads", options.threads, "--batch",
            batch_path(work, case, lane), "-o", path)
        answers.update(load_file(path))
    return answers


def grouped(tensors):
    """{case/what: array} -> {case: {what: array}}"""
    cases = {}
    for name, value in sorted(tensors.items()):
        case, what = name.split("/", 1)
        cases.setdefault(case, {})[what] = value
    return cases


def batch_path(work, case, lane):
    return work / f"{case}.{lane}.safetensors"


def write_batches(options, work):
    """One file for each case and lane, with what the lane reads. Returns the cases."""
    cases = grouped(load_file(options.batches))
    for case, tensors in cases.items():
        for lane in options.lanes:
            save_file({name: tensors[name] for name in INPUTS[lane]}, batch_path(work, case, lane))
    return cases


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL_DIR")
    parser.add_argument("--batches", type=Path, required=True, metavar="FILE")
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--recorded", metavar="WHO", help="compare the crates with the file's <case>/WHO/ tensors")
    parser.add_argument("--kime", type=Path, action="append", metavar="PROGRAM", help="the crates' driver, one or several builds")
    parser.add_argument("--batten", type=Path, default=ROOT / "build/release/bin/batten", metavar="PROGRAM")
    parser.add_argument("--lane", dest="lanes", action="append", choices=OUTPUTS, help="both otherwise")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.lanes = options.lanes or list(OUTPUTS)
    options.kime = options.kime or [path for path in DRIVERS if path.exists()]
    if not options.kime:
        sys.exit(f"agree: error: {DRIVERS[0]} is not there; {DRIVERS[0].parents[2] / 'build.sh'} builds it")
    if not options.bundle and not options.recorded:
        parser.error("--bundle is needed, or --recorded")
    return options


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        cases = write_batches(options, work)
        fine = True
        for driver in options.kime:
            answers = crates_outputs(options, driver, work)
            title = f"{len(cases)} batches, threads: {options.threads}, crates' {build_name(driver)} build"
            if options.recorded:
                start = f"{options.recorded}/"
                recorded = {case: {name[len(start):]: value for name, value in tensors.items() if name.startswith(start)}
                            for case, tensors in cases.items()}
                fine &= report(f"{title}: crates against recorded {options.recorded}",
                               compare(options, recorded, answers.__getitem__))
            if options.bundle:
                fine &= report(f"{title}: Batten against crates",
                               compare(options, answers, lambda case: batten_outputs(options, work, case)))
        print("\nall agree" if fine else "\nnot all agree")
        sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
