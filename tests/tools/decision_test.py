"""A compiled decision model through the programs: markers and sequence types from lines and files, self-tests, bench, compare."""
import json
import shutil
import tempfile
from pathlib import Path

from support import GOLDENS, Case, as_lines, batten, compiler, golden_case, read_safetensors, write_safetensors

MODEL = GOLDENS / "laya-tiny-a"


class DecisionModelTest(Case):
    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="batten-test-"))
        cls.bundle = cls.work / "decision.batten"
        cls.compiled = compiler("compile", MODEL, "-o", cls.bundle, "--quiet")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.work)

    def setUp(self):
        super().setUp()
        self.assertOk(self.compiled)

    def cases(self):
        """The golden's batches: name, inputs, outputs, path of a batch file."""
        for case in sorted({name.split("/")[0] for name in read_safetensors(MODEL / "cases.safetensors")}):
            inputs, outputs = golden_case(MODEL, case)
            inputs = {name: tensor for name, tensor in inputs.items() if "/" not in name}
            path = self.folder / f"{case}.safetensors"
            write_safetensors(path, inputs)
            yield case, inputs, outputs, path

    def assertNear(self, wanted, found, name):
        """As the golden states it: a purely relative bound can't hold where an output is near zero."""
        self.assertEqual(wanted[0], found[0], name)
        for a, b in zip(wanted[1], found[1]):
            self.assertLessEqual(abs(a - b), 1e-5 * abs(a) + 5e-6, name)

    def test_outputs_match_the_reference_in_both_lanes(self):
        answer = self.folder / "out.safetensors"
        for case, inputs, wanted, path in self.cases():
            for lane, names in [("decide", ["logits", "act"]), ("embed", ["pooled"])]:
                given = path
                if lane == "embed":  # its buckets hold no markers
                    given = self.folder / "bare.safetensors"
                    write_safetensors(given, {name: inputs[name] for name in ["token_ids", "cu_seqlens"]})
                self.assertOk(batten("run", self.bundle, "--lane", lane, "--batch", given, "-o", answer))
                found = read_safetensors(answer)
                self.assertEqual(names, list(found))
                for name in names:
                    self.assertNear(wanted[name], found[name], f"{case} {name}")

    def test_a_trace_matches_the_reference_after_each_stage(self):
        inputs, _ = golden_case(MODEL, "single")
        path = self.folder / "in.safetensors"
        write_safetensors(path, {name: tensor for name, tensor in inputs.items() if "/" not in name})
        self.assertOk(batten("run", self.bundle, "--batch", path, "--trace", self.folder))
        steps = {name[4:]: tensor for name, tensor in read_safetensors(self.folder / "decide.safetensors").items()}
        wanted = read_safetensors(MODEL / "cases.safetensors")
        stages = {"embed.norm": "embed", "norm": "final_norm", "type": "add_type", "features": "act_features"}
        stages |= {f"l{layer}.down": f"encoder.{layer}" for layer in range(4)} | {f"h{layer}.down": f"head.{layer}" for layer in range(2)}
        for label, stage in stages.items():
            self.assertClose(wanted[f"single/trace/{stage}"], steps[label], stage)

    def test_lines_give_the_bits_that_batches_give(self):
        for case, inputs, _, path in self.cases():
            with self.subTest(case):
                batch = self.assertOk(batten("run", self.bundle, "--batch", path)).stdout
                self.assertEqual(batch, self.assertOk(batten("run", self.bundle, "--jsonl", stdin=as_lines(inputs))).stdout)
                cuts = inputs["cu_markers"][1]
                counts = [end - begin for begin, end in zip(cuts, cuts[1:])]
                self.assertEqual(counts, [len(json.loads(line)["logits"]) for line in batch.splitlines()])
                self.assertTrue(all(len(json.loads(line)["act"]) == 2 for line in batch.splitlines()))

    def test_lanes_share_the_weights_and_need_no_markers_where_they_read_none(self):
        found = json.loads(self.assertOk(batten("inspect", self.bundle, "--json")).stdout)
        reads = {lane["name"]: lane["reads"] for lane in found["lanes"]}
        self.assertEqual(["token_ids", "cu_seqlens", "markers", "cu_markers", "seq_types"], reads["decide"])
        self.assertEqual(["token_ids", "cu_seqlens"], reads["embed"])
        self.assertEqual(1, len(self.assertOk(batten("run", self.bundle, "--lane", "embed", "--jsonl", stdin='{"ids": [1, 2]}\n')).stdout.splitlines()))

    def test_self_tests_pass_and_cover_every_lane(self):
        page = self.assertOk(batten("verify", self.bundle, "--run")).stdout
        for lane in ["decide", "embed", "encode"]:
            self.assertIn(f"lane {lane} gives", page)

    def test_bench_measures_the_steps_that_count_markers(self):
        row = json.loads(self.assertOk(batten("bench", self.bundle, "--json", "--steps", "--seconds", "0.02", "--tokens", "32", "--seqs", "4")).stdout)["batches"][0]
        self.assertEqual(16, row["markers"])
        times = {step["step"]: step["us"] for step in row["steps"]}
        for label in ["markers", "scorer", "features", "act"]:
            self.assertGreater(times[label], 0, label)

    def test_plans_count_the_keys_that_windows_leave(self):
        name = json.loads(self.assertOk(batten("inspect", self.bundle, "--json")).stdout)["lanes"][0]["plans"][0]["plan"]
        plan = json.loads(self.assertOk(batten("inspect", self.bundle, "--plan", name, "--json")).stdout)
        windows = set()
        for step in plan["steps"]:
            if step["domain"] == "tasks":
                tokens = plan["bucket"]["tokens"]
                seen = step["pair_window"] or tokens
                pairs = sum(abs(query - key) < seen for query in range(tokens) for key in range(tokens))
                self.assertEqual(step["flop_per_row"] * tokens + step["flop_per_pair"] * pairs, step["flop"])
                windows.add(step["pair_window"])
        self.assertEqual({0, 9}, windows)

    def test_trace_and_compare_see_every_step(self):
        for case, inputs, _, path in self.cases():
            trace = json.loads(self.assertOk(batten("compare", self.bundle, self.bundle, "--batch", path, "--trace", "--bits", "--json")).stdout)["batches"][0]["trace"]
            self.assertTrue(trace["same_bits"])
            self.assertOk(batten("run", self.bundle, "--batch", path, "--trace", self.folder / case))
            steps = read_safetensors(self.folder / case / "decide.safetensors")
            self.assertEqual(trace["steps"], len(steps))
            shapes = {name[4:]: shape for name, (shape, _) in steps.items()}
            self.assertEqual(len(inputs["markers"][1]), shapes["markers"][0])
            self.assertEqual(len(inputs["seq_types"][1]), shapes["features"][0])
