// What Spec.cpp uses before and around its TOML parser: the limits that keep the parser's recursion shallow, checks of names
// and bucket counts shared by the TOML form and the table form. Not for other rooms.
#ifndef BATTEN_COMPILER_SPEC_SPECTEXT_H
#define BATTEN_COMPILER_SPEC_SPECTEXT_H

#include "compiler/spec/Spec.h"

#include <map>

namespace batten {

/// Refuses text that is too large, nests too deep, or has dotted keys with too many parts. Errors: path:line:column.
llvm::Error checkTomlShape(llvm::StringRef text, llvm::StringRef path);

/// Checks a name of a lane or stage, which become file names and symbols. Errors: place: what kind, the name.
llvm::Error checkName(llvm::StringRef name, llvm::StringRef kind, const SpecPlace &place);

/// Checks the three counts of a bucket: 1 to kMostBucketCount tokens and sequences, 0 to that many markers.
llvm::Expected<Bucket> makeBucket(int64_t tokens, int64_t seqs, int64_t markers, const SpecPlace &place);

/// Sorts a stage's buckets and refuses those that are there twice; places[i] is that of buckets[i].
llvm::Error finishStage(StageSpec &stage, const std::vector<SpecPlace> &places);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_SPECTEXT_H
