"""Copies a plan file with one field changed: patch.py IN OUT WHERE RECORD OFFSET FORMAT VALUE.
WHERE is HEADER, TABLE (the section table) or a section; FORMAT is struct's. The digest is made right again, unless WHERE is
DIGEST (then nothing else changes) or CUT (the file keeps RECORD bytes)."""
import hashlib
import struct
import sys

SECTIONS = {"STRINGS": 1, "PLAN": 30, "BUFFERS": 31, "WEIGHTS": 32, "KERNELS": 33, "OPERANDS": 34, "STEPS": 35,
            "PLAN_OUTPUTS": 36}

source, target, where, record, offset, form, value = sys.argv[1:8]
data = bytearray(open(source, "rb").read())
if where == "CUT":
    data = data[:int(record)]
elif where == "DIGEST":
    data[40] ^= 1
else:
    if where == "HEADER":
        start = 0
    elif where == "TABLE":
        start = 128 + 32 * int(record)
    else:
        count = struct.unpack_from("<I", data, 32)[0]
        for index in range(count):
            kind, size, at, _, _ = struct.unpack_from("<IIQQQ", data, 128 + 32 * index)
            if kind == SECTIONS[where]:
                start = at + size * int(record)
    struct.pack_into("<" + form, data, start + int(offset), int(value))
    data[40:72] = bytes(32)
    data[40:72] = hashlib.sha256(data).digest()
open(target, "wb").write(data)
