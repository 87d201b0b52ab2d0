"""OpenVINO's CPU plugin on its own file of the graph; a model of its own for each shape that is met again and again.

Its default precision is the narrowest that the machine multiplies fast: f32 must be asked for, and is read back.
"""
import onnx
import openvino

import onnx_graph
from programs.padding import padded, unpadded

TITLE = "OpenVINO"
LIBRARIES = ("openvino",)
INPUTS = ("input_ids", "attention_mask")


def versions(folder):
    return {"openvino": openvino.__version__}


def prepare(checkpoint, folder):
    onnx.save(onnx_graph.build(checkpoint), folder / "plain.onnx")
    openvino.save_model(openvino.convert_model(folder / "plain.onnx"), folder / "model.xml", compress_to_fp16=False)


class Engine:
    """A compiled model for any shape, from the cache of an earlier start where there is one."""

    def __init__(self, checkpoint, folder, threads):
        self.core, self.path = openvino.Core(), folder / "model.xml"
        self.config = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
                       "INFERENCE_NUM_THREADS": threads, "CACHE_DIR": str(folder / "cache")}
        self.any_shape = self.request(self.core.compile_model(self.path, "CPU", self.config))

    def request(self, compiled):
        found = {name: compiled.get_property(name) for name in ("INFERENCE_PRECISION_HINT", "INFERENCE_NUM_THREADS")}
        if found["INFERENCE_PRECISION_HINT"] != openvino.Type.f32:
            raise RuntimeError(f"INFERENCE_PRECISION_HINT: found {found['INFERENCE_PRECISION_HINT']}, f32 wanted")
        self.notes = found
        return compiled.create_infer_request()

    def bind(self, group, fixed):
        arrays, request = padded(group), self.any_shape
        if fixed:
            model = self.core.read_model(self.path)
            model.reshape({name: list(array.shape) for name, array in zip(INPUTS, arrays)})
            request = self.request(self.core.compile_model(model, "CPU", self.config))
        inputs = {name: openvino.Tensor(array, shared_memory=True) for name, array in zip(INPUTS, arrays)}

        def once(keep=arrays):
            return request.infer(inputs, share_inputs=True, share_outputs=True)[0]
        return once

    def rows(self, group, value):
        return unpadded(group, value)
