#!/usr/bin/env python3
"""Lines of JSON, as bench.py writes them, as Markdown.

    report.py FILE..

First the bars, each beside what was found; then the times that they come from.
"""
import json
import statistics
import sys
from pathlib import Path

import rounds

TITLES = {"batten": "Batten", "batten-loop": "Batten looped", "batten-1": "Batten, 1 thread", "onnxruntime": "ONNX Runtime",
          "openvino": "OpenVINO", "ctranslate2": "CTranslate2", "torch": "PyTorch", "kime-native": "kime, native build",
          "kime-default": "kime, default build"}
MODELS = {"minilm": "MiniLM", "bert-base": "BERT-base", "decision-base": "decision model"}
# (figure, model, threads, case) -> the least ratio of the best peer's time to ours.
BARS = {
    **{("latency", "minilm", 1, case): bar for case, bar in (("8", 1.28), ("16", 1.38), ("32", 1.25), ("128", 1.12), ("512", 1.11))},
    **{("latency", "minilm", 2, case): bar for case, bar in (("16", 1.4), ("128", 1.13), ("512", 1.11))},
    **{("latency", "bert-base", 1, case): bar for case, bar in (("8", 1.1), ("16", 1.15), ("128", 1.06), ("512", 1.05))},
    ("ragged64", "minilm", 1, "best"): 1.2, ("ragged64", "minilm", 1, "batch"): 2.9, ("ragged64", "bert-base", 1, "best"): 1.1,
    ("short64", "minilm", 1, "loop"): 2.0,
    **{("decision", "decision-base", 1, case): bar
       for case, bar in (("tokens-016", 1.6), ("tokens-128", 1.3), ("tokens-512", 1.5), ("ragged-016", 1.45))},
    **{("scaling", model, 2, case): 1.9 for model in ("minilm", "bert-base") for case in ("16", "32", "128", "512")},
}
STRATEGIES = {"batch": "padded batch", "sorted": "sorted into eights", "loop": "one by one", "best": "each peer's best"}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def ms(microseconds):
    value = microseconds / 1e3
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def megabytes(count):
    return f"{count / 1e6:.1f}"


class Times:
    """The pairs of one peer and Batten on one case."""

    def __init__(self, lines):
        self.program, self.lines = lines[0]["program"], lines
        self.ratios = rounds.ratios([(line["batten_us"], line["us"]) for line in lines])
        self.low, self.ratio, self.high = rounds.quartiles(self.ratios)
        self.peer = [time for line in lines for time in line["us"]]
        self.batten = [time for line in lines for time in line["batten_us"]]

    def text(self):
        return f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f})"


def paired(lines):
    """(figure, model, threads, case) -> {program: Times}"""
    groups = {}
    for line in lines:
        if "batten_us" in line:
            key = line["figure"], line["model"], line["threads"], line["case"]
            groups.setdefault(key, {}).setdefault(line["program"], []).append(line)
    return {key: {name: Times(own) for name, own in found.items()} for key, found in groups.items()}


def best(found):
    """The peer that is nearest to Batten, or furthest ahead."""
    return min(found.values(), key=lambda times: times.ratio)


def met(bar, times):
    fine = times.ratio >= bar and (bar >= 1.15 or times.low > 1)
    return "yes" if fine else "no"


def with_best_strategy(groups):
    """Adds to the ragged figures the case "best": each peer with its quickest strategy."""
    more = {}
    for (figure, model, threads, _), found in groups.items():
        if figure == "ragged64":
            for program, times in found.items():
                own = more.setdefault((figure, model, threads, "best"), {})
                if program not in own or times.ratio < own[program].ratio:
                    own[program] = times
    return {**groups, **more}


def bars_table(groups):
    rows = []
    for key, bar in BARS.items():
        if key in groups:
            figure, model, threads, case = key
            times = best(groups[key])
            name = f"{figure}, {STRATEGIES[case]}" if figure == "ragged64" else f"{figure} {case}"
            rows.append([MODELS[model], name, threads, TITLES[times.program], ms(statistics.median(times.peer)),
                         ms(statistics.median(times.batten)), times.text(), bar, met(bar, times)])
    return table(["model", "figure", "threads", "best peer", "its p50 ms", "Batten p50 ms", "ratio (quartiles)", "bar", "met"], rows)


def times_table(groups):
    rows = []
    for (figure, model, threads, case), found in groups.items():
        if case == "best":
            continue
        for times in found.values():
            line = times.lines[0]
            tokens, seconds = line["tokens"], [statistics.median(side) / 1e6 for side in (times.batten, times.peer)]
            cells = [ms(rounds.percentile(side, share)) for side in (times.batten, times.peer) for share in (0.5, 0.95)]
            rows.append([figure, MODELS[model], threads, STRATEGIES.get(case, case) if figure == "ragged64" else case, tokens,
                         TITLES[times.program], *cells[:2], *cells[2:], *(f"{tokens / side:.0f}" for side in seconds), times.text(),
                         len(times.ratios), f"{line['difference']:.0e}" if "difference" in line else ""])
    return table(["figure", "model", "threads", "case", "tokens", "peer", "Batten p50 ms", "p95", "peer p50 ms", "p95",
                  "Batten tokens/s", "peer tokens/s", "ratio (quartiles)", "rounds", "outputs differ by"], rows)


