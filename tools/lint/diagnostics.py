#!/usr/bin/env python3
"""Every diagnostic of dialect/ and compiler/passes/ appears in a test of what is refused: of each statement that emits one,
the longest literal must be in some test_lit/**/*-invalid.*. Texts that come from elsewhere (llvm::Error) have none."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMIT = re.compile(r"\b(?:emitError|emitOpError|emitOptionalError)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
COMMENT = re.compile(r"//[^\n]*")


def statements(text):
    """(line, literals) of each statement that emits a diagnostic."""
    text = COMMENT.sub(lambda match: " " * len(match.group()), text)
    for match in EMIT.finditer(text):
        end = match.start()
        quoted = False
        while end < len(text) and (quoted or text[end] not in ";{"):  # ends before a lambda's body as well
            if text[end] == '"' and text[end - 1] != "\\":
                quoted = not quoted
            end += 1
        literals = [literal.replace('\\"', '"') for literal in LITERAL.findall(text[match.start():end])]
        yield text.count("\n", 0, match.start()) + 1, literals


def main():
    tests = "\n".join(path.read_text() for path in sorted((ROOT / "test_lit").rglob("*-invalid.*")))
    found, missing = 0, []
    for folder in ("dialect", "compiler/passes"):
        for source in sorted((ROOT / folder).glob("*.cpp")):
            for line, literals in statements(source.read_text()):
                longest = max(literals, key=len, default="").strip()
                if not longest:
                    continue  # forwards a text
                found += 1
                if longest not in tests:
                    missing.append(f"{source.relative_to(ROOT)}:{line}: no test is refused with '{longest}'")
    print("\n".join(missing + [f"{found} diagnostics, {len(missing)} without a test"]))
    return 1 if missing or not found else 0


if __name__ == "__main__":
    sys.exit(main())
