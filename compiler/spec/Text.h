// Small helpers for error texts, shared by all readers of this room: quoted names, shapes, joined causes, near names.
#ifndef BATTEN_COMPILER_SPEC_TEXT_H
#define BATTEN_COMPILER_SPEC_TEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace batten {

/// An error with the given text: lower case, no full stop, what was found and what was wanted.
llvm::Error makeError(const llvm::Twine &text);

/// name in double quotes, with control characters and invalid UTF-8 escaped and long names shortened in the middle.
std::string quoted(llvm::StringRef name);

/// "[24, 16]"
std::string dimsText(llvm::ArrayRef<int64_t> shape);

/// "a, b, c"
std::string joined(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef separator = ", ");

/// One error out of several causes, one a line; the first cause is the last line. causes must not be empty.
llvm::Error joinCauses(std::vector<std::string> causes);

/// "; did you mean 'x'?", or "" where no known name is near.
std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known);

/// True for a name that can only mean an entry of the directory it is used in: not empty, no '/', no NUL, not "." or "..".
bool isPlainName(llvm::StringRef name);

/// dir/name, or the other one where one is empty.
std::string joinPath(llvm::StringRef dir, llvm::StringRef name);

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_TEXT_H
