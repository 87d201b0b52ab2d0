#!/usr/bin/env bash
# Installs what building, testing and the demo need: Debian packages (Debian 12 or newer, as root or with sudo) and a
# Python environment in .venv for the demo. Safe to run twice: what is there is left alone. Changes nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

# One list: what a fresh machine needs.
packages=(
  clang-22 lld-22 libclang-rt-22-dev          # compiler, linker, sanitizers
  llvm-22-dev libmlir-22-dev liblld-22-dev    # what the compiler links
  llvm-22-tools mlir-22-tools                 # lit's helpers: FileCheck, not; mlir-tblgen
  clang-format-22 clang-tidy-22               # lints
  cmake ninja-build ccache git                # build
  libgtest-dev libgmock-dev libbenchmark-dev  # tests
  libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
  python3 python3-venv                        # lints, command line tests, demo
  qemu-user                                   # runs x86-64-v3 and -v4 code on any machine
  util-linux ca-certificates
)
# What the demo uses; the tests need none of it.
python_packages=(tokenizers numpy safetensors)

say() { echo "setup: $*"; }
die() { echo "setup: error: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || die "Batten builds on Linux; this is $(uname -s)"
command -v apt-get >/dev/null || die "no apt-get here; install these by hand: ${packages[*]}"

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }
missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  say "all ${#packages[@]} Debian packages are installed"
else
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "root or sudo is needed to install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} of ${#packages[@]} Debian packages: ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "${as_root[@]}" apt-get update >"$log" 2>&1 || { tail -5 "$log" >&2; die "apt-get update failed"; }
  for package in "${missing[@]}"; do
    [ -n "$(apt-cache madison "$package")" ] ||
      die "this system's package sources have no $package (Debian 12 with its security updates has it)"
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    { tail -20 "$log" >&2; die "apt-get install failed"; }
fi

if [ "${1:-}" = --no-python ]; then
  say "Python packages left out, as asked"
else
  [ -x .venv/bin/pip ] || { say "making .venv"; python3 -m venv .venv || die "python3 -m venv failed"; }
  wanted=()
  for package in "${python_packages[@]}"; do
    .venv/bin/python -c "import $package" 2>/dev/null || wanted+=("$package")
  done
  if [ ${#wanted[@]} -eq 0 ]; then
    say "Python packages are installed in .venv: ${python_packages[*]}"
  else
    say "installing into .venv from PyPI: ${wanted[*]}"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "${wanted[@]}" || die "pip install failed"
  fi
fi
say "done"
