#!/usr/bin/env bash
# Every test, cheapest first: lints, the release build's tests (lit's among them), then what sanitizers should see. Sets up
# first. The last line counts all: N passed, N failed. Goes on after a failure, so that one run tells all there is.
set -uo pipefail
cd "$(dirname "$0")/.."

reports=build/reports
failures=() # steps other than tests that failed, e.g. a build
say() { echo "test: $*"; }

# step NAME COMMAND..: runs a command that is no test; its failure counts as one.
step() {
  local name=$1 start=$SECONDS
  shift
  say "$name"
  if "$@"; then
    say "$name took $((SECONDS - start)) s"
    return 0
  fi
  say "error: $name failed"
  failures+=("$name")
  return 1
}

# ctest_in NAME FOLDER ARGS..: runs the tests of a build folder and keeps their report.
ctest_in() {
  local name=$1 folder=$2
  shift 2
  say "tests: $name"
  rm -f "$reports/$name.xml"
  ctest --test-dir "$folder" --output-junit "$PWD/$reports/$name.xml" --output-on-failure --no-tests=error --timeout 900 -j 2 "$@" |
    grep -v -e ' Start ' -e 'Passed ' -e '^$'
  [ -f "$reports/$name.xml" ] || failures+=("tests of $name") # no report: none ran
}

# leg PRESET ROOM..: builds and runs the tests of some rooms under a preset. Bundles come from the release build's compiler.
leg() {
  local preset=$1 targets=() room
  shift
  for room in "$@"; do
    [ -f "tests/$room/CMakeLists.txt" ] && targets+=("tests/$room/all")
  done
  configure "$preset" "-DBATTEN_TEST_COMPILER=$PWD/build/release/bin/batten-compile" || return
  step "build $preset" cmake --build --preset "$preset" --target "${targets[@]}" || return
  for room in "$@"; do
    [ -f "tests/$room/CMakeLists.txt" ] && ctest_in "$preset-$room" "build/$preset/tests/$room"
  done
}

configure() { step "configure $1" cmake --preset "$@" --log-level=WARNING; }

finish() { python3 tools/count_tests.py "$reports" "${failures[@]}"; }

mkdir -p "$reports"
rm -f "$reports"/*.xml
step "set up" tools/setup.sh || { finish; exit 1; }
configure release || { finish; exit 1; }
ctest_in lint build/release/tools/lint
if step "build release" cmake --build --preset release; then
  # The real checkpoint, for the tests that need one; they say so and fail where it is missing.
  step "fetch the model" .venv/bin/python tools/minilm.py fetch build/cache/all-MiniLM-L6-v2
  rm -f build/release/test_lit/*.xml
  ctest_in release build/release --label-exclude lint
  cp build/release/test_lit/*.xml "$reports" # each of lit's tests counts, besides the two ctests that ran them
  # With our own assertions, as the debug preset. LLVM's allocators poison memory where their headers are compiled here and
  # don't lift that in the packaged library, so that this poison means nothing.
  export ASAN_OPTIONS=allow_user_poisoning=0
  leg asan runtime layout spec graph artifact passes tools
  step "build asan's passes" cmake --build --preset asan --target batten-opt batten-translate &&
    ctest_in asan-lit build/asan/test_lit
  leg tsan runtime
fi
finish
