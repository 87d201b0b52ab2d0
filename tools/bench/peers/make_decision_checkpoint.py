#!/usr/bin/env python3
"""Writes a random decision checkpoint: the same seed and geometry give the same bytes.

    make_decision_checkpoint.py --tiny -o DIR [--seed N] [--type f32|f16] [--layout one|published] [--newer-keys]
    make_decision_checkpoint.py --base -o DIR --layers 4        a size is a start; its numbers can be changed one by one

Values are scaled so that activations stay near 1 at any depth: a matrix keeps the size of its input, those that add to the
hidden state share that among their layers, and attention scores spread enough for a softmax that isn't flat.
Needs numpy and safetensors.
"""
import argparse
import json
import math
import zlib
from pathlib import Path

import numpy
from safetensors.numpy import save_file

HEAD_WIDTH, ACT_HIDDEN, TYPES = 64, 256, 3  # fixed by the model
# hidden, layers, inner, head_layers, vocab, window, global_every
SIZES = {"tiny": (128, 4, 88, 2, 600, 20, 3), "base": (768, 22, 1152, 2, 50368, 128, 3)}
NUMBERS = ("hidden", "layers", "inner", "head_layers", "vocab", "window", "global_every")
THETAS = {"full_attention": 160000.0, "sliding_attention": 10000.0}


def configs(g, newer_keys):
    """The encoder's configuration, in the older spelling or the newer one, and the head's."""
    encoder = {"model_type": "modernbert", "hidden_size": g.hidden, "num_attention_heads": g.hidden // HEAD_WIDTH,
               "num_hidden_layers": g.layers, "intermediate_size": g.inner, "vocab_size": g.vocab,
               "local_attention": g.window, "max_position_embeddings": 8192, "norm_eps": 1e-5, "hidden_activation": "gelu",
               "position_embedding_type": "rope", "attention_bias": False, "mlp_bias": False, "norm_bias": False}
    kinds = ["sliding_attention" if n % g.global_every else "full_attention" for n in range(g.layers)]
    if newer_keys:
        encoder["layer_types"] = kinds
        encoder["rope_parameters"] = {k: {"rope_theta": t, "rope_type": "default"} for k, t in THETAS.items()}
    else:
        encoder.update(global_attn_every_n_layers=g.global_every, global_rope_theta=THETAS["full_attention"],
                       local_rope_theta=THETAS["sliding_attention"])
    head = {"encoder": "random", "head_layers": g.head_layers, "max_len": 8192, "head_max_len": 512,
            "temperature": [1.0] * TYPES}
    return encoder, head


def tensors(g):
    """Every tensor of the checkpoint: name, shape, mean and deviation of its values."""
    d, inner = g.hidden, g.inner
    share = 1 / math.sqrt(2 * g.layers)
    head_share = 1 / math.sqrt(2 * max(g.head_layers, 1))

    def matrix(name, rows, columns, scale=1.0):
        return name, (rows, columns), 0.0, scale / math.sqrt(columns)

    def linear(name, rows, columns, scale=1.0):
        return [matrix(f"{name}.weight", rows, columns, scale), (f"{name}.bias", (rows,), 0.0, 0.1)]

    def norm(name, bias=True):
        return [(f"{name}.weight", (d,), 1.0, 0.2)] + [(f"{name}.bias", (d,), 0.0, 0.1)] * bias

    yield "encoder.embeddings.tok_embeddings.weight", (g.vocab, d), 0.0, 1.0
    yield from norm("encoder.embeddings.norm", bias=False)
    for n in range(g.layers):
        layer = f"encoder.layers.{n}"
        if n:
            yield from norm(f"{layer}.attn_norm", bias=False)
        yield matrix(f"{layer}.attn.Wqkv.weight", 3 * d, d, 1.2)
        yield matrix(f"{layer}.attn.Wo.weight", d, d, share)
        yield from norm(f"{layer}.mlp_norm", bias=False)
        yield matrix(f"{layer}.mlp.Wi.weight", 2 * inner, d)
        yield matrix(f"{layer}.mlp.Wo.weight", d, inner, share)
    yield from norm("encoder.final_norm", bias=False)
    yield "type_emb.weight", (TYPES, d), 0.0, 0.5
    for n in range(g.head_layers):
        layer = f"head.layers.{n}"
        yield from norm(f"{layer}.norm1")
        yield matrix(f"{layer}.self_attn.in_proj_weight", 3 * d, d, 1.2)
        yield f"{layer}.self_attn.in_proj_bias", (3 * d,), 0.0, 0.1
        yield from linear(f"{layer}.self_attn.out_proj", d, d, head_share)
        yield from norm(f"{layer}.norm2")
        yield from linear(f"{layer}.linear1", 4 * d, d)
        yield from linear(f"{layer}.linear2", d, 4 * d, head_share)
    yield from norm("scorer.0")
    yield from linear("scorer.1", d, d)
    yield from linear("scorer.3", 1, d)
    yield from linear("act_head.0", ACT_HIDDEN, d + 4)
    yield from linear("act_head.2", 2, ACT_HIDDEN)
    yield "temperature", (TYPES,), 1.0, 0.0


def make(g, seed, dtype):
    made = {}
    for name, shape, mean, deviation in tensors(g):
        generator = numpy.random.default_rng([seed, zlib.crc32(name.encode())])  # each of its own: none depends on the others
        made[name] = (mean + deviation * generator.standard_normal(shape, numpy.float32)).astype(dtype)
    return made


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    for name, numbers in SIZES.items():
        size.add_argument(f"--{name}", dest="size", action="store_const", const=numbers)
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", choices=("f32", "f16"), default="f32")
    parser.add_argument("--layout", choices=("one", "published"), default="one")
    parser.add_argument("--newer-keys", action="store_true", help="layer_types and rope_parameters in the configuration")
    for name in NUMBERS:
        parser.add_argument("--" + name.replace("_", "-"), type=int, metavar="N")
    found = parser.parse_args()
    for name, default in zip(NUMBERS, found.size):
        if getattr(found, name) is None:
            setattr(found, name, default)
        if getattr(found, name) < (0 if name in ("head_layers", "window") else 1):
            parser.error(f"--{name.replace('_', '-')}: found {getattr(found, name)}, which is too small")
    if found.hidden % HEAD_WIDTH:
        parser.error(f"--hidden: found {found.hidden}, a multiple of {HEAD_WIDTH} wanted: heads are that wide")
    return found


def main():
    g = options()
    encoder, head = configs(g, g.newer_keys)
    if g.layout == "one":
        write_json(g.output / "config.json", {**encoder, **head})
    else:
        write_json(g.output / "encoder/config.json", encoder)
        write_json(g.output / "rl_agent_config.json", head)
    made = make(g, g.seed, {"f32": numpy.float32, "f16": numpy.float16}[g.type])
    save_file(made, g.output / "model.safetensors", metadata={"format": "pt"})
    print(f"{g.output}: {sum(t.size for t in made.values()) / 1e6:.1f} million values in {len(made)} tensors, {g.type}")


main()
