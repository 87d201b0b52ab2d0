"""`batten run`: batches and lines in, tensors and lines out."""
import json
import os
import select
import signal
import subprocess

from support import (BATTEN, DECISION, SENTENCE, Case, as_lines, batten, read_metadata, read_safetensors, run,
                     write_safetensors)


class RunBatchTest(Case):
    def run_file(self, path, *arguments):
        answer = self.folder / "out.safetensors"
        self.assertOk(batten("run", SENTENCE, "--batch", path, "-o", answer, *arguments))
        return read_safetensors(answer)

    def test_outputs_match_the_reference_in_both_lanes(self):
        for case in ["short", "ragged", "empty_sequences", "token_types", "max_length"]:
            path, _, wanted = self.batch(case)
            found = self.run_file(path)
            self.assertEqual(["embedding"], list(found))
            self.assertClose(wanted["embedding"], found["embedding"], case)
            found = self.run_file(path, "--lane", "encode")
            self.assertClose(wanted["hidden"], found["hidden"], case)

    def test_threads_and_integer_width_do_not_change_a_bit(self):
        path, inputs, _ = self.batch()
        wide = self.folder / "wide.safetensors"
        write_safetensors(wide, {name: ("I64", values) for name, (_, values) in inputs.items()})
        answers = [self.run_file(path, "--threads", threads) for threads in [1, 2, 3]] + [self.run_file(wide)]
        for answer in answers[1:]:
            self.assertEqual(answers[0], answer)

    def test_without_an_output_file_it_prints_a_line_a_sequence(self):
        path, inputs, wanted = self.batch("token_types")
        lines = self.assertOk(batten("run", SENTENCE, "--batch", path)).stdout.splitlines()
        rows = [json.loads(line)["embedding"] for line in lines]
        self.assertClose(wanted["embedding"], ([len(rows), len(rows[0])], sum(rows, [])))

    def test_an_empty_batch_gives_no_rows(self):
        path = self.folder / "empty.safetensors"
        write_safetensors(path, {"token_ids": ("I32", []), "cu_seqlens": ("I32", [0])})
        self.assertEqual([0, 32], self.run_file(path)["embedding"][0])

    def test_bad_batches_are_refused_with_the_reason(self):
        _, inputs, _ = self.batch("short")
        length = len(inputs["token_ids"][1])
        changes = {
            "is missing": {"cu_seqlens": None},
            "unknown tensor token_idz; did you mean token_ids?": {"token_idz": ("I32", [1])},
            "is F32, I32 or I64 is wanted": {"token_ids": ("F32", [1.0] * length)},
            "element 0 is 4294967296, past 32 bits": {"token_ids": ("I64", [1 << 32] + [1] * (length - 1))},
            "one a token": {"token_types": ("I32", [0])},
            "markers and cu_markers come together": {"markers": ("I32", [0])},
            "cu_markers has 1 elements, 2 wanted": {"markers": ("I32", [0]), "cu_markers": ("I32", [0])},
            "cu_markers: [1]: is 1, past the total of 0": {"markers": ("I32", []), "cu_markers": ("I32", [0, 1])},
            "seq_types has 2 elements, 1 wanted": {"seq_types": ("I32", [0, 0])},
            "97": {"token_ids": ("I32", [97] + [1] * (length - 1))},
            "cu_seqlens": {"cu_seqlens": ("I32", [0, length - 1])},
        }
        for reason, change in changes.items():
            with self.subTest(reason):
                path = self.folder / "bad.safetensors"
                write_safetensors(path, {name: tensor for name, tensor in (inputs | change).items() if tensor})
                answer = self.folder / "none.safetensors"
                self.assertRefused(batten("run", SENTENCE, "--batch", path, "-o", answer), path, reason)
                self.assertFalse(answer.exists())

    def test_damaged_files_are_refused_with_the_reason(self):
        path, _, _ = self.batch("short")
        whole = path.read_bytes()
        header = int.from_bytes(whole[:8], "little")
        damages = {
            "too few": whole[:7],
            "header of 18446744073709551615 bytes stated": b"\xff" * 8 + whole[8:],
            "not JSON": whole[:8] + b"}" + whole[9:],
            "bytes after tensor": whole + b"\0",
            "data_offsets don't lie": whole[:-1],
            "occurs twice": (2 * header - 1).to_bytes(8, "little") + whole[8:7 + header] + b"," + whole[9:8 + header] + whole[8 + header:],
        }
        for reason, damaged in damages.items():
            with self.subTest(reason):
                path.write_bytes(damaged)
                self.assertRefused(batten("run", SENTENCE, "--batch", path), path, reason)

    def test_an_unknown_lane_or_target_is_refused_with_the_known_ones(self):
        path, _, _ = self.batch("short")
        self.assertRefused(batten("run", SENTENCE, "--batch", path, "--lane", "embde"), "'embde'", "embed", "encode")
        self.assertRefused(batten("run", SENTENCE, "--batch", path, "--target", "pdp-11"), "pdp-11")


