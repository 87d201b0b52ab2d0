#!/usr/bin/env python3
"""Holds the shape of files: a comment at the top, at most 500 lines unless the top says why, nothing generated, nothing large."""
import re

import tree

SOURCES = (".h", ".hpp", ".c", ".cpp", ".td", ".py", ".sh", ".cmake")
COMMENT = re.compile(r'(//|/\*|#|""")')
MOST_LINES, MOST_BYTES = 500, 1 << 20
GENERATED = re.compile(r"(^build/|\.(o|a|so|pyc|inc|img|plan|pack|whl|log)$|\.batten(/|$)|compile_commands\.json$)")


def main():
    findings, names = [], tree.files()
    for name in names:
        path = tree.ROOT / name
        if GENERATED.search(name):
            findings.append(f"{name}: looks generated")
        if path.stat().st_size > MOST_BYTES:
            findings.append(f"{name}: {path.stat().st_size} bytes, at most {MOST_BYTES} belong into the repository")
        if not name.endswith(SOURCES):
            continue
        lines = path.read_text().splitlines()
        top = lines[1:] if lines and lines[0].startswith("#!") else lines
        if not top or not COMMENT.match(top[0]):
            findings.append(f"{name}: does not open with a comment on what it is")
        if len(lines) > MOST_LINES and not any("lines" in line for line in lines[:12]):
            findings.append(f"{name}: {len(lines)} lines; past {MOST_LINES}, split it or say at the top why it has so many lines")
    tree.end(findings, len(names))


main()
