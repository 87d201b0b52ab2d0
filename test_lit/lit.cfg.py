"""How lit runs this folder. `--param roundtrip=1` adds --verify-roundtrip to every run of batten-opt."""
import os

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "batten"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.batten_obj_root, "test_lit")
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --allow-unused-prefixes=false"

extra = ["--verify-roundtrip"] if lit_config.params.get("roundtrip") else []
llvm_config.add_tool_substitutions(
    [ToolSubst("batten-opt", extra_args=extra), "batten-translate", "FileCheck", "not", "count", "split-file"],
    [config.batten_tools_dir, config.llvm_tools_dir])
config.substitutions.append(("%python", "python3 -B"))
