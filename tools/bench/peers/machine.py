"""What kind of machine this is, without its name."""
import os
import re
from pathlib import Path

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile")


def describe(info=None):
    """CPU, how many, and what it multiplies with: "AMD EPYC, 2 CPUs, family 25 model 1, avx2"."""
    info = info or Path("/proc/cpuinfo").read_text()
    found = dict(re.findall(r"^(model name|cpu family|model|flags)\s*:\s*(.*)$", info, re.M))
    flags = [flag for flag in FLAGS if flag in found.get("flags", "").split()]
    return (f"{found.get('model name', 'unknown CPU')}, {len(os.sched_getaffinity(0))} CPUs, family {found.get('cpu family', '?')} "
            f"model {found.get('model', '?')}, {' '.join(flags)}")
