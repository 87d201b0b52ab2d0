"""`batten compile` and `batten import` on the command line; what they compute is tested elsewhere."""
import hashlib
import json
import os
import pty
import re
import shutil
import struct
import subprocess

from support import BATTEN, COMPILER, GOLDENS, SENTENCE_MODEL, Case, batten, compiler, run

MODEL = GOLDENS / "bert"


def digests(bundle):
    root = bundle.resolve()
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(root.rglob("*")) if path.is_file()}


class CompileTest(Case):
    def test_progress_and_summary_go_to_stderr(self):
        bundle = self.folder / "x.batten"
        result = self.assertOk(compiler("compile", MODEL, "-o", bundle, "--target", "x86-64-v3"))
        self.assertEqual("", result.stdout)
        self.assertGreaterEqual(len(re.findall(r"^batten: ", result.stderr, re.M)), 3, result.stderr)
        self.assertNotIn("\r", result.stderr)
        self.assertRegex(result.stderr, rf"(?m)^wrote {re.escape(str(bundle))}: [\d.]+ [KMG]?B in \d+ files$")
        for word in ["targets x86-64-v3\n", "packs/common.pack", "in all", "manifest sha256 "]:
            self.assertIn(word, result.stderr)
        self.assertOk(batten("verify", bundle))

    def test_quiet_says_nothing(self):
        result = self.assertOk(compiler("compile", MODEL, "-o", self.folder / "x.batten", "--quiet"))
        self.assertEqual(("", ""), (result.stdout, result.stderr))

    def test_targets_can_be_repeated(self):
        bundle = self.folder / "x.batten"
        self.assertOk(compiler("compile", MODEL, "-o", bundle, "--target", "x86-64-v4", "--target", "x86-64-v3", "--quiet"))
        self.assertEqual({"x86-64-v3", "x86-64-v4"}, {path.name for path in (bundle / "plans").iterdir()})

    def test_on_a_terminal_one_line_is_rewritten(self):
        main, other = pty.openpty()
        process = subprocess.Popen(["batten", "compile", str(MODEL), "-o", str(self.folder / "x.batten")], executable=str(COMPILER),
                                   stderr=other, stdout=subprocess.DEVNULL)
        os.close(other)
        seen = b""
        try:
            while block := os.read(main, 65536):
                seen += block
        except OSError:  # the other end is closed
            pass
        os.close(main)
        self.assertEqual(0, process.wait(60))
        self.assertIn(b"\r\x1b[K", seen)
        self.assertIn(b"wrote ", seen)

    def test_bucket_file(self):
        table = self.folder / "buckets"
        table.write_text("# stage tokens seqs markers\ntext 16 2 0\ntext 64 8 0\n")
        bundle = self.folder / "x.batten"
        self.assertOk(compiler("compile", MODEL, "-o", bundle, "--buckets", table, "--quiet"))
        self.assertIn("encode-16x2x0", self.assertOk(batten("inspect", bundle)).stdout)

    def test_wrong_usage(self):
        output = self.folder / "x.batten"
        usages = {
            "-o NAME.batten is missing": ["compile", MODEL],
            "batten.toml or MODEL_DIR is missing": ["compile", "-o", output],
            "--math: f16 not in {f32,bf16,i8}": ["compile", MODEL, "-o", output, "--math", "f16"],
            "--weights: int8 not in {f32,f16,bf16,i8}": ["compile", MODEL, "-o", output, "--weights", "int8"],
            "no code is made for 'x86-64-v5', only for ": ["compile", MODEL, "-o", output, "--target", "x86-64-v5"],
            "unknown flag --qiet; did you mean --quiet?": ["compile", MODEL, "-o", output, "--qiet"],
            "-o DIR is missing": ["import", MODEL],
        }
        for message, arguments in usages.items():
            with self.subTest(message):
                self.assertRefused(compiler(*arguments), message, status=2)
        self.assertFalse(output.exists())

    def test_missing_inputs_are_named(self):
        output = self.folder / "x.batten"
        for arguments in [["compile", self.folder / "none", "-o", output], ["compile", self.folder / "none.toml", "-o", output],
                          ["import", self.folder / "none", "-o", self.folder / "imported"]]:
            self.assertRefused(compiler(*arguments, "--quiet"), self.folder / "none")
        self.assertRefused(compiler("compile", MODEL, "-o", output, "--buckets", self.folder / "nobuckets", "--quiet"), "nobuckets")
        self.assertFalse(output.exists())

    def test_batten_hands_over_with_the_same_exit_status(self):
        shutil.copy(BATTEN, self.folder / "batten")
        (self.folder / "batten-compile").symlink_to(COMPILER)
        program = self.folder / "batten"
        self.assertOk(run(program, "compile", MODEL, "-o", self.folder / "x.batten", "--quiet"))
        self.assertRefused(run(program, "compile", self.folder / "none", "-o", self.folder / "y.batten"), "none")
        self.assertRefused(run(program, "import", "--nonsense"), "--nonsense", status=2)


