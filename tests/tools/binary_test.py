"""What the shipped binaries need: no LLVM, no instruction above x86-64's baseline, no newer libc."""
import platform
import re

from support import BATTEN, BIN, Case, run

LIBRARY = BIN.parent / "runtime/libbatten_runtime.a"
LIBC_FLOOR = (2, 36)  # Debian 12


def tool(name, *arguments):
    result = run(f"{name}-22", *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


class BinaryTest(Case):
    def setUp(self):
        super().setUp()
        if re.search(r"__[at]san_init", tool("llvm-nm", BATTEN)):
            self.skipTest("a sanitizer build is not shipped")

    def test_batten_links_no_llvm(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", tool("llvm-readelf", "-d", BATTEN)))
        self.assertLessEqual(needed, {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"})

    def test_the_runtime_stays_at_the_baseline(self):
        if platform.machine() != "x86_64":
            self.skipTest("x86-64 only")
        code = tool("llvm-objdump", "-d", "--no-show-raw-insn", LIBRARY)
        self.assertIn("batten_run", code)
        self.assertEqual([], re.findall(r".*%[yz]mm.*", code)[:5])

    def test_no_symbol_needs_a_newer_libc(self):
        versions = {tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", tool("llvm-readelf", "--version-info", BATTEN))}
        self.assertTrue(versions)
        self.assertNotIn("__isoc23_", tool("llvm-nm", "-u", BATTEN))
        if tuple(map(int, platform.libc_ver()[1].split("."))) > LIBC_FLOOR:
            self.skipTest(f"built against libc {platform.libc_ver()[1]}; the floor {LIBC_FLOOR} is tested where that is the system's")
        self.assertLessEqual(max(versions), LIBC_FLOOR)
