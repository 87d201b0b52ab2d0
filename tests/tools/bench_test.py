"""tools/bench/peers: what its cases are and what its report makes of lines. Nothing is measured here."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools/bench/peers"))

import cases
import machine
import report
import rounds


def pair(program, index, batten, theirs, **more):
    return {"figure": "latency", "model": "minilm", "threads": 1, "case": "128", "program": program, "round": index,
            "batten_us": batten, "us": theirs, "tokens": 128, "date": "2026-01-01", "machine": "a CPU", "commit": "abc",
            "precision": "f32", **more}


class BenchCases(unittest.TestCase):
    def test_sequences_repeat_and_differ(self):
        lengths = cases.ragged_lengths()
        self.assertEqual(lengths, cases.ragged_lengths())
        self.assertEqual(len(lengths), 64)
        self.assertTrue(all(4 <= length <= 512 for length in lengths))
        self.assertTrue(20 <= sorted(lengths)[32] <= 50, "the median is about 32")
        made = cases.sequences(lengths, seed=64)
        self.assertEqual(list(map(len, made)), lengths)
        self.assertEqual(made, cases.sequences(lengths, seed=64))
        self.assertTrue(all(5 <= length <= 12 for length in cases.short_lengths()))

    def test_strategies_hold_all_sequences_once(self):
        made = cases.sequences(cases.ragged_lengths(), seed=64)
        for name, strategy in cases.STRATEGIES.items():
            groups = strategy(made)
            self.assertEqual(sorted(cases.order(made, groups)), list(range(64)), name)
            self.assertEqual(cases.tokens(groups), sum(map(len, made)), name)
        self.assertEqual([len(group) for group in cases.sorted_eights(made)], [8] * 8)
        padded = {name: cases.padded_tokens(strategy(made)) for name, strategy in cases.STRATEGIES.items()}
        self.assertEqual(padded["batch"], 64 * max(map(len, made)))
        self.assertEqual(padded["loop"], sum(map(len, made)))
        self.assertTrue(padded["loop"] < padded["sorted"] < padded["batch"])

    def test_bars_name_figures(self):
        names = set(cases.figures())
        for figure, model, threads, case in report.BARS:
            if case != "best":
                self.assertIn(f"{figure}/{model}/{threads}/{case}", names)


class BenchRounds(unittest.TestCase):
    def test_quartiles_and_percentiles(self):
        self.assertEqual(rounds.quartiles([5]), (5, 5, 5))
        self.assertEqual(rounds.quartiles([4, 1, 3, 2, 5]), (2, 3, 4))
        self.assertEqual(rounds.percentile(range(100), 0.95), 95)
        self.assertEqual(rounds.percentile([7, 3], 0.95), 7)

    def test_each_peer_is_paired_in_turning_order(self):
        taken = []

        def take(name):
            taken.append(name)
            return [len(taken)]

        found = list(rounds.measure(2, ["a", "b"], take))
        self.assertEqual(taken, ["batten", "a", "batten", "b", "b", "batten", "a", "batten"])
        self.assertEqual(found[3], (1, "a", {"a": [7], "batten": [8]}))


class BenchReport(unittest.TestCase):
    def test_ratio_is_of_pairs_and_the_best_peer_counts(self):
        lines = [pair("openvino", n, [100 * n, 100 * n], [130 * n, 130 * n], version="2.0") for n in (1, 2, 3)]
        lines += [pair("ctranslate2", n, [100 * n], [120 * n]) for n in (1, 2, 3)]
        page = report.markdown(lines)
        self.assertIn("OpenVINO 2.0", page)
        self.assertIn("| MiniLM | latency 128 | 1 | CTranslate2 | 0.24 | 0.20 | 1.20 (1.20 to 1.20) | 1.12 | yes |", page)

    def test_a_small_bar_wants_its_lower_quartile_above_one(self):
        lines = [pair("openvino", n, [100], [theirs]) for n, theirs in enumerate((90, 95, 120, 125, 130))]
        self.assertIn("1.20 (0.95 to 1.25) | 1.12 | no |", report.markdown(lines))

    def test_nothing_measured(self):
        self.assertEqual(report.markdown([]), "nothing was measured")


class BenchMachine(unittest.TestCase):
    def test_names_the_cpu_and_what_it_has(self):
        info = "model name\t: A CPU\ncpu family\t: 25\nmodel\t\t: 1\nflags\t\t: sse2 avx2 avx512f\n"
        found = machine.describe(info)
        self.assertTrue(found.startswith("A CPU, ") and found.endswith("family 25 model 1, avx2 avx512f"), found)


if __name__ == "__main__":
    unittest.main()
