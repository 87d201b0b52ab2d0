// The text form of kernel keys, to and from.
#include "compiler/kernels/KernelKey.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <charconv>

using namespace batten;
using llvm::StringRef;
using llvm::Twine;

std::string batten::shortestFloat(float value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return error == std::errc() ? std::string(buffer, end) : std::string("nan");
}

namespace {

/// As shortestFloat, in the form that MLIR reads: with a decimal point.
std::string mlirFloat(float value) {
  std::string text = shortestFloat(value);
  size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos)
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text + " : f32";
}

/// Calls visitor.{integer,optional,decimal,unit,word,list,..}(name, field) for each attribute of the key's op, in printed order.
template <typename Key, typename Visitor> void visitAttributes(Key &key, Visitor &&visitor) {
  switch (key.op) {
  case KernelOp::Linear:
    visitor.integer("k", key.k);
    visitor.integer("n", key.n);
    visitor.unit("bias", key.bias);
    visitor.activation("act", key.act);
    visitor.unit("residual", key.residual);
    visitor.element("storage", key.storage);
    visitor.element("math", key.math);
    return;
  case KernelOp::Embed:
    visitor.integer("width", key.width);
    visitor.unit("words", key.words);
    visitor.unit("types", key.types);
    visitor.unit("positions", key.positions);
    visitor.integer("offset", key.offset);
    visitor.element("storage", key.storage);
    return;
  case KernelOp::LayerNorm:
    visitor.integer("width", key.width);
    visitor.decimal("eps", key.eps);
    visitor.unit("weight", key.weight);
    visitor.unit("bias", key.bias);
    return;
  case KernelOp::RmsNorm:
    visitor.integer("width", key.width);
    visitor.decimal("eps", key.eps);
    visitor.unit("weight", key.weight);
    return;
  case KernelOp::Attention:
  case KernelOp::Rope:
    visitor.integer("heads", key.heads);
    visitor.nonzero("kv_heads", key.kvHeads);
    visitor.integer("head_width", key.headWidth);
    if (key.op == KernelOp::Rope)
      return;
    visitor.optional("window", key.window);
    visitor.decimal("scale", key.scale);
    return;
  case KernelOp::Gated:
    visitor.integer("width", key.width);
    visitor.activation("act", key.act);
    visitor.unit("second", key.second);
    return;
  case KernelOp::Pool:
    visitor.integer("width", key.width);
    visitor.poolKind("kind", key.pool);
    return;
  case KernelOp::L2Normalize:
    visitor.integer("width", key.width);
    visitor.decimal("eps", key.eps);
    return;
  case KernelOp::Activation:
    visitor.integer("width", key.width);
    visitor.activation("act", key.act);
    return;
  case KernelOp::Add:
  case KernelOp::AddType:
  case KernelOp::GatherMarkers:
  case KernelOp::DecisionFeatures:
  case KernelOp::Softmax:
    visitor.integer("width", key.width);
    return;
  case KernelOp::Slice:
    visitor.integer("width_in", key.widthIn);
    visitor.integer("begin", key.begin);
    visitor.integer("width", key.width);
    return;
  case KernelOp::ConcatCols:
    visitor.list("widths", key.widths);
    return;
  }
}

struct Printer {
  std::vector<std::string> parts;

  void add(StringRef name, const Twine &value) { parts.push_back((name + " = " + value).str()); }
  void integer(StringRef name, int64_t value) { add(name, Twine(value)); }
  void nonzero(StringRef name, int64_t value) {
    if (value)
      integer(name, value);
  }
  void optional(StringRef name, std::optional<int64_t> value) {
    if (value)
      integer(name, *value);
  }
  void decimal(StringRef name, float value) { add(name, mlirFloat(value)); }
  void unit(StringRef name, bool value) {
    if (value)
      parts.push_back(name.str());
  }
  void activation(StringRef name, ActivationKind value) { add(name, "\"" + activationName(value) + "\""); }
  void poolKind(StringRef name, PoolKind value) { add(name, "\"" + poolKindName(value) + "\""); }
  void element(StringRef name, layout::Elem value) {
    if (value != layout::Elem::F32)
      add(name, Twine("\"") + layout::elemName(value) + "\"");
  }
  void list(StringRef name, const std::vector<int64_t> &value) {
    add(name, "[" + llvm::join(llvm::map_range(value, [](int64_t v) { return std::to_string(v); }), ", ") + "]");
  }
};

/// An element type that is not f32, which is the one left out.
std::optional<layout::Elem> parseNarrow(StringRef name) {
  for (layout::Elem elem : {layout::Elem::F16, layout::Elem::BF16, layout::Elem::I8})
    if (name == layout::elemName(elem))
      return elem;
  return std::nullopt;
}

/// An attribute as text: `name = value`, or a unit, whose value is empty.
struct TextAttribute {
  StringRef name, value;
  bool used = false;
};

/// Fills a key from text attributes; remembers the first thing wrong.
struct Reader {
  llvm::MutableArrayRef<TextAttribute> attributes;
  std::string problem;

