#!/usr/bin/env bash
# Installs what bench.py measures Batten beside, into build/peers-venv, with pip; nothing of it is needed to build or to test.
# Arguments name the peers to install: onnxruntime, openvino, ctranslate2, torch (5 GB, since it comes with CUDA's libraries);
# without any, all but torch. Safe to run twice. The Rust driver is kime/build.sh's.
set -euo pipefail
cd "$(dirname "$0")/../../.."

known=(onnxruntime openvino ctranslate2 torch)
peers=("$@")
[ ${#peers[@]} -gt 0 ] || peers=(onnxruntime openvino ctranslate2)
for peer in "${peers[@]}"; do
  [[ " ${known[*]} " == *" $peer "* ]] || { echo "install: error: $peer found, one of ${known[*]} wanted" >&2; exit 2; }
done
[ -x build/peers-venv/bin/python ] || python3 -m venv build/peers-venv
build/peers-venv/bin/python -m pip install --quiet --disable-pip-version-check numpy safetensors onnx "${peers[@]}"
for package in "${peers[@]}"; do # each by itself: what is installed must load too
  build/peers-venv/bin/python -c "import $package; print('install:', '$package', $package.__version__)"
done