class RunMarkersTest(Case):
    """A lane that reads markers and sequence types."""

    INPUTS = {"token_ids": ("I32", [1, 2, 3, 4, 5, 6, 7]), "cu_seqlens": ("I32", [0, 3, 3, 7]), "markers": ("I32", [2, 0, 3]),
              "cu_markers": ("I32", [0, 2, 2, 3]), "seq_types": ("I32", [2, 0, 1])}

    def setUp(self):
        super().setUp()
        self.path = self.folder / "marked.safetensors"
        write_safetensors(self.path, self.INPUTS)

    def test_lines_have_their_own_markers_tokens_and_sequence(self):
        answer = self.folder / "out.safetensors"
        self.assertOk(batten("run", DECISION, "--batch", self.path, "-o", answer))
        wanted = read_safetensors(answer)
        self.assertEqual({"gathered": [3, 20], "decision": [3, 20], "embedding": [3, 20]}, {name: shape for name, (shape, _) in wanted.items()})
        batch = self.assertOk(batten("run", DECISION, "--batch", self.path)).stdout
        lines = self.assertOk(batten("run", DECISION, "--jsonl", stdin=as_lines(self.INPUTS))).stdout
        self.assertEqual(batch, lines)
        found = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual([2, 0, 1], [len(line["gathered"]) for line in found])
        self.assertEqual([20, 20, 20], [len(line["decision"]) for line in found])
        self.assertClose(wanted["gathered"], ([3, 20], sum(sum((line["gathered"] for line in found), []), [])))
        self.assertClose(wanted["decision"], ([3, 20], sum((line["decision"] for line in found), [])))
        hidden = [json.loads(line)["hidden"] for line in
                  self.assertOk(batten("run", DECISION, "--jsonl", "--lane", "encode", stdin=as_lines(self.INPUTS))).stdout.splitlines()]
        self.assertEqual([3, 0, 4], [len(rows) for rows in hidden])
        self.assertEqual([hidden[0][2], hidden[0][0], hidden[2][3]], sum((line["gathered"] for line in found), []))

    def test_lines_may_leave_out_markers_and_type(self):
        lines = '{"ids": [1, 2]}\n{"ids": [1, 2], "type": 0, "markers": []}\n{"ids": [1, 2], "type": 1, "markers": [1]}\n'
        found = [json.loads(line) for line in self.assertOk(batten("run", DECISION, "--jsonl", stdin=lines)).stdout.splitlines()]
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0]["decision"], found[2]["decision"])

    def test_bad_markers_and_types_are_named_with_their_line(self):
        for reason, line in {"markers: [1]: is 2, sequence 0 has 2 tokens": '{"ids": [1, 2], "markers": [0, 2]}',
                             "markers: [0]: is -1": '{"ids": [1, 2], "markers": [-1]}',
                             "markers: [0]: is 0, sequence 0 has 0 tokens": '{"ids": [], "markers": [0]}',
                             "seq_types: [0]: is 3": '{"ids": [1, 2], "type": 3}',
                             "65 markers: no bucket": json.dumps({"ids": [1], "markers": [0] * 65})}.items():
            with self.subTest(reason):
                result = batten("run", DECISION, "--jsonl", stdin='{"ids": [1]}\n' + line + "\n")
                self.assertRefused(result, "line 2: ", reason, stdout=None)
                self.assertEqual(1, len(result.stdout.splitlines()))

    def test_more_markers_than_any_bucket_are_answered_in_order(self):
        lines = [json.dumps({"ids": [1 + i % 40] * 3, "markers": [i % 3] * (i % 9), "type": i % 3}) for i in range(400)]
        found = self.assertOk(batten("run", DECISION, "--jsonl", stdin="\n".join(lines))).stdout.splitlines()
        self.assertEqual([i % 9 for i in range(400)], [len(json.loads(line)["gathered"]) for line in found])

    def test_R34_check_tells_bucket_and_slack_and_runs_nothing(self):
        for markers, plan, slack in [(3, "decide-8x4x4", (7, 3, 1)), (4, "decide-8x4x4", (7, 3, 0)), (5, "decide-32x8x16", (31, 7, 11))]:
            write_safetensors(self.path, {"token_ids": ("I32", [1]), "cu_seqlens": ("I32", [0, 1]), "markers": ("I32", [0] * markers),
                                          "cu_markers": ("I32", [0, markers])})
            found = json.loads(self.assertOk(batten("run", DECISION, "--batch", self.path, "--check")).stdout)
            self.assertEqual({"plan": plan, "batch": {"tokens": 1, "seqs": 1, "markers": markers},
                              "slack": dict(zip(["tokens", "seqs", "markers"], slack))}, found)
        write_safetensors(self.path, self.INPUTS | {"markers": ("I32", [3, 0, 3])})
        self.assertRefused(batten("run", DECISION, "--batch", self.path, "--check"), self.path, "markers: [0]: is 3")


