"""PyTorch, eager, inference mode: one linear for queries, keys and values, its own attention function."""
import torch
from safetensors.torch import load_file
from torch.nn import functional

from programs.padding import padded, unpadded

TITLE = "PyTorch"
LIBRARIES = ("torch",)


def versions(folder):
    return {"torch": torch.__version__}


def prepare(checkpoint, folder):
    """It reads the checkpoint itself."""


class Engine:
    def __init__(self, checkpoint, folder, threads):
        torch.set_num_threads(threads)
        self.t, self.model, self.notes = load_file(checkpoint.directory / "model.safetensors"), checkpoint, {}
        for n in range(checkpoint.layers):
            name = f"encoder.layer.{n}.attention.self"
            for part in ("weight", "bias"):
                self.t[f"{name}.{part}"] = torch.cat([self.t.pop(f"{name}.{what}.{part}") for what in ("query", "key", "value")])

    def linear(self, name, value):
        return functional.linear(value, self.t[f"{name}.weight"], self.t[f"{name}.bias"])

    def norm(self, name, value):
        return functional.layer_norm(value, (self.model.hidden,), self.t[f"{name}.weight"], self.t[f"{name}.bias"], self.model.eps)

    def layer(self, name, hidden, mask):
        batch, seq, _ = hidden.shape
        parts = self.linear(f"{name}.attention.self", hidden).view(batch, seq, 3, self.model.heads, self.model.head)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        out = self.linear(f"{name}.attention.output.dense", context.transpose(1, 2).reshape(batch, seq, self.model.hidden))
        hidden = self.norm(f"{name}.attention.output.LayerNorm", out + hidden)
        inner = functional.gelu(self.linear(f"{name}.intermediate.dense", hidden))
        return self.norm(f"{name}.output.LayerNorm", self.linear(f"{name}.output.dense", inner) + hidden)

    def forward(self, ids, weights, mask):
        """weights [batch, seq]: 1 where a token is; mask: None where all are."""
        embeddings = [self.t[f"embeddings.{what}_embeddings.weight"] for what in ("word", "position", "token_type")]
        rows = functional.embedding(ids, embeddings[0]) + embeddings[1][:ids.shape[1]] + embeddings[2][0]
        hidden = self.norm("embeddings.LayerNorm", rows)
        for n in range(self.model.layers):
            hidden = self.layer(f"encoder.layer.{n}", hidden, mask)
        if not self.model.pooled:
            return hidden
        return functional.normalize((hidden * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True))

    def bind(self, group, fixed):
        ids, weights = map(torch.from_numpy, padded(group))
        mask = None if weights.all() else weights.bool()[:, None, None, :]
        weights = weights.float()

        @torch.inference_mode()
        def once():
            return self.forward(ids, weights, mask)
        return once

    def rows(self, group, value):
        return unpadded(group, value.numpy())
