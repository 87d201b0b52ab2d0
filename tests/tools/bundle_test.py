"""`batten inspect`, `verify` and `bench` on a bundle."""
import hashlib
import json
import shutil

from support import DECISION, SENTENCE, Case, batten


def inspect(*arguments):
    return json.loads(batten("inspect", SENTENCE, "--json", *arguments).stdout)


def supported_targets():
    return [target["name"] for target in inspect()["targets"] if target["runs_here"]]


class InspectTest(Case):
    def test_json_tells_what_fixes_the_result(self):
        found = inspect()
        self.assertEqual(hashlib.sha256((SENTENCE / "manifest.bin").read_bytes()).hexdigest(), found["manifest_sha256"])
        for key in ["format", "kernel_abi", "producer", "model", "targets", "lanes", "files", "bytes", "self_tests"]:
            self.assertIn(key, found)
        self.assertIn("22.", found["producer"]["llvm"])
        lanes = {lane["name"]: lane for lane in found["lanes"]}
        self.assertEqual(["embed", "encode"], list(lanes))
        self.assertEqual([{"name": "embedding", "rows": "seqs", "width": 32, "element": "f32"}], lanes["embed"]["outputs"])
        self.assertEqual((97, 2, 64), tuple(lanes["embed"][key] for key in ["ids_below", "types_below", "longest_sequence"]))
        self.assertEqual(["token_ids", "cu_seqlens", "token_types"], lanes["embed"]["reads"])
        notes = json.dumps(found["model"])
        for word in ["bert", "mean", "1e-12"]:
            self.assertIn(word, notes)

    def test_files_have_the_size_and_digest_told(self):
        for entry in inspect()["files"]:
            data = (SENTENCE / entry["path"]).read_bytes()
            self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (entry["bytes"], entry["sha256"]), entry["path"])

    def test_the_page_for_people_tells_the_same(self):
        page = self.assertOk(batten("inspect", SENTENCE)).stdout
        found = inspect()
        words = [found["manifest_sha256"], "embedding [seqs, 32] f32"] + [file["sha256"] for file in found["files"]]
        words += [plan["plan"] for lane in found["lanes"] for plan in lane["plans"]] + list(found["model"].values())
        for word in words:
            self.assertIn(word, page)

    def test_a_plan_lists_its_steps_with_operands_and_work(self):
        for lane in inspect()["lanes"]:
            for told in lane["plans"]:
                plan = inspect("--plan", told["plan"])
                self.assertEqual((told["steps"], told["arena_bytes"]), (len(plan["steps"]), plan["arena_bytes"]))
                self.assertGreaterEqual(plan["arena_bytes"], plan["arena_lower_bound_bytes"])
                for step in plan["steps"]:
                    self.assertGreaterEqual(len(step["operands"]), 1, step["label"])  # one: in place
                    self.assertIn(step["operands"][-1]["access"], ["write", "in place"])
                page = self.assertOk(batten("inspect", SENTENCE, "--plan", told["plan"])).stdout
                for step in plan["steps"]:
                    self.assertIn(step["label"], page)

    def test_every_lanes_plans_are_visible(self):
        found = json.loads(self.assertOk(batten("inspect", DECISION, "--json")).stdout)
        self.assertEqual(["decide", "encode"], [lane["name"] for lane in found["lanes"]])
        self.assertEqual(["token_ids", "cu_seqlens", "token_types", "markers", "cu_markers", "seq_types"], found["lanes"][0]["reads"])
        for name in ["decide-32x8x16", "encode-32x8x16"]:
            self.assertIn(name, self.assertOk(batten("inspect", DECISION, "--plan", name)).stdout)

    def test_memory_counts_tables_and_scratch(self):
        found = {threads: json.loads(self.assertOk(batten("inspect", SENTENCE, "--memory", "--json", "--threads", threads)).stdout)
                 for threads in [1, 3]}
        plans = [plan for lane in inspect()["lanes"] for plan in lane["plans"]]
        one, three = found[1], found[3]
        self.assertTrue(0 <= one["arena_bytes"] - max(plan["arena_bytes"] for plan in plans) < 4096)  # shared by all, whole pages
        scratch = max(plan["scratch_bytes_per_worker"] for plan in plans)
        self.assertTrue(scratch <= one["scratch_bytes"] < scratch + 4096)
        self.assertTrue(3 * scratch <= three["scratch_bytes"] < 3 * scratch + 4096)
        files = [file for file in inspect()["files"] if file["kind"] == "pack"]
        self.assertEqual(sum(file["bytes"] for file in files), one["weights_mapped_bytes"])
        for key in ["plan_tables_bytes", "batch_tables_bytes", "image_mapped_bytes"]:
            self.assertGreater(one[key], 0, key)
        page = self.assertOk(batten("inspect", SENTENCE, "--memory", "--threads", "1")).stdout
        for word in ["1 thread\n", "arena", "batch tables", "scratch", "weights", "code", "plans"]:
            self.assertIn(word, page)

    def test_an_unknown_plan_is_refused_with_the_known_ones(self):
        known = inspect()["lanes"][0]["plans"][0]["plan"]
        self.assertRefused(batten("inspect", SENTENCE, "--plan", "embed-1x1x1"), "'embed-1x1x1'", known)