class RunTraceTest(Case):
    def test_every_step_is_written_with_its_label_kernel_and_rows(self):
        path, inputs, wanted = self.batch("ragged")
        folder = self.folder / "made" / "here"
        answers = [self.assertOk(batten("run", SENTENCE, "--batch", path, "--trace", folder, "--threads", threads)).stdout for threads in [1, 2]]
        self.assertEqual(self.assertOk(batten("run", SENTENCE, "--batch", path)).stdout, answers[0])
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(["embed.safetensors"], [entry.name for entry in folder.iterdir()])
        trace = read_safetensors(folder / "embed.safetensors")
        facts, order = read_metadata(folder / "embed.safetensors")
        steps = json.loads(batten("inspect", SENTENCE, "--json", "--plan", "embed-" + facts["bucket"]).stdout)["steps"]
        self.assertEqual([f"{i:03} {step['label']}" for i, step in enumerate(steps)], order)
        counts = {"tokens": len(inputs["token_ids"][1]), "seqs": len(inputs["cu_seqlens"][1]) - 1}
        for i, step in enumerate(steps):
            output = step["operands"][-1]
            self.assertEqual([counts[output["rows"]], output["width"]], trace[order[i]][0], step["label"])
            self.assertEqual({"step": i, "label": step["label"], "kernel": step["kernel"], "rows": output["rows"]}, json.loads(facts[order[i]]))
        told = json.loads(batten("inspect", SENTENCE, "--json").stdout)
        self.assertEqual(told["manifest_sha256"], facts["manifest_sha256"])
        self.assertEqual([target["name"] for target in told["targets"] if target["in_use"]], [facts["target"]])
        self.assertEqual(("embed", str(len(steps))), (facts["lane"], facts["steps"]))
        self.assertClose(wanted["embedding"], trace[order[-1]])

    def test_threads_do_not_change_a_bit_of_a_trace(self):
        path, _, _ = self.batch("ragged")
        traces = []
        for threads in [1, 2, 3]:
            folder = self.folder / str(threads)
            self.assertOk(batten("run", SENTENCE, "--lane", "encode", "--batch", path, "--trace", folder, "--threads", threads))
            traces.append((folder / "encode.safetensors").read_bytes())
        self.assertEqual(1, len(set(traces)))

    def test_marker_rows_and_steps_without_rows(self):
        path, folder = self.folder / "in.safetensors", self.folder / "trace"
        batch = {"token_ids": ("I32", [1, 2, 3]), "cu_seqlens": ("I32", [0, 2, 3])}
        for extra, rows in [({}, 0), ({"markers": ("I32", [1, 1, 0]), "cu_markers": ("I32", [0, 2, 3])}, 3)]:
            write_safetensors(path, batch | extra)
            self.assertOk(batten("run", DECISION, "--batch", path, "--trace", folder))
            trace = read_safetensors(folder / "decide.safetensors")  # replaced as a whole
            self.assertEqual([rows, 20], trace["008 gather"][0])
            self.assertEqual([2, 20], trace["009 decide"][0])
            self.assertEqual("markers", json.loads(read_metadata(folder / "decide.safetensors")[0]["008 gather"])["rows"])
        write_safetensors(path, {"token_ids": ("I32", []), "cu_seqlens": ("I32", [0])})
        self.assertOk(batten("run", DECISION, "--batch", path, "--trace", folder))
        self.assertEqual({0}, {shape[0] for shape, _ in read_safetensors(folder / "decide.safetensors").values()})

    def test_bad_input_leaves_what_was_there_and_makes_no_folder(self):
        path, inputs, _ = self.batch("short")
        write_safetensors(path, inputs | {"token_ids": ("I32", [97] + inputs["token_ids"][1][1:])})
        folder = self.folder / "none"
        self.assertRefused(batten("run", SENTENCE, "--batch", path, "--trace", folder), path, "97")
        self.assertFalse(folder.exists())
        folder.mkdir()
        (folder / "embed.safetensors").write_text("old")
        self.assertRefused(batten("run", SENTENCE, "--batch", path, "--trace", folder), path, "97")
        self.assertEqual("old", (folder / "embed.safetensors").read_text())
        self.assertRefused(batten("run", SENTENCE, "--batch", self.batch("short")[0], "--trace", path), path, "cannot make this folder")

    def test_a_full_disk_is_an_error_and_leaves_no_half_file(self):
        path, _, _ = self.batch("ragged")
        small = self.folder / "small"
        small.mkdir()
        mount = f"mount -t tmpfs -o size=16k none {small}"
        if run("unshare", "--mount", "sh", "-c", mount).returncode != 0:
            self.skipTest("mounting a tmpfs is not permitted here")
        result = run("unshare", "--mount", "sh", "-c", mount + f" && {{ \"$0\" \"$@\"; ls -A {small}; }}", BATTEN, "run", SENTENCE,
                     "--batch", path, "--trace", small)
        self.assertEqual("", result.stdout)
        self.assertIn("No space left", result.stderr.splitlines()[-1])


