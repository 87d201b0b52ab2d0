"""Help, wrong usage and missing files: everything that needs no bundle. One class, one ctest."""
import os
import shutil
import signal
import subprocess

from support import BATTEN, BIN, Case, batten, run

COMMANDS = ["run", "inspect", "verify", "bench", "compare"]
COMPILER_COMMANDS = ["import", "compile"]


class HelpTest(Case):
    def test_every_command_has_help_with_an_example(self):
        for command in COMMANDS + (COMPILER_COMMANDS if (BIN / "batten-compile").exists() else []):
            with self.subTest(command):
                result = self.assertOk(batten(command, "--help"))
                self.assertIn("Example:\n  batten " + command, result.stdout)
                self.assertEqual("", result.stderr)

    def test_help_lists_every_command_and_the_exit_statuses(self):
        result = self.assertOk(batten("--help"))
        for word in COMMANDS + COMPILER_COMMANDS + ["Exit status: 0 ok, 1", "2 wrong usage"]:
            self.assertIn(word, result.stdout)

    def test_version_tells_the_formats(self):
        self.assertRegex(self.assertOk(batten("--version")).stdout, r"^batten \d+\.\d+\.\d+ \(format \d+\.\d+, kernel ABI \d+\)\n$")


class UsageTest(Case):
    def assertUsage(self, result, *words):
        self.assertRefused(result, *words, status=2)

    def test_no_command_prints_help_to_stderr(self):
        self.assertUsage(batten(), "a command is missing")

    def test_unknown_command_names_near_ones(self):
        self.assertUsage(batten("inspekt", "x"), "unknown command 'inspekt'", "did you mean inspect?")

    def test_unknown_flag_names_near_ones(self):
        self.assertUsage(batten("run", "--btach", "f", "x.batten"), "unknown flag --btach", "did you mean --batch?")
        self.assertUsage(batten("verify", "x.batten", "--zzzz=1"), "unknown flag --zzzz")
        self.assertUsage(batten("--frobnicate"), "unknown flag --frobnicate")

    def test_an_unknown_flag_is_told_before_a_missing_operand(self):
        self.assertUsage(batten("inspect", "--jsn"), "unknown flag --jsn", "did you mean --json?")

    def test_missing_operand(self):
        for command in COMMANDS:
            self.assertUsage(batten(command), "the bundle's path is missing")

    def test_surplus_operand(self):
        self.assertUsage(batten("inspect", "a.batten", "b.batten"), "unexpected argument 'b.batten'")

    def test_an_empty_value_is_a_variable_not_set(self):
        for flag in ["--lane", "--batch", "-o", "--target", "--digest"]:
            self.assertUsage(batten("run", "x.batten", "--jsonl", flag, ""), f"{flag} has an empty value")

    def test_values_out_of_range(self):
        for threads in ["0", "-1", "1025", "x", "1.5", ""]:
            self.assertUsage(batten("run", "x.batten", "--jsonl", "--threads", threads), "--threads")
        self.assertUsage(batten("verify", "x.batten", "--digest", "12"), "--digest: 64 hexadecimal digits", "'12'")
        self.assertUsage(batten("bench", "x.batten", "--tokens", "0"), "--tokens")
        for value in ["-1", "x", ""]:
            self.assertUsage(batten("compare", "x.batten", "y.batten", "--batch", "f", "--max-abs", value), "--max-abs")

    def test_flags_that_exclude_or_need_each_other(self):
        self.assertUsage(batten("run", "x.batten"), "--batch", "--jsonl")
        self.assertUsage(batten("run", "x.batten", "--batch", "f", "--jsonl"), "exclude each other")
        self.assertUsage(batten("run", "x.batten", "--jsonl", "-o", "f"), "-o goes with --batch")
        self.assertUsage(batten("run", "x.batten", "--jsonl", "--trace", "d"), "--trace goes with --batch")
        self.assertUsage(batten("run", "x.batten", "--jsonl", "--check"), "--check goes with --batch")
        self.assertUsage(batten("run", "x.batten", "--batch", "f", "--check", "-o", "g"), "--check runs nothing")
        self.assertUsage(batten("run", "x.batten", "--batch", "f", "--check", "--trace", "d"), "--check runs nothing")
        self.assertUsage(batten("inspect", "x.batten", "--memory", "--plan", "p"), "--memory and --plan exclude each other")
        self.assertUsage(batten("inspect", "x.batten", "--threads", "2"), "--threads needs --memory")
        self.assertUsage(batten("compare", "x.batten", "--batch", "f"), "the second bundle's path is missing")
        self.assertUsage(batten("compare", "x.batten", "y.batten"), "--batch IN.safetensors is needed")
        self.assertUsage(batten("bench", "x.batten", "--seqs", "2"), "--seqs needs --tokens")
        self.assertUsage(batten("bench", "x.batten", "--batch", "f", "--tokens", "2"), "exclude each other")


class MissingTest(Case):
    def test_missing_bundle_is_named(self):
        missing = self.folder / "none.batten"
        for command in [["run", missing, "--jsonl"], ["inspect", missing], ["inspect", missing, "--memory"], ["verify", missing],
                        ["bench", missing]]:
            self.assertRefused(batten(*command), missing, "o such file")

    def test_without_a_compiler_beside_it_batten_says_what_is_missing(self):
        shutil.copy(BATTEN, self.folder / "batten")
        for command in COMPILER_COMMANDS:
            result = run(self.folder / "batten", command, "--help")
            self.assertRefused(result, "needs batten-compile", self.folder / "batten-compile")


class OutputTest(Case):
    """Standard output that can't be written."""

    def test_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            self.assertRefused(batten("--help", stdout=full), "cannot write standard output", "No space left", stdout=None)

    def closed_pipe(self, *arguments, **options):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            return batten(*arguments, stdout=writer, **options)
        finally:
            os.close(writer)

    def test_a_reader_that_went_away_ends_it_quietly(self):
        result = self.closed_pipe("--help", restore_signals=True)
        self.assertEqual((-signal.SIGPIPE, ""), (result.returncode, result.stderr))

    def test_where_the_caller_ignores_the_signal_it_is_an_error(self):
        result = self.closed_pipe("--help", restore_signals=False, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
        self.assertRefused(result, "cannot write standard output", "Broken pipe", stdout=None)

    def test_an_error_is_not_lost_with_a_reader(self):
        result = self.closed_pipe("inspect", self.folder / "none.batten")
        self.assertRefused(result, "none.batten", stdout=None)

    def test_closed_stderr_does_not_change_the_status(self):
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run([str(BATTEN), "inspect", str(self.folder / "none")], stderr=writer, stdout=subprocess.PIPE)
        os.close(writer)
        self.assertEqual(1, result.returncode)
