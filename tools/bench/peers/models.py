"""The checkpoints that are measured, and where each program's own format of them lies.

MiniLM is the real all-MiniLM-L6-v2; bert-base has BERT-base's geometry and random weights, so that its outputs mean
nothing, and its work is the real one's.
"""
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).parents[3]
BERT_BASE = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12,
             "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
             "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "pad_token_id": 0,
             "position_embedding_type": "absolute"}


class Checkpoint:
    """A checkpoint's numbers and, on demand, tensors."""

    def __init__(self, directory):
        self.directory = Path(directory)
        config = json.loads((self.directory / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.hidden, self.inner = config["hidden_size"], config["intermediate_size"]
        self.vocab, self.eps, self.family = config["vocab_size"], config.get("layer_norm_eps"), config["model_type"]
        self.head = self.hidden // self.heads
        self.pooled = (self.directory / "modules.json").exists()
        self._tensors = None

    @property
    def tensors(self):
        if self._tensors is None:
            self._tensors = load_file(self.directory / "model.safetensors")
        return self._tensors


def bert_tensors(config):
    """Name and shape of every tensor of a BertModel without its pooler."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]

    def linear(name, rows, columns):
        return [(f"{name}.weight", (rows, columns)), (f"{name}.bias", (rows,))]

    def norm(name):
        return [(f"{name}.weight", (hidden,)), (f"{name}.bias", (hidden,))]

    for what, rows in (("word", "vocab_size"), ("position", "max_position_embeddings"), ("token_type", "type_vocab_size")):
        yield f"embeddings.{what}_embeddings.weight", (config[rows], hidden)
    yield from norm("embeddings.LayerNorm")
    for n in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{n}"
        for what in ("query", "key", "value"):
            yield from linear(f"{layer}.attention.self.{what}", hidden, hidden)
        yield from linear(f"{layer}.attention.output.dense", hidden, hidden)
        yield from norm(f"{layer}.attention.output.LayerNorm")
        yield from linear(f"{layer}.intermediate.dense", inner, hidden)
        yield from linear(f"{layer}.output.dense", hidden, inner)
        yield from norm(f"{layer}.output.LayerNorm")


def write_random(directory, config, seed=1):
    """Writes a checkpoint with values N(0, 0.02), the norms' weights around 1: the same seed gives the same bytes."""
    random = numpy.random.default_rng(seed)
    made = {}
    for name, shape in bert_tensors(config):
        made[name] = random.standard_normal(shape, numpy.float32) * numpy.float32(0.02)
        if name.endswith("LayerNorm.weight"):
            made[name] += numpy.float32(1)
    directory.mkdir(parents=True, exist_ok=True)
    save_file(made, directory / "model.safetensors", metadata={"format": "pt"})
    (directory / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def checkpoint(name, work):
    """The directory of a checkpoint, fetched or made where it isn't there yet."""
    if name == "minilm":
        directory = ROOT / "build/cache/all-MiniLM-L6-v2"
        script = [ROOT / "tools/minilm.py", "fetch", directory]
    elif name == "bert-base":
        directory = work / "bert-base"
        if not (directory / "config.json").exists():
            write_random(directory, BERT_BASE)
        return directory
    else:
        directory = work / name
        script = [Path(__file__).parent / "make_decision_checkpoint.py", "--base", "-o", directory]
    if not (directory / "config.json").exists():
        subprocess.run([sys.executable, *map(str, script)], check=True, stdout=sys.stderr)
    return directory
