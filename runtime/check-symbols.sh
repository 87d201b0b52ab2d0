#!/bin/sh
# Fails where the runtime needs more than libc, or where the shared library shows more or less than the C API.
# usage: check-symbols.sh NM libbatten_runtime.a libbatten.so batten.h
set -eu
nm=$1 archive=$2 shared=$3 header=$4
# Mangled names that no object of the archive defines are the C++ library's; so are these helpers of its ABI.
"$nm" -A "$archive" 2>/dev/null | awk '
  $NF ~ /^_Z/ && $(NF - 1) != "U" { defined[$NF] = 1 }
  $(NF - 1) == "U" { needed[$NF] = 1 }
  END {
    for (name in needed)
      if ((name ~ /^_Z/ && !(name in defined)) || name ~ /^(__cxa_|__gxx_|__dynamic_cast|_Unwind_)/) {
        print "needs the C++ library: " name; bad = 1
      }
    exit bad
  }'
# Sanitizers add symbols of their own.
"$nm" -D --defined-only "$shared" | awk '{ print $NF }' |
  grep -vE '^(__asan|__ubsan|__tsan|__sanitizer|__odr|__start_|__stop_|_init$|_fini$|\.)' | sort > "$shared.shown"
sed -n '/^typedef/d; s/^[a-z].*[ *]\(batten_[a-z0-9_]*\)(.*/\1/p' "$header" | sort > "$shared.wanted"
diff "$shared.wanted" "$shared.shown" || { echo "the shared library shows other symbols than batten.h declares"; exit 1; }
[ "$(wc -l < "$shared.wanted")" -gt 30 ]
if readelf -d "$shared" | grep NEEDED | grep -E 'stdc|gcc_s|c\+\+'; then
  echo "the shared library needs the C++ library"; exit 1
fi
