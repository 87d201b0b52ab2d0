"""What is measured with: token ids in groups. A group is what a program is given at once, a job is groups one after another.

Lengths and ids come from fixed seeds, so that every run and every program does the same work.
"""
import math
import random

SIZES = (8, 16, 32, 128, 512)
IDS = (1000, 30000)  # drawn below BERT's vocabulary, above its special tokens


def sequences(lengths, seed):
    drawn = random.Random(seed)
    return [[drawn.randrange(*IDS) for _ in range(length)] for length in lengths]


def ragged_lengths(count=64, median=32, sigma=0.8, least=4, most=512, seed=64):
    """Log-normal lengths, clipped."""
    drawn = random.Random(seed)
    return [min(max(round(drawn.lognormvariate(math.log(median), sigma)), least), most) for _ in range(count)]


def short_lengths(count=64, seed=5):
    drawn = random.Random(seed)
    return [drawn.randint(5, 12) for _ in range(count)]


def one_batch(made):
    return [made]


def loop(made):
    return [[sequence] for sequence in made]


def sorted_eights(made):
    """Longest first, eight at a time, so that those padded together are of about one length."""
    ordered = sorted(made, key=len, reverse=True)
    return [ordered[start:start + 8] for start in range(0, len(ordered), 8)]


STRATEGIES = {"batch": one_batch, "sorted": sorted_eights, "loop": loop}


DECISION = ("tokens-016", "tokens-128", "tokens-512", "ragged-016")  # make_batches.py's


def figures():
    """Names FIGURE/MODEL/THREADS/CASE of all figures, in the order in which they are taken."""
    for threads in (1, 2):
        yield f"peaks/machine/{threads}/all"
    for model in ("minilm", "bert-base"):
        for threads in (1, 2):
            yield from (f"latency/{model}/{threads}/{size}" for size in SIZES)
            yield from (f"ragged64/{model}/{threads}/{strategy}" for strategy in STRATEGIES)
            if model == "minilm":
                yield f"short64/{model}/{threads}/loop"
        yield from (f"scaling/{model}/2/{size}" for size in SIZES)
        yield from (f"steps/{model}/1/{size}" for size in (16, 64, 128, 512))
        yield f"start/{model}/1/16"
        yield f"memory/{model}/1/16"
    yield from (f"decision/decision-base/{threads}/{case}" for threads in (1, 2) for case in DECISION)
    yield "size/all/1/all"
    yield "compile/minilm/1/20"


def tokens(groups):
    return sum(len(sequence) for group in groups for sequence in group)


def padded_tokens(groups):
    """Rows that a program computes which pads each group to its longest."""
    return sum(len(group) * max(map(len, group)) for group in groups)


def order(made, groups):
    """For each sequence of the groups in turn, its place among `made`, which are all different."""
    places = {tuple(sequence): place for place, sequence in enumerate(made)}
    return [places[tuple(sequence)] for group in groups for sequence in group]
