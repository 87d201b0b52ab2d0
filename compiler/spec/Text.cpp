// Helpers for error texts; see the header.
#include "compiler/spec/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

namespace batten {

llvm::Error makeError(const llvm::Twine &text) {
  return llvm::make_error<llvm::StringError>(text, llvm::inconvertibleErrorCode());
}

std::string quoted(llvm::StringRef name) {
  constexpr size_t kMost = 200, kKept = 90;
  auto escape = [](llvm::StringRef part) {
    bool utf8 = llvm::json::isUTF8(part);
    std::string out;
    for (unsigned char c : part) {
      if (c < 0x20 || c == 0x7F || c == '"' || (c >= 0x80 && !utf8))
        out += "\\x" + llvm::utohexstr(c, /*LowerCase=*/true, 2);
      else
        out += static_cast<char>(c);
    }
    return out;
  };
  if (name.size() <= kMost)
    return "\"" + escape(name) + "\"";
  return "\"" + escape(name.take_front(kKept)) + "..." + escape(name.take_back(kKept)) + "\"";
}

std::string dimsText(llvm::ArrayRef<int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::string joined(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef separator) {
  return llvm::join(names, separator);
}

llvm::Error joinCauses(std::vector<std::string> causes) {
  std::string text;
  for (size_t i = 1; i < causes.size(); ++i)
    text += causes[i] + "\n";
  return makeError(text + causes.front());
}

std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known) {
  if (name.size() > 64)
    return "";
  unsigned size = static_cast<unsigned>(name.size());
  unsigned most = size < 4 ? 1 : std::max(2u, size / 3), best = most + 1; // two: an exchange of neighbours
  llvm::StringRef nearest;
  for (llvm::StringRef candidate : known) {
    unsigned distance = name.edit_distance_insensitive(candidate, /*AllowReplacements=*/true, most);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : "; did you mean '" + nearest.str() + "'?";
}

bool isPlainName(llvm::StringRef name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == llvm::StringRef::npos &&
         name.find('\0') == llvm::StringRef::npos;
}

std::string joinPath(llvm::StringRef dir, llvm::StringRef name) {
  if (dir.empty())
    return name.str();
  if (name.empty())
    return dir.str();
  return (dir + (dir.ends_with("/") ? "" : "/") + name).str();
}

} // namespace batten