class VerifyTest(Case):
    def test_a_sound_bundle_is_ok_and_computes_right_on_every_target(self):
        found = inspect()
        result = self.assertOk(batten("verify", SENTENCE, "--run", "--digest", found["manifest_sha256"].upper()))
        self.assertIn(f"{SENTENCE}: ok: ", result.stdout)
        self.assertGreaterEqual(found["self_tests"], 1)
        self.assertTrue(supported_targets())
        for target in supported_targets():
            self.assertIn(f"self-test 0 on {target}: ", result.stdout)

    def test_another_digest_is_refused_with_both(self):
        result = batten("verify", SENTENCE, "--digest", "0" * 64)
        self.assertRefused(result, SENTENCE)

    def test_a_flipped_bit_anywhere_is_refused_with_the_file(self):
        copy = self.folder / "copy.batten"
        shutil.copytree(SENTENCE, copy)
        self.assertOk(batten("verify", copy))
        for entry in inspect()["files"] + [{"path": "manifest.bin"}]:
            path = copy / entry["path"]
            whole = path.read_bytes()
            damaged = bytearray(whole)
            damaged[len(whole) * 3 // 4] ^= 4
            path.write_bytes(damaged)
            self.assertRefused(batten("verify", copy), copy, entry["path"])
            path.write_bytes(whole[:-1])
            self.assertRefused(batten("verify", copy), copy, entry["path"])
            path.unlink()
            self.assertRefused(batten("verify", copy), copy, entry["path"])
            path.write_bytes(whole)
        self.assertOk(batten("verify", copy))

    def test_files_that_others_may_write_are_refused_unless_allowed(self):
        copy = self.folder / "copy.batten"
        shutil.copytree(SENTENCE, copy)
        (copy / "manifest.bin").chmod(0o666)
        self.assertRefused(batten("verify", copy), copy, "manifest.bin")
        self.assertOk(batten("verify", copy, "--allow-writable-by-others"))

    def test_a_file_is_not_a_bundle(self):
        path = self.folder / "x.batten"
        path.write_text("x")
        self.assertRefused(batten("verify", path), path)


class BenchTest(Case):
    def test_json_has_a_row_a_batch_and_steps_that_sum_to_the_whole(self):
        result = self.assertOk(batten("bench", SENTENCE, "--json", "--steps", "--seconds", "0.02", "--threads", "1"))
        found = json.loads(result.stdout)
        self.assertGreater(found["peaks"]["fma_gflop_per_s"], 0)
        self.assertGreater(found["peaks"]["read_gbyte_per_s"], 0)
        self.assertEqual([8, 16, 32, 128], [row["tokens"] for row in found["batches"]][:4])
        for row in found["batches"]:
            self.assertLessEqual(row["p50_us"], row["p95_us"])
            self.assertLessEqual(row["p95_us"], row["p99_us"])
            self.assertGreater(row["flop"], 0)
            self.assertAlmostEqual(row["flop"], sum(step["flop"] for step in row["steps"]))
            self.assertAlmostEqual(row["bytes"], sum(step["bytes"] for step in row["steps"]))
            times = sum(step["us"] for step in row["steps"])
            self.assertAlmostEqual(row["profiled_mean_us"], times + row["outside_steps_us"], places=3)
        self.assertGreater(found["memory"]["arena_bytes"], 0)

    def test_batches_of_files_and_made_up_ones(self):
        path, inputs, _ = self.batch()
        page = self.assertOk(batten("bench", SENTENCE, "--batch", path, "--batch", path, "--seconds", "0.01")).stdout
        self.assertEqual(2, page.count(str(path)))
        for target in supported_targets():
            page = self.assertOk(batten("bench", SENTENCE, "--tokens", "24", "--seqs", "4", "--seconds", "0.01", "--target", target,
                                        "--lane", "encode", "--steps", "--map-image")).stdout
            self.assertIn(f"lane encode, target {target}", page)
            self.assertIn("whole run", page)

    def test_made_up_batches_have_the_markers_and_types_that_a_lane_reads(self):
        run = lambda *arguments: json.loads(self.assertOk(batten("bench", DECISION, "--json", "--steps", "--seconds", "0.01", *arguments)).stdout)
        for tokens, seqs, markers in [(30, 3, 12), (32, 8, 16), (3, 3, 3), (200, 2, 8)]:
            row = run("--tokens", tokens, "--seqs", seqs)["batches"][0]
            self.assertEqual((tokens, seqs, markers), (row["tokens"], row["seqs"], row["markers"]))
            self.assertGreater({step["step"]: step["us"] for step in row["steps"]}["gather"], 0)
        self.assertEqual(0, run("--tokens", 30, "--lane", "encode")["batches"][0]["markers"])

    def test_a_batch_that_fits_no_bucket_is_refused(self):
        self.assertRefused(batten("bench", SENTENCE, "--tokens", str(1 << 20), "--seqs", "20000"), "1048576 tokens")
