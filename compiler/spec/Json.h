// JSON as checkpoints and configs have it: LLVM's parser behind a scan that it lacks (size and depth before any recursion,
// UTF-8 with the offset of the fault, duplicate keys), and typed access whose errors name the file and the path of the key.
#ifndef BATTEN_COMPILER_SPEC_JSON_H
#define BATTEN_COMPILER_SPEC_JSON_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace batten {

/// Most bytes of a config file and of an index, and most nesting of any JSON document.
inline constexpr uint64_t kMostConfigBytes = 4u << 20;
inline constexpr uint64_t kMostIndexBytes = 64u << 20;
inline constexpr unsigned kMostJsonDepth = 64;

/// Parses text that came from file. byteOffset is added to the byte offsets in errors (a header inside a larger file).
///
/// Errors: invalid UTF-8, nesting beyond kMostJsonDepth, a key that is twice in one object, syntax; each with line, column
///         (both from 1) and byte.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef file, uint64_t byteOffset = 0);

/// "12", "\"text\"", "null", "an array": a value for an error text.
std::string describeJson(const llvm::json::Value &value);

/// An object of a document that outlives it, with what errors need to name a key. Integral floats count as integers;
/// null counts as absent, except where a value is required.
class JsonObject {
public:
  /// The document's root. Errors: it is no object.
  static llvm::Expected<JsonObject> root(const llvm::json::Value &document, llvm::StringRef file);

  const std::string &file() const { return fileName; }
  const llvm::json::Object &raw() const { return *object; }
  /// "file: path.to.key", for errors about it.
  std::string where(llvm::StringRef key) const;
  /// True where the key is there and not null.
  bool has(llvm::StringRef key) const;

  /// Errors of all: a value of another type, or an integer out of [least, most].
  llvm::Expected<std::optional<int64_t>> integer(llvm::StringRef key, int64_t least, int64_t most) const;
  llvm::Expected<std::optional<double>> number(llvm::StringRef key) const;
  llvm::Expected<std::optional<bool>> boolean(llvm::StringRef key) const;
  llvm::Expected<std::optional<std::string>> string(llvm::StringRef key) const;
  llvm::Expected<std::optional<std::vector<std::string>>> strings(llvm::StringRef key) const;
  llvm::Expected<std::optional<JsonObject>> child(llvm::StringRef key) const;
  /// Errors: also absent or null.
  llvm::Expected<int64_t> requiredInteger(llvm::StringRef key, int64_t least, int64_t most) const;

private:
  JsonObject(const llvm::json::Object *object, std::string file, std::string path)
      : object(object), fileName(std::move(file)), path(std::move(path)) {}
  llvm::Error wrongType(llvm::StringRef key, llvm::StringRef wanted) const;

  const llvm::json::Object *object;
  std::string fileName;
  std::string path;
};

} // namespace batten

#endif // BATTEN_COMPILER_SPEC_JSON_H
