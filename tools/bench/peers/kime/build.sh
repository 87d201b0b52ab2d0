#!/usr/bin/env bash
# Builds the driver twice with pinned crates: target/release, and target/native/release for this machine's CPU. Arguments go
# to cargo. Cargo.lock.in is Cargo.lock without the lines that name a registry, which cargo knows and this repository
# doesn't hold; plain `cargo build --release` works too and pins the crates of Cargo.toml only.
set -euo pipefail
cd "$(dirname "$0")"

if [ ! Cargo.lock -nt Cargo.lock.in ]; then
  cargo generate-lockfile # a first lock file, to take the registry's name from
  registry=$(grep -m1 '^source = ' Cargo.lock)
  sed "s|^checksum = |$registry\n&|" Cargo.lock.in >Cargo.lock.part
  mv Cargo.lock.part Cargo.lock
fi
cargo build --release --locked "$@"
RUSTFLAGS="-C target-cpu=native" cargo build --release --locked --target-dir target/native "$@"
