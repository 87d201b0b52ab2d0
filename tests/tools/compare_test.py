"""`batten compare`: differences of outputs against thresholds, and the first step that differs."""
import json

from support import CHANGED, DECISION, GOLDENS, PARTED, RENAMED, SENTENCE, Case, batten, compiler, read_safetensors, write_safetensors
from bundle_test import supported_targets


class CompareTest(Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "in.safetensors"
        write_safetensors(self.path, {"token_ids": ("I32", [1, 2, 3, 4, 5, 6, 7]), "cu_seqlens": ("I32", [0, 3, 3, 7]),
                                      "markers": ("I32", [2, 0, 3]), "cu_markers": ("I32", [0, 2, 2, 3]), "seq_types": ("I32", [2, 0, 1])})

    def compare(self, *arguments, status=0):
        result = batten("compare", "--batch", self.path, "--json", *arguments)
        self.assertEqual(status, result.returncode, result.stderr)
        return json.loads(result.stdout)

    def outputs(self, bundle):
        answer = self.folder / "out.safetensors"
        self.assertOk(batten("run", bundle, "--batch", self.path, "-o", answer))
        return read_safetensors(answer)

    def test_a_bundle_equals_itself_in_bits(self):
        found = self.compare(DECISION, DECISION, "--bits", "--trace", "--max-abs", "0", "--min-cosine", "1", "--min-argmax", "1")
        self.assertEqual(["gathered", "decision", "embedding"], [row["output"] for row in found["outputs"]])
        for row in found["outputs"]:
            self.assertEqual((3, 20, 0, 0, 0, 0, 0, 1, 1), tuple(row[key] for key in [
                "rows", "width", "bits_differ", "not_finite", "max_abs", "mean_abs", "max_rel", "least_cosine", "argmax_agreement"]))
        self.assertTrue(found["passed"])
        self.assertEqual({"steps": 10, "same_bits": True}, found["batches"][0]["trace"])

    def test_figures_are_those_of_the_outputs(self):
        a, b = self.outputs(DECISION), self.outputs(CHANGED)
        for row in self.compare(DECISION, CHANGED)["outputs"]:
            before, after = a[row["output"]][1], b[row["output"]][1]
            apart = [abs(x - y) for x, y in zip(before, after)]
            self.assertAlmostEqual(max(apart), row["max_abs"])
            self.assertAlmostEqual(sum(apart) / len(apart), row["mean_abs"])
            self.assertAlmostEqual(max(apart) / max(abs(x) for x in before), row["max_rel"])
            self.assertEqual(sum(x != y for x, y in zip(before, after)), row["bits_differ"])
            cosines = []
            for r in range(3):
                x, y = before[20 * r:20 * r + 20], after[20 * r:20 * r + 20]
                norm = (sum(v * v for v in x) * sum(v * v for v in y)) ** 0.5
                cosines.append(sum(v * w for v, w in zip(x, y)) / norm if norm else 1)
            self.assertAlmostEqual(min(cosines), row["least_cosine"])

    def test_without_thresholds_it_reports_and_with_them_it_is_a_gate(self):
        self.assertFalse(any(row["bits_differ"] == 0 for row in self.compare(DECISION, CHANGED)["outputs"]))
        worst = max(row["max_abs"] for row in self.compare(DECISION, CHANGED)["outputs"])
        self.compare(DECISION, CHANGED, "--max-abs", str(worst * 1.01), "--min-cosine", "0.99", "--max-mean", "0.1", "--max-rel", "0.1")
        for flag, value, word in [("--max-abs", worst / 1.01, "max abs"), ("--max-mean", 1e-6, "mean abs"), ("--max-rel", 1e-6, "max rel"),
                                  ("--min-cosine", 0.9999999, "least cosine"), ("--bits", None, "differ in bits")]:
            with self.subTest(flag):
                value = [] if value is None else [str(value)]
                result = batten("compare", DECISION, CHANGED, "--batch", self.path, flag, *value)
                self.assertRefused(result, "output ", word, "wanted", stdout=None)
                self.assertIn("decision", result.stdout)  # the report comes all the same
                found = self.compare(DECISION, CHANGED, flag, *value, status=1)
                self.assertFalse(found["passed"])

    def test_several_batches_are_summed_up(self):
        second = self.folder / "second.safetensors"
        write_safetensors(second, {"token_ids": ("I32", [9]), "cu_seqlens": ("I32", [0, 1])})
        found = self.compare(DECISION, CHANGED, "--batch", second, "--trace")
        self.assertEqual([3, 4, 4], [row["rows"] for row in found["outputs"]])
        self.assertEqual([str(self.path), str(second)], [batch["batch"] for batch in found["batches"]])
        self.assertTrue(all("first" in batch["trace"] for batch in found["batches"]))

    def test_trace_names_the_first_step_that_differs_with_place_and_values(self):
        first = self.compare(DECISION, CHANGED, "--trace")["batches"][0]["trace"]["first"]
        self.assertEqual(("widen", 2, 2, "tokens", 0, 3, 0, 0), tuple(first[key] for key in [
            "label", "step_a", "step_b", "rows_a", "row", "column", "sequence", "index"]))
        self.assertEqual((7, 280), (first["bits_differ"], first["elements"]))  # one column of seven rows of 40
        traces = []
        for bundle in [DECISION, CHANGED]:
            folder = self.folder / bundle.stem
            self.assertOk(batten("run", bundle, "--batch", self.path, "--trace", folder))
            traces.append(read_safetensors(folder / "decide.safetensors"))
        for name in ["000 embed", "001 positions"]:
            self.assertEqual(traces[0][name], traces[1][name])
        a, b = (trace["002 widen"][1] for trace in traces)
        self.assertAlmostEqual(a[3], float(first["a"]))
        self.assertAlmostEqual(b[3], float(first["b"]))
        self.assertAlmostEqual(abs(a[3] - b[3]), first["apart"])
        self.assertAlmostEqual(max(abs(x - y) for x, y in zip(a, b)), first["max_abs"])
        page = self.assertOk(batten("compare", DECISION, CHANGED, "--batch", self.path, "--trace")).stdout
        self.assertIn("the first step that differs is widen, step 2 of A", page)
        self.assertIn(f"row 0 (token 0 of sequence 0), column 3: {first['a']} ({first['bits_a']}) in A, {first['b']} ({first['bits_b']}) in B", page)

    def test_plans_whose_steps_part_are_matched_by_label(self):
        trace = self.compare(DECISION, PARTED, "--trace", "--bits")["batches"][0]["trace"]
        self.assertEqual({"steps": 9, "same_bits": True, "parts_at": {"step": 3, "a": "mix", "b": "blend"}}, trace)
        page = self.assertOk(batten("compare", DECISION, PARTED, "--batch", self.path, "--trace")).stdout
        self.assertIn("plans part at step 3: A has mix, B has blend", page)

    def test_targets_of_one_bundle(self):
        found = self.compare(DECISION, DECISION, "--target", "base", "--target-b", "twin", "--trace", "--bits")
        self.assertEqual(["base", "twin"], [found[side]["target"] for side in "ab"])
        found = self.compare(DECISION, DECISION, "--target", "twin")
        self.assertEqual(["twin", "twin"], [found[side]["target"] for side in "ab"])
        path, _, _ = self.batch()
        targets = supported_targets()
        for target in targets[1:]:  # x86-64-v3 against x86-64-v4 where both run
            result = batten("compare", SENTENCE, SENTENCE, "--target", targets[0], "--target-b", target, "--batch", path, "--trace", "--bits")
            self.assertIn("steps match and give the same bits", self.assertOk(result).stdout)

    def test_compiled_bundles_with_other_weights_differ_where_they_do(self):
        model = self.folder / "model"
        model.mkdir()
        for file in (GOLDENS / "bert").iterdir():
            (model / file.name).write_bytes(file.read_bytes())
        data = bytearray((model / "model.safetensors").read_bytes())
        size = int.from_bytes(data[:8], "little")
        name = "encoder.layer.1.output.dense.bias"
        entry = next(entry for key, entry in json.loads(data[8:8 + size]).items() if key.endswith(name))
        at = 8 + size + entry["data_offsets"][0]
        data[at + 3] ^= 0x80  # the sign of the first bias
        (model / "model.safetensors").write_bytes(data)
        bundles = [self.folder / "a.batten", self.folder / "b.batten"]
        for source, bundle in zip([GOLDENS / "bert", model], bundles):
            self.assertOk(compiler("compile", source, "-o", bundle, "--quiet"))
        path, inputs, _ = self.batch("ragged", GOLDENS / "bert")
        found = json.loads(self.assertOk(batten("compare", *bundles, "--batch", path, "--trace", "--json")).stdout)
        first = found["batches"][0]["trace"]["first"]
        self.assertEqual(("l1.down", 0, 0), (first["label"], first["row"], first["column"]))
        self.assertEqual(inputs["cu_seqlens"][1][-1], first["bits_differ"])  # the bias's column, in every row

    def test_what_cannot_be_compared_is_refused_with_both(self):
        for wanted, arguments in {
                "has no output gathered": [DECISION, RENAMED],
                "'embed'": [DECISION, SENTENCE, "--lane", "embed"],
                "x86-128": [DECISION, DECISION, "--target-b", "x86-128"],
                "SHA-256": [DECISION, DECISION, "--digest-b", "0" * 64],
        }.items():
            self.assertRefused(batten("compare", *arguments, "--batch", self.path), wanted)
        self.assertRefused(batten("compare", DECISION, DECISION, "--batch", self.folder / "none"), "none", "No such file")
