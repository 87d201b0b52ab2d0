"""A BERT checkpoint as an ONNX graph of standard operators, built from its tensors: for ONNX Runtime and OpenVINO.

Both fuse what they can themselves. A graph that spells ONNX Runtime's own fused operators was no quicker there. Inputs are
input_ids and attention_mask [batch, seq]; the output is `embedding` [batch, hidden], mean of the rows and normalised, or
`hidden` [batch, seq, hidden]. Token types are all 0, so that their row is added to the positions' table here.
"""
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """Nodes and constants of a graph; every call gives the name of its value."""

    def __init__(self, model):
        self.model, self.nodes, self.constants = model, [], {}

    def const(self, name, value):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(numpy.ascontiguousarray(value), name)
        return name

    def weight(self, name):
        """A tensor of the checkpoint; a matrix is transposed, as MatMul reads it."""
        value = self.model.tensors[name]
        return self.const(name, value.T if value.ndim == 2 else value)

    def ints(self, *values):
        return self.const("ints_" + "_".join(map(str, values)), numpy.array(values, numpy.int64))

    def real(self, value):
        return self.const(f"real_{value}", numpy.array(value, numpy.float32))

    def op(self, kind, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def linear(self, name, value):
        product = self.op("MatMul", value, self.weight(f"{name}.weight"), name=f"{name}.product")
        return self.op("Add", product, self.weight(f"{name}.bias"), name=f"{name}.out")

    def norm(self, name, value):
        return self.op("LayerNormalization", value, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"),
                       name=f"{name}.out", axis=-1, epsilon=self.model.eps)


def embed(b):
    """Rows of ids and positions, added and normalised: [batch, seq, hidden]."""
    t = b.model.tensors
    table = b.const("positions", t["embeddings.position_embeddings.weight"] + t["embeddings.token_type_embeddings.weight"][0])
    seq = b.op("Gather", b.op("Shape", "input_ids", name="shape"), b.ints(1), name="seq", axis=0)
    positions = b.op("Slice", table, b.ints(0), seq, b.ints(0), name="position_rows")
    words = b.op("Gather", b.const("words", t["embeddings.word_embeddings.weight"]), "input_ids", name="word_rows", axis=0)
    return b.norm("embeddings.LayerNorm", b.op("Add", words, positions, name="embeddings"))


def score_mask(b):
    """What is added to scores [batch, heads, seq, seq]: 0, or far below 0 where a key is padding."""
    real = b.op("Cast", "attention_mask", name="mask_real", to=TensorProto.FLOAT)
    far = b.op("Mul", b.op("Sub", b.real(1.0), real, name="mask_off"), b.real(-10000.0), name="mask_far")
    return b.op("Unsqueeze", far, b.ints(1, 2), name="mask")


def attention(b, layer, hidden, mask):
    """Attention of all heads, before the output linear."""
    heads = []
    for what, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        name = f"{layer}.attention.self.{what}"
        split = b.op("Reshape", b.linear(name, hidden), b.ints(0, 0, b.model.heads, b.model.head), name=f"{name}.split")
        heads.append(b.op("Transpose", split, name=f"{name}.heads", perm=order))
    products = b.op("MatMul", heads[0], heads[1], name=f"{layer}.products")
    scores = b.op("Div", products, b.real(float(b.model.head) ** 0.5), name=f"{layer}.scores")
    shares = b.op("Softmax", b.op("Add", scores, mask, name=f"{layer}.masked"), name=f"{layer}.shares", axis=-1)
    mixed = b.op("MatMul", shares, heads[2], name=f"{layer}.mixed")
    joined = b.op("Transpose", mixed, name=f"{layer}.joined", perm=[0, 2, 1, 3])
    return b.op("Reshape", joined, b.ints(0, 0, b.model.hidden), name=f"{layer}.context")


def encoder_layer(b, layer, hidden, mask):
    out = b.linear(f"{layer}.attention.output.dense", attention(b, layer, hidden, mask))
    hidden = b.norm(f"{layer}.attention.output.LayerNorm", b.op("Add", out, hidden, name=f"{layer}.attention.sum"))
    inner = b.op("Gelu", b.linear(f"{layer}.intermediate.dense", hidden), name=f"{layer}.gelu")
    out = b.linear(f"{layer}.output.dense", inner)
    return b.norm(f"{layer}.output.LayerNorm", b.op("Add", out, hidden, name=f"{layer}.sum"))


def pool(b, hidden):
    """Mean of a sequence's rows, divided by its length as a vector."""
    mask = b.op("Unsqueeze", b.op("Cast", "attention_mask", name="weights", to=TensorProto.FLOAT), b.ints(2), name="weight_rows")
    total = b.op("ReduceSum", b.op("Mul", hidden, mask, name="weighted"), b.ints(1), name="total", keepdims=0)
    mean = b.op("Div", total, b.op("ReduceSum", mask, b.ints(1), name="count", keepdims=0), name="mean")
    return b.op("Div", mean, b.op("ReduceL2", mean, b.ints(1), name="length", keepdims=1), name="embedding")


def build(model):
    """The graph of a Checkpoint."""
    b = Builder(model)
    hidden, mask = embed(b), score_mask(b)
    for n in range(model.layers):
        hidden = encoder_layer(b, f"encoder.layer.{n}", hidden, mask)
    shape = ["batch", model.hidden] if model.pooled else ["batch", "seq", model.hidden]
    name = pool(b, hidden) if model.pooled else b.op("Identity", hidden, name="hidden")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(b.nodes, "encoder", inputs, [output], list(b.constants.values()))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(made)
    return made
