#!/usr/bin/env python3
"""Holds clang-format's layout of all C and C++ files; `format.py --fix` makes it."""
import subprocess
import sys

import tree


def main():
    names = tree.files(".h", ".hpp", ".c", ".cpp")
    mode = ["-i"] if sys.argv[1:] == ["--fix"] else ["--dry-run", "-Werror"]
    result = subprocess.run(["clang-format-22", "--style=file", *mode, *names], cwd=tree.ROOT, capture_output=True, text=True)
    findings = [line for line in result.stderr.splitlines() if "error:" in line]
    if result.returncode and not findings:
        findings = [f"clang-format-22 failed: {result.stderr}"]
    tree.end(findings, len(names))


main()
