"""Batten in process, through its C API: what a program that links the runtime does.

The shared library is linked here from the static one that the build makes; structures and constants are those of batten.h.
"""
import ctypes
import os
import subprocess
from pathlib import Path

import numpy
from safetensors.numpy import load_file

TITLE = "Batten"
LIBRARIES = ()
BUCKETS = "text 512 64 0\ntext 4096 128 0\n"
UINT32_MAX = 2**32 - 1


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("osError", ctypes.c_int32),
                *((name, ctypes.c_uint64) for name in ("index", "sequence", "found", "limit")),
                *((name, ctypes.c_char * size) for name, size in (("where", 128), ("section", 32), ("message", 512)))]


class PoolOptions(ctypes.Structure):
    _fields_ = [("structBytes", ctypes.c_size_t), ("threads", ctypes.c_uint32), ("spinMicroseconds", ctypes.c_uint32)]


class ExecutorOptions(ctypes.Structure):
    _fields_ = [("structBytes", ctypes.c_size_t), ("pool", ctypes.c_void_p), ("profile", ctypes.c_bool)]


class Batch(ctypes.Structure):
    _fields_ = [("structBytes", ctypes.c_size_t),
                *((name, ctypes.c_void_p) for name in ("tokenIds", "tokenTypes", "cuSeqlens", "markers", "cuMarkers", "seqTypes")),
                *((name, ctypes.c_uint32) for name in ("tokenCount", "seqCount", "markerCount"))]


class View(ctypes.Structure):
    _fields_ = [("copyTo", ctypes.c_void_p), ("copyBytes", ctypes.c_size_t), ("data", ctypes.c_void_p),
                ("rows", ctypes.c_uint32), ("width", ctypes.c_uint32), ("strideBytes", ctypes.c_size_t)]


def build():
    """The build folder that is measured."""
    return Path(os.environ["BATTEN_BUILD"])


def library(folder):
    """The runtime as a shared library, linked again where the static one is newer."""
    archive, shared = build() / "runtime/libbatten_runtime.a", folder / "libbatten.so"
    if not shared.exists() or shared.stat().st_mtime < archive.stat().st_mtime:
        subprocess.run(["cc", "-shared", "-o", shared, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-lpthread", "-lm"],
                       check=True)
    return shared


def bundle(folder):
    return folder / "bundle.batten"


def prepare(checkpoint, folder):
    command = [build() / "bin/batten", "compile", checkpoint.directory, "-o", bundle(folder)]
    if checkpoint.family == "bert":
        table = folder / "buckets"
        table.write_text(BUCKETS)
        command += ["--buckets", table]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    library(folder)


def versions(folder):
    found = ctypes.CDLL(str(folder / "libbatten.so")).batten_version
    found.restype = ctypes.c_char_p
    return {"batten": found().decode()}


class Engine:
    """A bundle, a pool and an executor."""

    def __init__(self, checkpoint, folder, threads):
        self.lib, self.error = ctypes.CDLL(str(folder / "libbatten.so")), Error()
        self.bundle, self.executor, pool = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("batten_bundle_open", str(bundle(folder)).encode(), None, ctypes.byref(self.bundle))
        if threads > 1:
            options = PoolOptions(ctypes.sizeof(PoolOptions), threads, UINT32_MAX)
            self.call("batten_pool_create", ctypes.byref(options), ctypes.byref(pool))
        options = ExecutorOptions(ctypes.sizeof(ExecutorOptions), pool, False)
        self.call("batten_executor_create", self.bundle, ctypes.byref(options), ctypes.byref(self.executor))
        self.outputs, self.notes = 1, {}  # lane embed has one; so has encode of a checkpoint without pooler

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments, ctypes.byref(self.error)):
            raise RuntimeError(f"{name}: {self.error.message.decode()}")

    def bind(self, group, fixed):
        ids = numpy.concatenate([numpy.asarray(sequence, numpy.int32) for sequence in group])
        starts = numpy.cumsum([0, *map(len, group)], dtype=numpy.int32)
        batch = Batch(structBytes=ctypes.sizeof(Batch), tokenIds=ids.ctypes.data, cuSeqlens=starts.ctypes.data,
                      tokenCount=len(ids), seqCount=len(group))
        views = (View * self.outputs)()
        run, executor, error = self.lib.batten_run, self.executor, ctypes.byref(self.error)
        pointer = ctypes.byref(batch)

        def once(keep=(ids, starts, batch)):
            if run(executor, pointer, views, self.outputs, None, error):
                raise RuntimeError(f"batten_run: {self.error.message.decode()}")
            return views[0]
        return once

    def bind_file(self, path, name, outputs):
        """A function that runs the batch of a file on a lane, which has so many outputs."""
        tensors, lane = load_file(path), ctypes.c_uint32()
        self.call("batten_bundle_find_lane", self.bundle, name.encode(), ctypes.byref(lane))
        fields = {"tokenIds": "token_ids", "cuSeqlens": "cu_seqlens", "markers": "markers", "cuMarkers": "cu_markers", "seqTypes": "seq_types"}
        batch = Batch(structBytes=ctypes.sizeof(Batch), tokenCount=len(tensors["token_ids"]), seqCount=len(tensors["cu_seqlens"]) - 1,
                      markerCount=len(tensors["markers"]), **{field: tensors[tensor].ctypes.data for field, tensor in fields.items()})
        views = (View * outputs)()

        def once(keep=(tensors, batch)):
            self.call("batten_run_lane", self.executor, lane, ctypes.byref(keep[1]), views, outputs, None)
        return once

    def rows(self, group, view):
        stride = view.strideBytes // 4
        flat = numpy.ctypeslib.as_array(ctypes.cast(view.data, ctypes.POINTER(ctypes.c_float)), (view.rows * stride,))
        return flat.reshape(view.rows, stride)[:, :view.width].copy()