class RunFilesTest(Case):
    """Where answers go: existing paths, no rights, full disks."""

    def test_an_existing_file_is_replaced_as_a_whole(self):
        path, _, wanted = self.batch("short")
        answer, link = self.folder / "out.safetensors", self.folder / "link"
        answer.write_text("x" * 10_000)
        link.symlink_to(answer)
        before = answer.stat().st_ino
        self.assertOk(batten("run", SENTENCE, "--batch", path, "-o", link))
        self.assertTrue(link.is_symlink())
        self.assertNotEqual(before, answer.stat().st_ino)
        self.assertClose(wanted["embedding"], read_safetensors(answer)["embedding"])
        self.assertEqual({"short.safetensors", "out.safetensors", "link"}, {entry.name for entry in self.folder.iterdir()})

    def test_a_device_is_written_and_stays(self):
        path, _, _ = self.batch("short")
        self.assertOk(batten("run", SENTENCE, "--batch", path, "-o", "/dev/null"))
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_a_folder_is_refused(self):
        path, _, _ = self.batch("short")
        self.assertRefused(batten("run", SENTENCE, "--batch", path, "-o", self.folder), self.folder, "is a folder")

    def test_a_full_disk_is_an_error_and_leaves_what_was_there(self):
        path, _, _ = self.batch("short")
        self.assertRefused(batten("run", SENTENCE, "--batch", path, "-o", "/dev/full"), "/dev/full: cannot write", "No space left")
        with open("/dev/full", "w") as full:
            self.assertRefused(batten("run", SENTENCE, "--batch", path, stdout=full), "cannot write standard output", stdout=None)
        small = self.folder / "small"
        small.mkdir()
        mount = f"mount -t tmpfs -o size=8k none {small}"
        if run("unshare", "--mount", "sh", "-c", mount).returncode != 0:
            self.skipTest("mounting a tmpfs is not permitted here; /dev/full was tested")
        keep = mount + f" && echo old > {small}/out && {{ \"$0\" \"$@\"; cat {small}/out; ls -A {small}; }}"
        ragged, _, _ = self.batch("ragged")
        result = run("unshare", "--mount", "sh", "-c", keep, BATTEN, "run", SENTENCE, "--lane", "encode", "--batch", ragged, "-o", small / "out")
        self.assertEqual("old\nout\n", result.stdout)
        self.assertIn("No space left", result.stderr.splitlines()[-1])

    def test_without_rights_the_path_is_named(self):
        path, _, _ = self.batch("short")
        locked, hidden = self.folder / "locked", self.folder / "hidden.safetensors"
        locked.mkdir(mode=0o500)
        hidden.write_bytes(path.read_bytes())
        hidden.chmod(0)
        without = []
        if os.geteuid() == 0:  # root without the right to pass over permissions
            without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
            if run(*without, "cat", hidden).returncode == 0:
                self.skipTest("root's rights can't be dropped here")
        result = run(*without, BATTEN, "run", SENTENCE, "--batch", hidden)
        self.assertRefused(result, hidden, "Permission denied")
        result = run(*without, BATTEN, "run", SENTENCE, "--batch", path, "-o", locked / "out")
        self.assertRefused(result, locked / "out", "Permission denied")


