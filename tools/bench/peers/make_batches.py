#!/usr/bin/env python3
"""Writes random batches for a decision model, as <case>/token_ids, cu_seqlens, markers, cu_markers and seq_types (I32).

    make_batches.py MODEL_DIR -o FILE [--count 200] [--seed 1] [--buckets TABLE --stage NAME] [--most-tokens 512]
    make_batches.py MODEL_DIR -o FILE --bench      one sequence of 16, 128 and 512 tokens, and ragged16: 16 sequences

Lengths are log-uniform from 1 to --longest, one sequence in eight is empty; a sequence has no marker, a few, more than
tokens, or one position several times; types are 0 to 2. Each batch is filled towards a bucket drawn from the table, often to
its brim. The first four are special: no sequence, empty sequences only, one token, one sequence of --longest. Same
seed and table, same bytes. Needs numpy and safetensors.
"""
import argparse
import json
import math
import sys
from pathlib import Path

import numpy
from safetensors.numpy import save_file

TYPES = 3
OWN_BUCKETS = [(n, n // 4, n) for n in (32, 64, 128, 256, 512, 1024, 2048)]  # tokens, seqs, markers


def read_buckets(path, stage):
    """The stage's buckets of a table `stage tokens seqs markers`."""
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    found = [tuple(map(int, words[1:])) for words in lines if words and words[0] == stage]
    if not found:
        sys.exit(f"{path}: no bucket of stage {stage}")
    return found


def vocabulary(model):
    names = [model / "encoder/config.json", model / "config.json"]
    path = next((name for name in names if name.exists()), None)
    if path is None:
        sys.exit(f"{model}: neither encoder/config.json nor config.json is there")
    return json.loads(path.read_text())["vocab_size"]


def markers_of(random, length, most):
    """Marker positions of a sequence, at most that many."""
    if not length:
        return []
    kind = random.integers(4)
    if kind == 0:
        return []
    if kind == 1:
        count = random.integers(1, 6)
    elif kind == 2:
        count = random.integers(length, 2 * length + 1)
    else:
        return [int(random.integers(length))] * min(int(random.integers(2, 5)), most)
    return random.integers(length, size=min(int(count), most)).tolist()


def random_length(random, longest):
    if random.integers(8) == 0:
        return 0
    return round(math.exp(random.uniform(0, math.log(longest))))


def random_sequences(random, bucket, longest):
    """(length, markers) of sequences that fit the bucket together."""
    tokens, seqs, markers = bucket
    seqs = int(random.integers(1, seqs + 1)) if random.integers(2) else seqs
    sequences = []
    while tokens and len(sequences) < seqs:
        length = min(random_length(random, longest), tokens)
        positions = markers_of(random, length, markers)
        sequences.append((length, positions))
        tokens, markers = tokens - length, markers - len(positions)
    return sequences


def pack(random, sequences, vocab):
    def starts(counts):
        return numpy.cumsum([0, *counts], dtype=numpy.int32)

    lengths = [length for length, _ in sequences]
    markers = [positions for _, positions in sequences]
    return {"token_ids": random.integers(vocab, size=sum(lengths), dtype=numpy.int32), "cu_seqlens": starts(lengths),
            "markers": numpy.array(sum(markers, []), numpy.int32), "cu_markers": starts(map(len, markers)),
            "seq_types": random.integers(TYPES, size=len(lengths), dtype=numpy.int32)}


def random_cases(random, options):
    special = [[], [(0, [])] * 3, [(1, [0])], [(options.longest, markers_of(random, options.longest, 8))]]
    buckets = read_buckets(options.buckets, options.stage) if options.buckets else OWN_BUCKETS
    buckets = [bucket for bucket in buckets if bucket[0] <= options.most_tokens]
    if not buckets:
        sys.exit(f"no bucket has at most {options.most_tokens} tokens (--most-tokens)")
    for index in range(options.count):
        if index < len(special):
            yield f"random-{index:03}", special[index]
        else:
            bucket = buckets[random.integers(len(buckets))]
            yield f"random-{index:03}", random_sequences(random, bucket, options.longest)


def bench_cases(random):
    for tokens in (16, 128, 512):
        yield f"tokens-{tokens:03}", [(tokens, sorted(random.integers(tokens, size=4).tolist()))]
    lengths = numpy.clip(numpy.exp(random.normal(math.log(90), 0.8, 16)), 8, 512).astype(int).tolist()
    yield "ragged-016", [(length, sorted(random.integers(length, size=4).tolist())) for length in lengths]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL_DIR", help="its vocabulary bounds the ids")
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--buckets", type=Path, metavar="TABLE", help="lines of: stage tokens seqs markers")
    parser.add_argument("--stage", default="compat", help="the stage of the table (default: compat)")
    parser.add_argument("--most-tokens", type=int, default=512, metavar="N", help="leave larger buckets out")
    parser.add_argument("--longest", type=int, default=150, metavar="N", help="the longest sequence")
    parser.add_argument("--bench", action="store_true", help="the batches that speed is measured with")
    options = parser.parse_args()
    if min(options.count, options.longest) < 1:
        parser.error("--count and --longest: at least 1 wanted")
    random = numpy.random.default_rng(options.seed)
    vocab = vocabulary(options.model)
    cases = bench_cases(random) if options.bench else random_cases(random, options)
    packed = {name: pack(random, sequences, vocab) for name, sequences in cases}
    save_file({f"{name}/{what}": values for name, case in packed.items() for what, values in case.items()}, options.output)
    counts = [sum(len(case[what]) for case in packed.values()) for what in ("token_ids", "seq_types", "markers")]
    print(f"{options.output}: {len(packed)} batches, {counts[0]} tokens, {counts[1]} sequences, {counts[2]} markers")


main()