def peaks_text(lines):
    rows = []
    for threads in sorted({line["threads"] for line in lines}):
        own = [line for line in lines if line["threads"] == threads]
        names = [name for name, value in own[0].items() if "_per_s" in name and isinstance(value, (int, float))]
        rows.append([threads, *(f"{max(line[name] for line in own):.1f}" for name in names)])
    return table(["threads", *(name.replace("_per_s", "/s").replace("_", " ") for name in names)], rows)


def steps_table(lines):
    rows = []
    for key in dict.fromkeys((line["model"], line["threads"], line["case"]) for line in lines):
        own = [line for line in lines if (line["model"], line["threads"], line["case"]) == key]

        def share(kind):
            found = [line[kind]["flop"] / line[kind]["us"] / 1e3 / line["fma_gflop_per_s"] for line in own if line[kind]["us"]]
            low, middle, high = rounds.quartiles(found)
            return f"{middle:.1%} ({low:.1%} to {high:.1%})"

        outside = statistics.median(line["outside_us"] / line["whole_us"] for line in own)
        rows.append([MODELS[key[0]], *key[1:], own[0]["target"], share("linear"), share("attention"), f"{outside:.1%}"])
    return table(["model", "threads", "tokens", "target", "linear steps, of FMA peak", "attention, of FMA peak", "outside steps"], rows)


def start_table(lines):
    rows = []
    for key in dict.fromkeys((line["model"], line["program"]) for line in lines):
        found = [line["ns"] / 1e3 for line in lines if (line["model"], line["program"]) == key]
        low, middle, high = map(ms, rounds.quartiles(found))
        rows.append([MODELS[key[0]], TITLES[key[1]], f"{middle} ({low} to {high})"])
    return table(["model", "program", "start to first answer of 16 tokens, ms"], rows)


def memory_table(lines):
    rows = []
    for key in dict.fromkeys((line["model"], line["program"]) for line in lines):
        by_count = {line["processes"]: line["each"] for line in lines if (line["model"], line["program"]) == key}
        held = next((line["held"] for line in lines if line["model"] == key[0] and "held" in line), {})
        one, eight = by_count[1][0], by_count[8]
        adds = statistics.mean(each["dirty_bytes"] + each["clean_bytes"] for each in eight)
        rows.append([MODELS[key[0]], TITLES[key[1]], megabytes(one["dirty_bytes"]), megabytes(one["clean_bytes"] + one["shared_bytes"]),
                     megabytes(adds), megabytes(sum(each["pss_bytes"] for each in eight)),
                     megabytes(held["arena_bytes"]) if key[1] == "batten" else ""])
    return table(["model", "program", "one process: private, written MB", "mapped from files MB", "what one of eight has to itself MB",
                  "all eight MB", "arena MB"], rows)


def size_table(lines):
    return table(["program", "runtime libraries, MB"], [[TITLES[line["program"]], f"{line['bytes'] / 1e6:.2f}"] for line in lines])


def compile_table(lines):
    seconds = rounds.quartiles([line["ns"] / 1e9 for line in lines])
    peak = statistics.median(line["peak_rss_bytes"] for line in lines)
    return table(["compile of MiniLM", "buckets", "seconds", "peak memory MB", "packs MB"],
                 [["all targets", lines[0]["buckets"], f"{seconds[1]:.2f} ({seconds[0]:.2f} to {seconds[2]:.2f})", megabytes(peak),
                   megabytes(lines[0]["pack_bytes"])]])


def head(lines):
    versions = {}
    for line in lines:
        for name, version in (("batten", line["commit"]), (line["program"], line.get("version"))):
            if version:
                versions.setdefault(name, []).append(str(version))
    words = ", ".join(f"{TITLES[name]} {' and '.join(dict.fromkeys(found))}" for name, found in versions.items())
    dates = sorted(line["date"] for line in lines)
    machines = " and ".join(dict.fromkeys(line["machine"] for line in lines))
    return f"{machines}; {dates[0]} to {dates[-1]}; {words}; {' and '.join(dict.fromkeys(line['precision'] for line in lines))}."


def markdown(lines):
    """The page of all lines."""
    if not lines:
        return "nothing was measured"
    groups = with_best_strategy(paired(lines))
    parts = [head(lines)]
    if any(key in groups for key in BARS):
        parts += ["## Bars", bars_table(groups)]
    for figure, title, make in (("peaks", "Peaks of this machine", peaks_text), ("steps", "Shares of the peak", steps_table),
                                ("start", "Start", start_table), ("memory", "Memory", memory_table), ("size", "Size", size_table),
                                ("compile", "Compile", compile_table)):
        own = [line for line in lines if line["figure"] == figure]
        parts += [f"## {title}", make(own)] if own else []
    if groups:
        parts += ["## Times", times_table(groups)]
    return "\n\n".join(parts)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    lines = [json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]
    print(markdown(lines))


if __name__ == "__main__":
    main()
