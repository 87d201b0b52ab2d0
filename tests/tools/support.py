#!/usr/bin/env python3
"""What the command line tests share: running programs, safetensors files, the bundles. Standard library only.

Run as a program it compiles the bundles that the tests use into BATTEN_TEST_WORK.
"""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests/data/goldens"
BIN = Path(os.environ.get("BATTEN_BIN", ROOT / "build/release/bin"))
COMPILER = Path(os.environ.get("BATTEN_COMPILER") or BIN / "batten-compile")
WORK = Path(os.environ.get("BATTEN_TEST_WORK", ROOT / "build/release/tests/tools/work"))
BATTEN = BIN / "batten"
SENTENCE = WORK / "sentence.batten"  # lanes embed (embedding) and encode (hidden)
# Made without the compiler: targets base and twin; lanes decide (gathered, decision, embedding; reads markers and sequence
# types) and encode. The other three differ from it in one place each, see tests/runtime/WriteBundles.cpp.
DECISION, CHANGED, PARTED, RENAMED = (WORK / f"{name}.batten" for name in ["decision", "changed", "parted", "renamed"])
SENTENCE_MODEL = GOLDENS / "sentence-mean-normalize"


def run(*command, stdin="", **options):
    """Runs a command line; returns the completed process with text of stdout and stderr."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([str(word) for word in command], input=stdin, text=True, timeout=120, **options)


def batten(*arguments, **options):
    return run(BATTEN, *arguments, **options)


def compiler(*arguments, **options):
    """batten-compile under the name that batten gives it."""
    return run("batten", *arguments, executable=str(COMPILER), **options)


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, values), of rank 1."""
    header, data = {}, b""
    for name, (dtype, values) in tensors.items():
        block = struct.pack(f"<{len(values)}{ {'I32': 'i', 'I64': 'q', 'F32': 'f'}[dtype] }", *values)
        header[name] = {"dtype": dtype, "shape": [len(values)], "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """name -> (shape, flat list of values)"""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        letter = {"I32": "i", "F32": "f"}[entry["dtype"]]
        tensors[name] = (entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}{letter}", data[begin:end])))
    return tensors


def read_metadata(path):
    """The facts of a safetensors file, and the names of its tensors in their order."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return header.pop("__metadata__", {}), sorted(header, key=lambda name: header[name]["data_offsets"])


def golden_case(model, case):
    """(inputs for write_safetensors, outputs as read_safetensors gives them) of a golden's case."""
    inputs, outputs = {}, {}
    for name, (shape, values) in read_safetensors(model / "cases.safetensors").items():
        if name.startswith(f"{case}/out/"):
            outputs[name.removeprefix(f"{case}/out/")] = (shape, values)
        elif name.startswith(f"{case}/"):
            inputs[name.removeprefix(f"{case}/")] = ("I32", values)
    return inputs, outputs


def as_lines(inputs):
    """A batch as lines of JSON."""
    ids, cuts = inputs["token_ids"][1], inputs["cu_seqlens"][1]
    types, markers, marks, kinds = (inputs.get(name, (None, None))[1] for name in ["token_types", "markers", "cu_markers", "seq_types"])
    lines = []
    for index, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        sequence = {"ids": ids[begin:end]}
        if types:
            sequence["types"] = types[begin:end]
        if markers:
            sequence["markers"] = markers[marks[index]:marks[index + 1]]
        if kinds:
            sequence["type"] = kinds[index]
        lines.append(json.dumps(sequence))
    return "".join(line + "\n" for line in lines)


class Case(unittest.TestCase):
    """A test with a folder of its own and checks of the documented behaviour."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="batten-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def assertOk(self, result):
        self.assertEqual(0, result.returncode, result.stderr)
        return result

    def assertRefused(self, result, *words, status=1, stdout=""):
        """Ends with the status; the last line of stderr is the error and holds the words; nothing else was answered."""
        self.assertEqual(status, result.returncode, result.stderr)
        if stdout is not None:
            self.assertEqual(stdout, result.stdout)
        last = result.stderr.splitlines()[-1] if result.stderr else ""
        self.assertTrue(last.startswith("batten: error: "), result.stderr)
        self.assertFalse(last.endswith("."), last)
        for word in words:
            self.assertIn(str(word), last)

    def batch(self, case="ragged", model=SENTENCE_MODEL):
        """Writes a golden's case as a batch file; returns (path, inputs, outputs)."""
        inputs, outputs = golden_case(model, case)
        path = self.folder / f"{case}.safetensors"
        write_safetensors(path, inputs)
        return path, inputs, outputs

    def assertClose(self, wanted, found, name=""):
        """Shapes are equal, and values within the goldens' tolerance."""
        self.assertEqual(wanted[0], found[0], name)
        bound = 1e-5 * max([1.0] + [abs(value) for value in wanted[1]])
        difference = max([abs(a - b) for a, b in zip(wanted[1], found[1])], default=0)
        self.assertLessEqual(difference, bound, name)


def compile_bundles():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for result in [compiler("compile", SENTENCE_MODEL, "-o", SENTENCE, "--quiet"), run(BIN / "write_test_bundles", WORK)]:
        if result.returncode != 0:
            raise SystemExit(result.stderr)


if __name__ == "__main__":
    compile_bundles()
