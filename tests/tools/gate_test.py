"""The gate of `batten compile`: what it measures, what it keeps in the bundle and what it refuses."""
import json

from support import GOLDENS, SENTENCE_MODEL, Case, batten, compiler, write_safetensors


class GateTest(Case):
    def setUp(self):
        super().setUp()
        self.bundle = self.folder / "x.batten"
        self.path, inputs, _ = self.batch()
        self.sizes = {"embed": len(inputs["cu_seqlens"][1]) - 1, "encode": len(inputs["token_ids"][1])}

    def compile(self, *arguments, model=SENTENCE_MODEL):
        return compiler("compile", model, "-o", self.bundle, *arguments)

    def agreement(self):
        return json.loads(self.assertOk(batten("inspect", self.bundle, "--json")).stdout)["agreement"]

    def test_f32_agrees_with_itself_and_what_was_measured_is_kept(self):
        result = self.assertOk(self.compile("--batch", self.path, "--batch", self.path, "--max-abs", "0", "--min-cosine", "1"))
        self.assertIn("batten: gate: 2 batches\n", result.stderr)
        self.assertIn("agreement with f32\n", result.stderr)
        rows = self.agreement()
        self.assertEqual([("embed", "embedding"), ("encode", "hidden"), ("encode", "pooled")], [(row["lane"], row["output"]) for row in rows])
        for row in rows[:2]:
            self.assertEqual(("f32", "f32", 2, 2 * self.sizes[row["lane"]], 0, 0, 1, 1), tuple(row[key] for key in [
                "weights", "math", "batches", "rows", "max_abs", "mean_abs", "least_cosine", "argmax_agreement"]))
            self.assertEqual({"max_abs": 0, "min_cosine": 1}, row["thresholds"])
        page = self.assertOk(batten("inspect", self.bundle)).stdout
        self.assertRegex(page, r"(?m)^agreement with f32, as the compile's gate measured it\n  lane +output +weights")
        self.assertIn("held: max_abs 0, min_cosine 1\n", page)
        self.assertOk(batten("verify", self.bundle, "--run"))

    def test_other_weights_are_compared_with_f32(self):
        for choice, exact in [(["--weights", "f16"], False), (["--math", "i8"], False), (["--weights", "f32"], True)]:
            with self.subTest(choice):
                self.assertOk(self.compile("--quiet", *choice))
                plain = self.folder / "f32.batten"
                self.assertOk(compiler("compile", SENTENCE_MODEL, "-o", plain, "--quiet"))
                wanted = json.loads(self.assertOk(batten("compare", plain, self.bundle, "--batch", self.path, "--json")).stdout)["outputs"]
                before = (self.bundle / "manifest.bin").read_bytes()
                self.assertEqual(exact, wanted[0]["max_abs"] == 0)
                self.assertOk(self.compile("--quiet", *choice, "--batch", self.path, "--max-abs", str(wanted[0]["max_abs"]), "--lane", "embed"))
                self.assertNotEqual(before, (self.bundle / "manifest.bin").read_bytes())
                row, = self.agreement()
                self.assertEqual(wanted[0], {key: row[key] for key in wanted[0]})
                self.assertEqual(choice[1], row["math" if choice[0] == "--math" else "weights"])

    def test_a_broken_threshold_leaves_the_old_bundle_and_is_named(self):
        self.assertOk(self.compile("--quiet"))
        before = (self.bundle / "manifest.bin").read_bytes()
        result = self.compile("--quiet", "--math", "i8", "--batch", self.path, "--max-abs", "1e-9", "--lane", "embed")
        self.assertRefused(result, "gate: lane embed, output embedding: max abs ", ", at most 1e-09 wanted; most in ", self.path)
        result = self.compile("--quiet", "--math", "i8", "--batch", self.path, "--min-cosine", "1")
        self.assertRefused(result, "gate: lane encode, output ", "least cosine 0.", ", at least 1.0000000 wanted; least in ", self.path)
        self.assertEqual(before, (self.bundle / "manifest.bin").read_bytes())
        self.assertEqual({"x.batten", self.path.name}, {path.name for path in self.folder.iterdir()})

    def test_the_same_inputs_give_the_same_bytes(self):
        manifests = []
        for name in ["a", "b"]:
            other = self.folder / f"{name}.safetensors"
            other.write_bytes(self.path.read_bytes())
            self.assertOk(self.compile("--batch", other, "--min-argmax", "0.5"))
            manifests.append((self.bundle / "manifest.bin").read_bytes())
        self.assertEqual(*manifests)
        self.assertNotIn(str(self.folder).encode(), manifests[0])

    def test_a_spec_has_a_gate_and_options_go_before_it(self):
        folder = self.folder / "spec"
        self.assertOk(compiler("import", SENTENCE_MODEL, "-o", folder))
        spec = folder / "batten.toml"
        text = spec.read_text()
        (folder / "in.safetensors").write_bytes(self.path.read_bytes())
        spec.write_text(text + '\n[gate]\nbatch = "in.safetensors"\nlane = "embed"\nmin_cosine = 0.25\nmax_abs = 0.5\n')
        self.assertOk(self.compile(model=spec))
        self.assertEqual([("embed", 1, {"max_abs": 0.5, "min_cosine": 0.25})], [(row["lane"], row["batches"], row["thresholds"]) for row in self.agreement()])
        self.assertOk(self.compile("--max-abs", "2", "--lane", "encode", model=spec))
        self.assertEqual([("encode", {"max_abs": 2, "min_cosine": 0.25})] * 2, [(row["lane"], row["thresholds"]) for row in self.agreement()])
        spec.write_text(text + "\n[gate]\nmin_cosine = 0.5\n")
        self.assertRefused(self.compile("--quiet", model=spec), f"{spec}:", ": [gate]: no batch to measure with")
        spec.write_text(text + "\n[gate]\nmin_cosin = 0.5\n")
        self.assertRefused(self.compile("--quiet", model=spec), "unknown key", "min_cosine")

    def test_what_cannot_be_measured_leaves_the_old_bundle(self):
        self.assertOk(self.compile("--quiet"))
        before = (self.bundle / "manifest.bin").read_bytes()
        large = self.folder / "large.safetensors"
        write_safetensors(large, {"token_ids": ("I32", [1] * 5000), "cu_seqlens": ("I32", [0, 10] + [5000])})
        for words, arguments in {("none.safetensors", "No such file"): ["--batch", self.folder / "none.safetensors"],
                                 (large, "lane embed"): ["--batch", large],
                                 ("gate: has no lane 'nix'", "embed, encode"): ["--batch", self.path, "--lane", "nix"],
                                 ("no batch to measure with",): ["--min-cosine", "0.5"]}.items():
            with self.subTest(words):
                self.assertRefused(self.compile("--quiet", *arguments), *words)
                self.assertEqual(before, (self.bundle / "manifest.bin").read_bytes())

    def test_a_target_that_does_not_run_here_is_not_passed(self):
        self.assertOk(self.compile("--quiet"))
        targets = json.loads(self.assertOk(batten("inspect", self.bundle, "--json")).stdout)["targets"]
        missing = [target["name"] for target in targets if not target["runs_here"]]
        if not missing:
            self.skipTest("this machine runs every target")
        self.assertRefused(self.compile("--quiet", "--target", missing[0], "--batch", self.path),
                           f"gate: nothing measured, since this machine runs no target of the bundle: {missing[0]}")

    def test_lanes_are_given_what_they_read(self):
        """A decision model's lanes: embed reads no markers and its stage has no room for any."""
        model = GOLDENS / "laya-tiny-a"
        path = self.folder / "decide.safetensors"
        write_safetensors(path, {"token_ids": ("I32", [5, 80, 13, 7]), "cu_seqlens": ("I32", [0, 4]), "markers": ("I32", [2, 3]),
                                 "cu_markers": ("I32", [0, 2]), "seq_types": ("I32", [1])})
        self.assertOk(self.compile("--batch", path, model=model))
        self.assertEqual({("decide", "logits", 2), ("decide", "act", 1), ("embed", "pooled", 1), ("encode", "hidden", 4)},
                         {(row["lane"], row["output"], row["rows"]) for row in self.agreement()})
        self.assertTrue(all(row["bits_differ"] == 0 for row in self.agreement()))

    def test_wrong_thresholds_are_wrong_usage(self):
        for flag, value in [("--max-abs", "-1"), ("--min-cosine", "1.5"), ("--min-argmax", "x")]:
            self.assertRefused(self.compile(flag, value), flag, status=2)
        self.assertFalse(self.bundle.exists())
