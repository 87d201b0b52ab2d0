"""ONNX Runtime's CPU provider: the graph optimised ahead of time, weights packed in a file that is mapped."""
import onnx
import onnxruntime

import onnx_graph
from programs.padding import padded, unpadded

TITLE = "ONNX Runtime"
LIBRARIES = ("onnxruntime",)


def versions(folder):
    return {"onnxruntime": onnxruntime.__version__}


def options(threads, level):
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads, made.inter_op_num_threads = threads, 1
    made.graph_optimization_level = level
    made.log_severity_level = 3
    return made


def prepare(checkpoint, folder):
    onnx.save(onnx_graph.build(checkpoint), folder / "plain.onnx")
    made = options(1, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    made.optimized_model_filepath = str(folder / "optimized.onnx")
    made.add_session_config_entry("session.optimized_model_external_initializers_file_name", "optimized.bin")
    made.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    made.add_session_config_entry("session.save_external_prepacked_constant_initializers", "1")
    onnxruntime.InferenceSession(folder / "plain.onnx", made, providers=["CPUExecutionProvider"])


class Engine:
    """A session of the optimised graph. Its threads spin between the operators of a run, which is its default and quickest."""

    def __init__(self, checkpoint, folder, threads):
        made = options(threads, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        self.session = onnxruntime.InferenceSession(folder / "optimized.onnx", made, providers=["CPUExecutionProvider"])
        self.notes = {}

    def bind(self, group, fixed):
        ids, mask = padded(group)
        inputs, session = {"input_ids": ids, "attention_mask": mask}, self.session
        return lambda: session.run(None, inputs)[0]

    def rows(self, group, value):
        return unpadded(group, value)
