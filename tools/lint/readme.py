#!/usr/bin/env python3
"""Holds that what README files tell to type exists: scripts and files by path, and the flags of batten."""
import re

import tree


def main():
    findings, count = [], 0
    sources = "".join((tree.ROOT / name).read_text() for name in tree.files(".cpp") if name.startswith("tools/"))
    for name in tree.files("README.md"):
        text = (tree.ROOT / name).read_text()
        for block in re.findall(r"```sh\n(.*?)```", text, re.S):
            for word in re.findall(r"(?<![\w/])(?:tools|examples|tests|runtime|\.ci)/[\w./-]+", block):
                count += 1
                path = tree.ROOT / word
                if not path.exists():
                    findings.append(f"{name}: {word} does not exist")
                elif word.endswith(".sh") and not path.stat().st_mode & 0o111:
                    findings.append(f"{name}: {word} is not executable")
            for line in re.findall(r"\bbatten (?:import|compile|run|inspect|verify|bench)\b[^|\n]*", block):
                for flag in re.findall(r"(?<!\S)--?[a-z][\w-]*", line):
                    count += 1
                    if f'"{flag}"' not in sources and f",{flag}" not in sources:
                        findings.append(f"{name}: batten has no flag {flag}")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            count += 1
            if not (tree.ROOT / name).parent.joinpath(target).exists():
                findings.append(f"{name}: link to {target}, which does not exist")
    tree.end(findings, count)


main()