  void fail(const Twine &text) {
    if (problem.empty())
      problem = text.str();
  }
  TextAttribute *find(StringRef name) {
    for (TextAttribute &attribute : attributes)
      if (attribute.name == name) {
        attribute.used = true;
        return &attribute;
      }
    return nullptr;
  }
  /// The value without a type suffix, or nothing where the attribute is missing or of another kind.
  std::optional<StringRef> value(StringRef name, StringRef wanted, StringRef suffix) {
    TextAttribute *attribute = find(name);
    if (!attribute) {
      fail("attribute '" + name + "' is missing");
      return std::nullopt;
    }
    auto [text, type] = attribute->value.split(':');
    if (text.trim().empty() || (!type.empty() && type.trim() != suffix)) {
      fail("attribute '" + name + "' is '" + attribute->value + "', " + wanted + " wanted");
      return std::nullopt;
    }
    return text.trim();
  }
  void integer(StringRef name, int64_t &field) {
    auto text = value(name, "an integer", "i64");
    if (text && text->getAsInteger(10, field))
      fail("attribute '" + name + "' is '" + *text + "', an integer wanted");
  }
  void nonzero(StringRef name, int64_t &field) {
    if (!find(name))
      return;
    integer(name, field);
    if (field == 0)
      fail("attribute '" + name + "' is 0, left out or at least 1 wanted");
  }
  void optional(StringRef name, std::optional<int64_t> &field) {
    if (find(name))
      integer(name, field.emplace());
  }
  void decimal(StringRef name, float &field) {
    auto text = value(name, "a float", "f32");
    if (!text)
      return;
    auto [end, error] = std::from_chars(text->begin(), text->end(), field);
    if (error != std::errc() || end != text->end())
      fail("attribute '" + name + "' is '" + *text + "', a float wanted");
  }
  void unit(StringRef name, bool &field) {
    TextAttribute *attribute = find(name);
    field = attribute != nullptr;
    if (attribute && !attribute->value.empty())
      fail("attribute '" + name + "' has the value '" + attribute->value + "', none wanted");
  }
  template <typename Enum> void word(StringRef name, Enum &field, std::optional<Enum> (*parse)(StringRef)) {
    auto text = value(name, "a name in quotes", "");
    if (!text)
      return;
    StringRef bare = *text;
    bool quoted = bare.consume_front("\"") && bare.consume_back("\"");
    if (auto parsed = quoted ? parse(bare) : std::nullopt)
      field = *parsed;
    else
      fail("attribute '" + name + "' is " + *text + ", which is no known name");
  }
  void activation(StringRef name, ActivationKind &field) { word(name, field, parseActivation); }
  void poolKind(StringRef name, PoolKind &field) { word(name, field, parsePoolKind); }
  void element(StringRef name, layout::Elem &field) {
    if (find(name))
      word(name, field, parseNarrow);
  }
  void list(StringRef name, std::vector<int64_t> &field) {
    auto text = value(name, "a list of integers", "");
    if (!text)
      return;
    StringRef rest = *text;
    if (!rest.consume_front("[") || !rest.consume_back("]")) {
      fail("attribute '" + name + "' is '" + *text + "', a list of integers wanted");
      return;
    }
    for (StringRef item : llvm::split(rest, ',')) {
      int64_t width = 0;
      if (item.trim().getAsInteger(10, width)) {
        fail("attribute '" + name + "' holds '" + item.trim() + "', an integer wanted");
        return;
      }
      field.push_back(width);
    }
  }
};

/// Splits at commas outside of brackets.
std::vector<TextAttribute> splitAttributes(StringRef text) {
  std::vector<TextAttribute> attributes;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[')
      ++depth;
    if (i < text.size() && text[i] == ']')
      --depth;
    if (i < text.size() && (text[i] != ',' || depth != 0))
      continue;
    auto [name, value] = text.slice(begin, i).split('=');
    begin = i + 1;
    if (!name.trim().empty() || !value.trim().empty())
      attributes.push_back({name.trim(), value.trim()});
  }
  return attributes;
}

/// All ops, for an error's text.
std::string kernelOpNames() {
  std::string names;
  for (int op = 0; op <= static_cast<int>(KernelOp::Softmax); ++op)
    names += (op ? ", " : "") + kernelOpName(static_cast<KernelOp>(op)).str();
  return names;
}

} // namespace

std::string batten::printKernelKey(const KernelKey &key) {
  Printer printer;
  visitAttributes(key, printer);
  return (kernelOpName(key.op) + " {" + llvm::join(printer.parts, ", ") + "}").str();
}

llvm::Expected<KernelKey> batten::parseKernelKey(StringRef text) {
  auto fail = [&](const Twine &problem) { return llvm::createStringError("kernel key '" + text + "': " + problem); };
  auto [opName, rest] = text.trim().split(' ');
  auto op = parseKernelOp(opName);
  if (!op)
    return fail("unknown op '" + opName + "', one of " + kernelOpNames() + " wanted");
  rest = rest.trim();
  if (!rest.consume_front("{") || !rest.consume_back("}"))
    return fail("attributes in braces wanted after the op");
  std::vector<TextAttribute> attributes = splitAttributes(rest);
  KernelKey key;
  key.op = *op;
  Reader reader{attributes, {}};
  visitAttributes(key, reader);
  if (!reader.problem.empty())
    return fail(reader.problem);
  for (const TextAttribute &attribute : attributes)
    if (!attribute.used)
      return fail("unknown or repeated attribute '" + attribute.name + "'");
  if (llvm::Error error = verifyKernelKey(key))
    return std::move(error);
  return key;
}