class CompileFilesTest(Case):
    """What happens at the output path."""

    def test_a_bundle_is_replaced(self):
        bundle = self.folder / "x.batten"
        self.assertOk(compiler("compile", GOLDENS / "bert-no-pooler", "-o", bundle, "--quiet"))
        before = digests(bundle)
        self.assertOk(compiler("compile", MODEL, "-o", bundle, "--quiet"))
        self.assertNotEqual(before, digests(bundle))
        self.assertOk(batten("verify", bundle))

    def test_what_is_no_bundle_is_left_alone(self):
        path = self.folder / "notes.txt"
        path.write_text("mine")
        self.assertRefused(compiler("compile", MODEL, "-o", path, "--quiet"), path)
        self.assertEqual("mine", path.read_text())
        folder = self.folder / "folder"
        folder.mkdir()
        (folder / "mine").write_text("mine")
        self.assertRefused(compiler("compile", MODEL, "-o", folder, "--quiet"), folder)
        self.assertEqual("mine", (folder / "mine").read_text())

    def test_without_rights_the_path_is_named(self):
        locked = self.folder / "locked"
        locked.mkdir(mode=0o500)
        without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        if without and run(*without, "touch", locked / "x").returncode == 0:
            self.skipTest("root's rights can't be dropped here")
        result = run(*without, COMPILER, "compile", MODEL, "-o", locked / "x.batten", "--quiet")
        self.assertRefused(result, locked, "ermission denied")

    def test_a_full_disk_leaves_the_old_bundle(self):
        small, bundle = self.folder / "small", self.folder / "small/x.batten"
        small.mkdir()
        self.assertOk(compiler("compile", MODEL, "-o", self.folder / "x.batten", "--quiet"))
        size = sum(path.stat().st_size for path in (self.folder / "x.batten").resolve().rglob("*") if path.is_file())
        before = digests(self.folder / "x.batten")
        mount = f"mount -t tmpfs -o size={size * 3 // 2} none {small} && "
        if run("unshare", "--mount", "sh", "-c", mount + "true").returncode != 0:
            self.skipTest("mounting a tmpfs is not permitted here")
        # Room for one bundle and a half: the first compile succeeds, the second can't.
        script = mount + f'"$0" compile {MODEL} -o {bundle} --quiet && {{ "$0" compile {MODEL} -o {bundle} --quiet; echo $?; }} ' \
                         f'&& cp -rL {bundle} {self.folder}/after.batten && ls -A {small} | wc -l'
        result = run("unshare", "--mount", "sh", "-c", script, COMPILER)
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertEqual("1", result.stdout.split()[0], result.stderr)
        self.assertIn("o space left", result.stderr.splitlines()[-1])
        self.assertEqual(before, digests(self.folder / "after.batten"))


class ImportTest(Case):
    def test_import_then_compile_gives_the_bundle_that_compile_gives(self):
        imported = self.folder / "imported"
        told = self.assertOk(compiler("import", MODEL, "-o", imported)).stderr
        self.assertRegex(told, r"(?m)^  lanes encode$")  # no targets: nothing is compiled
        self.assertEqual({"graph.mlir", "batten.toml"}, {path.name for path in imported.iterdir()})
        self.assertOk(compiler("compile", imported / "batten.toml", "-o", self.folder / "a.batten", "--quiet"))
        self.assertOk(compiler("compile", MODEL, "-o", self.folder / "b.batten", "--quiet"))
        self.assertEqual(digests(self.folder / "b.batten"), digests(self.folder / "a.batten"))

    def test_existing_files_are_kept_unless_forced(self):
        imported = self.folder / "imported"
        self.assertOk(compiler("import", MODEL, "-o", imported))
        (imported / "batten.toml").write_text("# mine\n")
        self.assertRefused(compiler("import", MODEL, "-o", imported), imported, "--force")
        self.assertEqual("# mine\n", (imported / "batten.toml").read_text())
        self.assertOk(compiler("import", MODEL, "-o", imported, "--force"))


