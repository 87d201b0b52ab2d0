// The scan walks the bytes once, aware of strings and brackets only; whatever else is wrong is left to LLVM's parser,
// which may then recurse since the depth is known to be small.
#include "compiler/spec/Json.h"
#include "compiler/spec/Text.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace batten {

namespace {

std::string positionText(llvm::StringRef text, size_t offset, uint64_t byteOffset) {
  llvm::StringRef before = text.take_front(offset);
  size_t line = before.count('\n') + 1;
  size_t newline = before.rfind('\n');
  size_t column = offset - (newline == llvm::StringRef::npos ? 0 : newline + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column) + " (byte " +
         std::to_string(offset + byteOffset) + ")";
}

/// Past the closing quote of the string that opens at begin, or npos.
size_t stringEnd(llvm::StringRef text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return llvm::StringRef::npos;
}

llvm::Error scan(llvm::StringRef text, llvm::StringRef file, uint64_t byteOffset) {
  struct Frame {
    bool isObject;
    bool wantsKey;
    llvm::DenseSet<llvm::StringRef> keys;
  };
  std::vector<Frame> stack;
  std::vector<std::unique_ptr<std::string>> unescaped; // keys spelled with escapes, kept for the sets
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      size_t end = stringEnd(text, i);
      if (end == llvm::StringRef::npos)
        return llvm::Error::success(); // a syntax error: the parser reports it
      if (!stack.empty() && stack.back().wantsKey) {
        llvm::StringRef key = text.slice(i + 1, end - 1);
        if (key.contains('\\')) {
          llvm::Expected<llvm::json::Value> literal = llvm::json::parse(text.slice(i, end));
          if (!literal) {
            llvm::consumeError(literal.takeError());
            return llvm::Error::success();
          }
          unescaped.push_back(std::make_unique<std::string>(literal->getAsString()->str()));
          key = *unescaped.back();
        }
        if (!stack.back().keys.insert(key).second)
          return makeError(file + ": duplicate key " + quoted(key) + " at " + positionText(text, i, byteOffset));
        stack.back().wantsKey = false;
      }
      i = end - 1;
    } else if (c == '{' || c == '[') {
      if (stack.size() == kMostJsonDepth)
        return makeError(file + ": nested deeper than " + llvm::Twine(kMostJsonDepth) + " levels at " +
                         positionText(text, i, byteOffset));
      stack.push_back({c == '{', c == '{', {}});
    } else if (c == '}' || c == ']') {
      if (stack.empty() || stack.back().isObject != (c == '}'))
        return llvm::Error::success();
      stack.pop_back();
    } else if (c == ',' && !stack.empty()) {
      stack.back().wantsKey = stack.back().isObject;
    }
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef file, uint64_t byteOffset) {
  size_t fault = 0;
  if (!llvm::json::isUTF8(text, &fault))
    return makeError(file + ": not UTF-8 at " + positionText(text, fault, byteOffset));
  if (llvm::Error error = scan(text, file, byteOffset))
    return std::move(error);
  llvm::Expected<llvm::json::Value> document = llvm::json::parse(text);
  if (document)
    return document;
  // LLVM's message is "[line:column, byte=offset]: reason", with its column from 0; only the offset and reason are used.
  std::string message = llvm::toString(document.takeError());
  llvm::StringRef rest = message, reason = message;
  size_t offset = 0;
  if (rest.consume_front("[")) {
    auto [position, tail] = rest.split("]: ");
    if (!position.rsplit("byte=").second.getAsInteger(10, offset) && offset <= text.size())
      reason = tail;
    if (reason.starts_with("Invalid JSON value") && offset > 0)
      --offset; // LLVM points behind the byte that it stumbled over
  }
  std::string lower = reason.str();
  if (!lower.empty())
    lower[0] = llvm::toLower(lower[0]);
  return makeError(file + ": invalid JSON at " + positionText(text, offset, byteOffset) + ": " + lower);
}