class RunLinesTest(Case):
    def lines(self, text, *arguments, status=0):
        result = batten("run", SENTENCE, "--jsonl", *arguments, stdin=text)
        self.assertEqual(status, result.returncode, result.stderr)
        return result.stdout.splitlines()

    def test_lines_give_the_bits_that_batches_give(self):
        for case in ["ragged", "empty_sequences", "token_types"]:
            path, inputs, _ = self.batch(case)
            for lane in ["embed", "encode"]:
                batch = self.assertOk(batten("run", SENTENCE, "--lane", lane, "--batch", path)).stdout
                self.assertEqual(batch.splitlines(), self.lines(as_lines(inputs), "--lane", lane), case)

    def test_more_lines_than_any_bucket_are_answered_in_order(self):
        lines = [json.dumps({"ids": [1 + i % 90] * (1 + i % 7)}) for i in range(5000)]
        found = self.lines("\n".join(lines))  # no newline after the last
        self.assertEqual(5000, len(found))
        answers = {line: self.lines(line)[0] for line in dict.fromkeys(lines[:630])}
        self.assertEqual([answers[line] for line in lines], found)

    def test_a_line_is_answered_while_the_writer_waits(self):
        with subprocess.Popen([str(BATTEN), "run", str(SENTENCE), "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for _ in range(3):
                process.stdin.write(b'{"ids": [1, 2, 3]}\n')
                process.stdin.flush()
                self.assertTrue(select.select([process.stdout], [], [], 60)[0], "no answer")
                self.assertIn("embedding", json.loads(process.stdout.readline()))
            process.stdin.close()
            self.assertEqual(0, process.wait(60))

    def test_a_bad_line_is_named_and_the_lines_before_it_answered(self):
        bad = {
            "empty": "",
            "not JSON: wrong at byte 8": '{"ids":',
            "an array, an object is wanted": "[1]",
            "ids is missing": "{}",
            "ids is a number, an array is wanted": '{"ids": 1}',
            "ids[1] is a fraction": '{"ids": [1, 1.5]}',
            "ids[1] is 4294967296.0, past 32 bits": '{"ids": [1, 4294967296.0]}',
            "ids[0] is 4294967296, past 32 bits": '{"ids": [4294967296]}',
            "ids[0] is 1.1805916207174113e+21, past 32 bits": '{"ids": [1180591620717411303424]}',
            'unknown key "tpyes"; did you mean types?': '{"ids": [1], "tpyes": [0]}',
            'key "ids" occurs twice': '{"ids": [1], "ids": [2]}',
            "2 types for 1 ids": '{"ids": [1], "types": [0, 0]}',
            "97": '{"ids": [97]}',
            "-1": '{"ids": [-1]}',
            "65": json.dumps({"ids": [1] * 65}),  # the model has 64 positions
            "nested deeper": "[" * 1000,
            "not JSON: wrong at byte 13": '{"ids": [1]}\0{"ids": [2]}',
            'unknown key "a\\x0ab"': '{"ids": [1], "a\\nb": 0}',
        }
        for reason, line in bad.items():
            with self.subTest(reason):
                result = batten("run", SENTENCE, "--jsonl", stdin='{"ids": [1]}\n{"ids": [2]}\n' + line + '\n{"ids": [3]}\n')
                self.assertRefused(result, "line 3: ", reason, stdout=None)
                self.assertEqual(2, len(result.stdout.splitlines()))

    def test_whole_numbers_may_be_written_as_floats(self):
        lines = self.assertOk(batten("run", SENTENCE, "--jsonl", stdin='{"ids": [1, 2]}\n{"ids": [1.0, 2e0]}\n')).stdout.splitlines()
        self.assertEqual(lines[0], lines[1])

    def test_a_closed_standard_input_is_not_the_bundle(self):
        result = run("sh", "-c", '"$0" run "$1" --jsonl <&-', BATTEN, SENTENCE)
        self.assertRefused(result, "cannot read standard input: Bad file descriptor")

    def test_an_endless_line_is_refused(self):
        result = batten("run", SENTENCE, "--jsonl", stdin='{"ids": [' + "1," * (9 << 20))
        self.assertRefused(result, "line 1: longer than")

    def test_a_reader_that_went_away_ends_it_quietly(self):
        with subprocess.Popen([str(BATTEN), "run", str(SENTENCE), "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdin.write(b'{"ids": [1]}\n')
            process.stdin.flush()
            process.stdout.readline()
            process.stdout.close()
            process.stdin.write(b'{"ids": [1]}\n')
            process.stdin.close()
            self.assertEqual(-signal.SIGPIPE, process.wait(60))
            self.assertEqual(b"", process.stderr.read())
