"""The programs that are measured, one file each.

A file has TITLE, `versions(folder)`, `prepare(checkpoint, folder)`, which
makes the program's own format ahead of time, and `Engine(checkpoint, folder, threads)`, whose making is what the start of a
process waits for. `Engine.bind(group, fixed)` takes sequences of token ids and gives a function of no arguments that runs them
once, in one call; `fixed` tells that a server would meet this shape again and again, so that a program may prepare for it.
`Engine.rows(group, value)` makes of that function's value the [sequences, hidden] embeddings or [tokens, hidden] rows.
`Engine.notes` is what the program says about itself, `LIBRARIES` the packages that its shared libraries lie in.
"""
import importlib

NAMES = ("batten", "onnxruntime", "openvino", "ctranslate2", "torch")
PEERS = NAMES[1:]


def load(name):
    return importlib.import_module(f"programs.{name}")
