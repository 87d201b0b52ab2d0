"""CTranslate2's Encoder. Sentence pooling is numpy's here, since the library has none."""
import os
import shutil
from pathlib import Path

import numpy
from programs.padding import padded, unpadded

# On AMD the library takes neither AVX-512 nor its packed f32 products by itself; both are quicker there. Read when it is loaded.
CPU = Path("/proc/cpuinfo").read_text()
SETTINGS = {"CT2_USE_MKL": "1", **({"CT2_FORCE_CPU_ISA": "AVX512"} if "avx512bw" in CPU else {})} if "AuthenticAMD" in CPU else {}
os.environ.update(SETTINGS)

import ctranslate2
from ctranslate2.converters import utils
from ctranslate2.specs import common_spec, transformer_spec

TITLE = "CTranslate2"
LIBRARIES = ("ctranslate2", "ctranslate2.libs")


def versions(folder):
    return {"ctranslate2": ctranslate2.__version__}


def set_linear(spec, tensors, name):
    spec.weight, spec.bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def set_norm(spec, tensors, name):
    spec.gamma, spec.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def specification(checkpoint):
    t = checkpoint.tensors
    encoder = transformer_spec.TransformerEncoderSpec(
        checkpoint.layers, checkpoint.heads, pre_norm=False, activation=common_spec.Activation.GELU, layernorm_embedding=True,
        num_source_embeddings=2, embeddings_merge=common_spec.EmbeddingsMerge.ADD)
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = t["embeddings.word_embeddings.weight"]
    encoder.embeddings[1].weight = t["embeddings.token_type_embeddings.weight"]
    encoder.position_encodings.encodings = t["embeddings.position_embeddings.weight"]
    set_norm(encoder.layernorm_embedding, t, "embeddings.LayerNorm")
    for n, layer in enumerate(encoder.layer):
        name = f"encoder.layer.{n}"
        parts = [common_spec.LinearSpec() for _ in range(3)]
        for part, what in zip(parts, ("query", "key", "value")):
            set_linear(part, t, f"{name}.attention.self.{what}")
        utils.fuse_linear(layer.self_attention.linear[0], parts)
        set_linear(layer.self_attention.linear[1], t, f"{name}.attention.output.dense")
        set_norm(layer.self_attention.layer_norm, t, f"{name}.attention.output.LayerNorm")
        set_linear(layer.ffn.linear_0, t, f"{name}.intermediate.dense")
        set_linear(layer.ffn.linear_1, t, f"{name}.output.dense")
        set_norm(layer.ffn.layer_norm, t, f"{name}.output.LayerNorm")
    return transformer_spec.TransformerEncoderModelSpec(encoder)


def prepare(checkpoint, folder):
    spec = specification(checkpoint)
    spec.config.layer_norm_epsilon = checkpoint.eps
    spec.config.unk_token = "0"
    spec.register_vocabulary([str(n) for n in range(checkpoint.vocab)])  # ids are given, names are never used
    spec.validate()
    spec.optimize(quantization="float32")
    shutil.rmtree(folder / "model", ignore_errors=True)
    (folder / "model").mkdir()
    spec.save(str(folder / "model"))


class Engine:
    def __init__(self, checkpoint, folder, threads):
        self.encoder = ctranslate2.Encoder(str(folder / "model"), compute_type="float32", inter_threads=1, intra_threads=threads)
        self.pooled = checkpoint.pooled
        self.notes = {"compute_type": self.encoder.compute_type, **SETTINGS}

    def bind(self, group, fixed):
        ids, mask = padded(group, numpy.int32)
        lengths = mask.sum(axis=1, dtype=numpy.int32)
        inputs = ctranslate2.StorageView.from_array(ids), ctranslate2.StorageView.from_array(lengths)
        encoder, pooled = self.encoder, self.pooled

        def once(keep=(ids, lengths)):
            rows = numpy.asarray(encoder.forward_batch(*inputs).last_hidden_state)
            if not pooled:
                return rows
            means = numpy.stack([row[:length].mean(axis=0) for row, length in zip(rows, keep[1])])
            return means / numpy.linalg.norm(means, axis=1, keepdims=True)
        return once

    def rows(self, group, value):
        return unpadded(group, value)