class EditedGraphTest(Case):
    """What users do to an imported graph and its lanes."""

    def setUp(self):
        super().setUp()
        self.assertOk(compiler("import", SENTENCE_MODEL, "-o", self.folder, "--quiet"))
        self.spec = (self.folder / "batten.toml").read_text()
        self.graph = (self.folder / "graph.mlir").read_text()

    def compile(self, spec=None, graph=None):
        (self.folder / "batten.toml").write_text(spec or self.spec)
        (self.folder / "graph.mlir").write_text(graph or self.graph)
        return compiler("compile", self.folder / "batten.toml", "-o", self.folder / "x.batten", "--quiet")

    def answer(self, lane):
        return self.assertOk(batten("run", self.folder / "x.batten", "--lane", lane, "--jsonl", stdin='{"ids": [5, 6, 7]}\n')).stdout

    def test_lanes_have_names_of_their_own_and_may_share_a_graph(self):
        self.assertOk(self.compile())
        embed, encode = self.answer("embed"), self.answer("encode")
        again = '[[lane]]\nname = "again"\ngraph = "@encode"\nstage = "text"\n'
        swapped = self.spec.replace('name = "embed"', 'name = "-"').replace('name = "encode"', 'name = "embed"').replace('"-"', '"encode"')
        self.assertOk(self.compile(swapped + again))
        self.assertEqual([encode, embed, encode], [self.answer(lane) for lane in ["embed", "encode", "again"]])
        self.assertOk(batten("verify", self.folder / "x.batten", "--run"))

    def test_a_graph_of_no_lane_is_left_out(self):
        lane = '[[lane]]\nname = "embed"\ngraph = "@embed"\nstage = "text"\n'
        self.assertIn(lane, self.spec)
        self.assertOk(self.compile(self.spec.replace(lane, "")))
        self.assertRefused(batten("run", self.folder / "x.batten", "--lane", "embed", "--jsonl"), "'embed'", status=1)

    def test_a_lane_with_the_name_of_a_stage_or_weight(self):
        for name in ["text", "embed.words.w"]:
            self.assertRefused(self.compile(self.spec.replace('name = "embed"', f'name = "{name}"')), "batten.toml:5:1", name)

    def test_words_alone_and_words_with_types(self):
        for kept in ["%embed.words", "%embed.add"]:
            with self.subTest(kept):
                self.assertOk(self.compile(graph=self.graph.replace("batten.layer_norm %embed weight", f"batten.layer_norm {kept} weight")))
                self.assertIn("hidden", self.answer("encode"))

    def test_no_output_depends_on_the_ids(self):
        graph = self.graph.replace("batten.layer_norm %embed weight", "batten.layer_norm %embed.positions weight")
        self.assertRefused(self.compile(graph=graph), "graph.mlir:", "'batten.graph' op has no output that depends on the token ids")
        self.assertFalse((self.folder / "x.batten").exists())

    def test_one_kernel_for_rows_of_two_kinds(self):
        end = "    batten.return %l1.norm, %pooler.act :"
        self.assertEqual(1, self.graph.count(end))
        graph = self.graph.replace(end, """    %a = batten.add %l1.norm, %embed.norm : tensor<?x32xf32, #tokens>
    %b = batten.pool cls %a, %seg : tensor<?x32xf32, #tokens>
    %c = batten.add %b, %b : tensor<?x32xf32, #seqs>
    batten.return %a, %c :""")
        self.assertOk(self.compile(graph=graph))
        answer = json.loads(self.answer("encode"))
        self.assertEqual([struct.pack("f", 2 * value) for value in answer["hidden"][0]], [struct.pack("f", value) for value in answer["pooled"]])

    def test_a_fault_is_one_line_with_its_place(self):
        graph = self.graph.replace("tensor<97x32xf32>", "tensor<97x33xf32>")
        self.assertRefused(self.compile(graph=graph), "graph.mlir:")
        nested = self.graph.replace("batten.version = 1 : i32", "batten.version = 1 : i32, a = " + "[" * 50000 + "]" * 50000)
        self.assertRefused(self.compile(graph=nested), "graph.mlir:3:", "brackets nested deeper than 64")
        affine = self.graph.replace("batten.version = 1 : i32", f"batten.version = 1 : i32, a = affine_map<(x) -> ({'-' * 300000}x)>")
        self.assertRefused(self.compile(graph=affine), "graph.mlir:3:", "affine_map has no place in a graph")
