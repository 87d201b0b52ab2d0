"""What the lints share: the repository's files, and how findings are told."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def files(*suffixes):
    """Files that git tracks or would, as paths below the root; those that end in one of the suffixes."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    names = sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})
    return [name for name in names if name.endswith(suffixes or ("",))]


def end(findings, count):
    """Prints the findings, one a line; exits 1 where there are any. count: things looked at, which can't be 0."""
    for finding in findings:
        print(finding, file=sys.stderr)
    if not count:
        sys.exit("nothing to look at: the lint is broken")
    print(f"{count} looked at, {len(findings)} at fault")
    sys.exit(1 if findings else 0)
