#!/usr/bin/env python3
"""Holds who may include whom: the one table of it. A folder's row is the longest that its path begins with."""
import re

import tree

# Groups besides the rooms: what an #include begins with.
GROUPS = {
    "mlir": "mlir/", "llvm": "llvm/", "lld": "lld/", "toml": "toml++/", "cli": "CLI/", "json": "nlohmann/",
    "gtest": ("gtest/", "gmock/"), "api": ("batten/batten.h", "batten/batten.hpp"),
    "abi": ("batten/format.h", "batten/kernel.h"),
}
MLIR = {"mlir", "llvm"}
COMPILER = {"dialect/", "compiler/spec/", "compiler/graph/", "compiler/passes/", "compiler/layout/", "compiler/kernels/",
            "compiler/target/", "compiler/artifact/", "compiler/Compile", "compiler/ImportModel", "compiler/Jit", "compiler/Lowering",
            "compiler/SelfTest"}
ALL = COMPILER | MLIR | {"lld", "toml", "cli", "json", "api", "abi", "runtime/src/", "tools/"}

# folder: what it may include besides the standard library and itself.
TABLE = {
    "dialect/": MLIR,
    "compiler/spec/": {"llvm", "toml"},
    "compiler/graph/": MLIR | {"compiler/spec/", "dialect/"},
    # Of kernels the keys and the entry points, of artifact the bytes of plans.
    "compiler/passes/": MLIR | {"dialect/", "compiler/layout/", "compiler/kernels/", "compiler/artifact/"},
    "compiler/layout/": set(),
    "compiler/kernels/": MLIR | {"dialect/", "compiler/layout/", "compiler/target/", "abi"},  # target: a plain description
    "compiler/target/": MLIR | {"lld", "abi"},  # abi: feature bits
    "compiler/artifact/": MLIR | {"dialect/", "compiler/spec/", "compiler/layout/", "abi"},
    "compiler/Compile": ALL,
    "compiler/ImportModel": MLIR | {"compiler/Compile", "compiler/graph/", "compiler/spec/", "dialect/"},
    "compiler/Jit": ALL,
    "compiler/Lowering": ALL,
    "compiler/SelfTest": {"llvm", "compiler/Compile", "api", "abi", "compiler/spec/", "compiler/artifact/"},
    "runtime/abi/": set(),
    "runtime/include/": {"api"},
    "runtime/src/": {"api", "abi"},
    "tools/": ALL,
    "tools/batten/": {"tools/", "cli", "json", "api", "abi"},  # ships without LLVM
    "tools/common/": {"cli", "json"},
    "examples/": {"api"},
    "tests/": ALL | {"gtest", "tests/"},
}
# The runtime calls the operating system in these files only.
SYSTEM = re.compile(r"^(sys/|linux/|unistd\.h|fcntl\.h|pthread\.h|sched\.h|signal\.h|dirent\.h|poll\.h)")


def group(name):
    """The room or group that an include belongs to; "" for the standard library and neighbours."""
    for room in COMPILER | {"runtime/src/", "tools/", "tests/"}:
        if name.startswith(room):
            return room
    return next((key for key, starts in GROUPS.items() if name.startswith(starts)), "")


def main():
    findings, sources = [], tree.files(".h", ".hpp", ".c", ".cpp", ".td")
    for source in sources:
        rows = [row for row in TABLE if source.startswith(row)]
        if not rows:
            findings.append(f"{source}: no row in {__file__} covers it")
            continue
        row = max(rows, key=len)
        for number, line in enumerate((tree.ROOT / source).read_text().splitlines(), 1):
            found = re.match(r'\s*#?\s*include\s+["<]([^">]+)[">]', line)
            if not found:
                continue
            room = group(found[1])
            if room and room not in TABLE[row] and not row.startswith(room):
                findings.append(f"{source}:{number}: {row} may not include {found[1]}")
            if row == "runtime/src/" and SYSTEM.match(found[1]) and "/Os" not in source:
                findings.append(f"{source}:{number}: system calls belong into runtime/src/Os*.cpp, not {found[1]}")
    tree.end(findings, len(sources))


main()