std::string describeJson(const llvm::json::Value &value) {
  if (value.kind() == llvm::json::Value::Array)
    return "an array";
  if (value.kind() == llvm::json::Value::Object)
    return "an object";
  if (std::optional<llvm::StringRef> text = value.getAsString())
    return "the string " + quoted(*text);
  std::string out;
  llvm::raw_string_ostream(out) << value;
  return out;
}

llvm::Expected<JsonObject> JsonObject::root(const llvm::json::Value &document, llvm::StringRef file) {
  if (const llvm::json::Object *object = document.getAsObject())
    return JsonObject(object, file.str(), "");
  return makeError(file + ": " + describeJson(document) + " found, an object wanted");
}

std::string JsonObject::where(llvm::StringRef key) const {
  return fileName + ": " + (path.empty() ? "" : path + ".") + key.str();
}

bool JsonObject::has(llvm::StringRef key) const {
  const llvm::json::Value *value = object->get(key);
  return value && value->kind() != llvm::json::Value::Null;
}

llvm::Error JsonObject::wrongType(llvm::StringRef key, llvm::StringRef wanted) const {
  return makeError(where(key) + ": " + describeJson(*object->get(key)) + " found, " + wanted + " wanted");
}

llvm::Expected<std::optional<int64_t>> JsonObject::integer(llvm::StringRef key, int64_t least, int64_t most) const {
  if (!has(key))
    return std::nullopt;
  std::optional<int64_t> value = object->get(key)->getAsInteger();
  if (!value || *value < least || *value > most)
    return wrongType(key, ("an integer within [" + llvm::Twine(least) + ", " + llvm::Twine(most) + "]").str());
  return value;
}

llvm::Expected<int64_t> JsonObject::requiredInteger(llvm::StringRef key, int64_t least, int64_t most) const {
  if (!object->get(key))
    return makeError(where(key) + " is missing: an integer within [" + llvm::Twine(least) + ", " + llvm::Twine(most) +
                     "] wanted");
  llvm::Expected<std::optional<int64_t>> value = integer(key, least, most);
  if (!value)
    return value.takeError();
  if (!*value)
    return wrongType(key, ("an integer within [" + llvm::Twine(least) + ", " + llvm::Twine(most) + "]").str());
  return **value;
}

llvm::Expected<std::optional<double>> JsonObject::number(llvm::StringRef key) const {
  if (!has(key))
    return std::nullopt;
  std::optional<double> value = object->get(key)->getAsNumber();
  if (!value || !std::isfinite(*value))
    return wrongType(key, "a number");
  return value;
}

llvm::Expected<std::optional<bool>> JsonObject::boolean(llvm::StringRef key) const {
  if (!has(key))
    return std::nullopt;
  std::optional<bool> value = object->get(key)->getAsBoolean();
  if (!value)
    return wrongType(key, "true or false");
  return value;
}

llvm::Expected<std::optional<std::string>> JsonObject::string(llvm::StringRef key) const {
  if (!has(key))
    return std::nullopt;
  std::optional<llvm::StringRef> value = object->get(key)->getAsString();
  if (!value)
    return wrongType(key, "a string");
  return value->str();
}

llvm::Expected<std::optional<std::vector<std::string>>> JsonObject::strings(llvm::StringRef key) const {
  if (!has(key))
    return std::nullopt;
  const llvm::json::Array *array = object->get(key)->getAsArray();
  if (!array)
    return wrongType(key, "an array of strings");
  std::vector<std::string> out;
  for (size_t i = 0; i < array->size(); ++i) {
    std::optional<llvm::StringRef> value = (*array)[i].getAsString();
    if (!value)
      return makeError(where(key) + "[" + llvm::Twine(i) + "]: " + describeJson((*array)[i]) +
                       " found, a string wanted");
    out.push_back(value->str());
  }
  return out;
}

llvm::Expected<std::optional<JsonObject>> JsonObject::child(llvm::StringRef key) const {
  if (!has(key))
    return std::nullopt;
  const llvm::json::Object *value = object->get(key)->getAsObject();
  if (!value)
    return wrongType(key, "an object");
  return JsonObject(value, fileName, (path.empty() ? "" : path + ".") + key.str());
}

} // namespace batten
