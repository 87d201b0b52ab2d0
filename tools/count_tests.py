#!/usr/bin/env python3
"""Sums JUnit reports of ctest and lit: count_tests.py FOLDER [FAILED_STEP..].

Prints a line a report, what was skipped and why, what failed, and last the one line "N passed, N failed". Each failed step
counts as one failure. The exit status is 1 where anything failed or nothing passed. A test that ctest did not run for
any reason but its own word that it skips (an executable that was not built) is a failure.
"""
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def outcome(case):
    """("passed" | "skipped" | "failed", why)"""
    skipped = case.find("skipped")
    if case.get("status") is None:  # lit's report, which marks only what isn't passed
        return ("failed" if case.find("failure") is not None else "skipped" if skipped is not None else "passed"), ""
    if case.get("status") == "run":
        return "passed", ""
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped", skipped.get("message")
    return "failed", skipped.get("message", "") if skipped is not None else ""


def main(folder, steps):
    total = {"passed": 0, "failed": len(steps), "skipped": 0}
    lines = [f"failed step: {step}" for step in steps]
    for report in sorted(Path(folder).glob("*.xml")):
        count = dict.fromkeys(total, 0)
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            result, why = outcome(case)
            count[result] += 1
            if result != "passed":
                lines.append(f"{result}: {report.stem}: {case.get('name')} {why}".rstrip())
        print(f"{report.stem}: " + ", ".join(f"{number} {result}" for result, number in count.items()))
        for result, number in count.items():
            total[result] += number
    print("\n".join(lines + [f"{total['passed']} passed, {total['failed']} failed"]))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
