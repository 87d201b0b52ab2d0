// `batten run --jsonl`: sequences as lines of JSON on standard input, answers as lines on standard output.
#ifndef BATTEN_TOOLS_BATTEN_LINES_H
#define BATTEN_TOOLS_BATTEN_LINES_H

#include "tools/batten/Batches.h"

namespace batten::tools {

/// Answers every line of standard input, in order. Sequences are gathered until the next would fit no bucket, or until
/// the writer pauses: whoever waits for an answer before the next line gets it. Memory is bounded by the largest bucket
/// and by the longest line allowed.
///
/// Errors: Failure "line N: reason" for the first bad line, after the lines before it were answered.
void runLines(const Engine &engine, const Lane &lane);

} // namespace batten::tools

#endif // BATTEN_TOOLS_BATTEN_LINES_H
