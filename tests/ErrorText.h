// The text of an llvm::Error, or of a success that should not be; for tests of rooms that link LLVM.
#ifndef BATTEN_TESTS_ERRORTEXT_H
#define BATTEN_TESTS_ERRORTEXT_H

#include "tests/TempDir.h"

#include "llvm/Support/Error.h"

#include <gtest/gtest.h>

namespace batten::test {

inline std::string errorText(llvm::Error error) { return error ? llvm::toString(std::move(error)) : "(no error)"; }

template <typename T> std::string errorText(llvm::Expected<T> value) {
  return value ? "(no error)" : llvm::toString(value.takeError());
}

/// Expects text to hold every one of the parts.
inline void expectParts(const std::string &text, std::initializer_list<std::string> parts) {
  for (const std::string &part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

} // namespace batten::test

#endif // BATTEN_TESTS_ERRORTEXT_H
