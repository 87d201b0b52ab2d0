"""Packed sequences to padded rows and back, for the programs that need them so."""
import numpy


def padded(group, dtype=numpy.int64):
    """ids and mask [sequences, longest] of sequences of token ids."""
    ids = numpy.zeros((len(group), max(map(len, group))), dtype)
    mask = numpy.zeros_like(ids)
    for row, sequence in enumerate(group):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    return ids, mask


def unpadded(group, value):
    """[tokens, hidden] of [sequences, longest, hidden]; embeddings [sequences, hidden] as they are. A copy."""
    if value.ndim == 2:
        return value.copy()
    return numpy.concatenate([value[n, :len(sequence)] for n, sequence in enumerate(group)])
