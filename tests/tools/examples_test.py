"""The programs in examples/ do what README says."""
from support import BIN, SENTENCE, Case, run


class ExamplesTest(Case):
    def test_c_and_cpp_agree(self):
        answers = [self.assertOk(run(BIN / name, SENTENCE)).stdout for name in ["example-embed-c", "example-embed-cpp"]]
        self.assertEqual(answers[0], answers[1])
        self.assertLessEqual(abs(float(answers[0])), 1.000001)

    def test_errors_are_told(self):
        for name in ["example-embed-c", "example-embed-cpp"]:
            result = run(BIN / name, self.folder / "none.batten")
            self.assertEqual(1, result.returncode)
            self.assertIn("none.batten", result.stderr)
            self.assertEqual(2, run(BIN / name).returncode)
