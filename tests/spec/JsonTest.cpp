// The scan before the parser, error positions, and typed access.
#include "compiler/spec/Json.h"
#include "tests/ErrorText.h"

using namespace batten;
using namespace batten::test;

TEST(JsonTest, ErrorsHaveLineColumnAndByte) {
  expectParts(errorText(parseJson("hidden_size: 16\n", "config.json")), {"config.json", "line 1, column 1 (byte 0)"});
  expectParts(errorText(parseJson("{\n  \"a\": 1,\n  \"b\": x\n}", "f")), {"f: invalid JSON at line 3, column 8"});
  expectParts(errorText(parseJson("{} {}", "f", 100)), {"line 1, column 4 (byte 103)", "end of document"});
  expectParts(errorText(parseJson("", "f")), {"f: invalid JSON at line 1, column 1"});
  expectParts(errorText(parseJson("{\"a\": \"open", "f")), {"f: invalid JSON"});
}

TEST(JsonTest, R53_InvalidUtf8HasItsOffset) {
  expectParts(errorText(parseJson("{\"a\xff\": 1}", "f", 8)), {"f: not UTF-8 at line 1, column 4 (byte 11)"});
  expectParts(errorText(parseJson("\n\xc3", "f")), {"f: not UTF-8 at line 2, column 1 (byte 1)"});
}

TEST(JsonTest, R21_DuplicateKeysAreRefusedAtAnyDepth) {
  expectParts(errorText(parseJson("{\n\"a\": 1,\n \"a\": 1}", "f")), {"f: duplicate key \"a\" at line 3, column 2"});
  expectParts(errorText(parseJson("{\"x\": [{\"b\": {}, \"c\": 0, \"b\": 2}]}", "f")), {"duplicate key \"b\""});
  expectParts(errorText(parseJson("{\"hidden_size\": 1, \"hidden\\u005fsize\": 2}", "f")),
              {"duplicate key \"hidden_size\""});
  for (const char *fine : {"{\"a\": {\"a\": \"a\"}, \"b\": [\"a\", \"a\"], \"c\": \"{\\\"a\\\":1,\"}", "[]", "3",
                           "{\"a\": [{\"k\": 1}, {\"k\": 1}]}"})
    EXPECT_EQ(errorText(parseJson(fine, "f")), "(no error)") << fine;
}

TEST(JsonTest, SE08_DepthIsBoundedBeforeTheParser) {
  std::string nested(kMostJsonDepth, '[');
  EXPECT_EQ(errorText(parseJson(nested + std::string(kMostJsonDepth, ']'), "f")), "(no error)");
  expectParts(errorText(parseJson("[" + nested, "f")), {"nested deeper than 64 levels"});
  expectParts(errorText(parseJson(std::string(3000000, '{'), "f")), {"f: "});
  std::string objects;
  for (int i = 0; i < 1000000; ++i)
    objects += "{\"a\":";
  expectParts(errorText(parseJson(objects, "f")), {"nested deeper than 64 levels"});
}

TEST(JsonTest, R21_IntegralFloatsCountAndOtherTypesNameTheirPath) {
  llvm::Expected<llvm::json::Value> document = parseJson(
      R"({"f": 768.0, "e": 1.5e2, "t": "768", "n": -1, "b": 1e30, "h": 0.5, "z": null, "l": [1], "o": {"p": {"q": true}},
          "big": 99999999999999999999})",
      "config.json");
  ASSERT_TRUE(static_cast<bool>(document)) << llvm::toString(document.takeError());
  llvm::Expected<JsonObject> root = JsonObject::root(*document, "config.json");
  ASSERT_TRUE(static_cast<bool>(root));
  EXPECT_EQ(llvm::cantFail(root->integer("f", 1, 1000)), 768);
  EXPECT_EQ(llvm::cantFail(root->integer("e", 1, 1000)), 150);
  EXPECT_EQ(llvm::cantFail(root->integer("z", 1, 1000)), std::nullopt);
  EXPECT_EQ(llvm::cantFail(root->integer("absent", 1, 1000)), std::nullopt);
  EXPECT_EQ(errorText(root->integer("t", 1, 1000)),
            "config.json: t: the string \"768\" found, an integer within [1, 1000] wanted");
  EXPECT_EQ(errorText(root->integer("n", 1, 1000)), "config.json: n: -1 found, an integer within [1, 1000] wanted");
  for (const char *key : {"b", "h", "l", "o", "big"})
    expectParts(errorText(root->integer(key, 1, 1000)),
                {std::string("config.json: ") + key + ": ", "an integer within"});
  EXPECT_EQ(errorText(root->requiredInteger("z", 1, 9)), "config.json: z: null found, an integer within [1, 9] wanted");
  EXPECT_EQ(errorText(root->requiredInteger("gone", 1, 9)),
            "config.json: gone is missing: an integer within [1, 9] wanted");
  llvm::Expected<std::optional<JsonObject>> o = root->child("o");
  ASSERT_TRUE(o && *o);
  EXPECT_EQ(errorText((*o)->string("p")), "config.json: o.p: an object found, a string wanted");
  expectParts(errorText(root->strings("l")), {"config.json: l[0]: 1 found, a string wanted"});
  expectParts(errorText(root->boolean("f")), {"config.json: f: ", "true or false wanted"});
  expectParts(errorText(root->child("l")), {"an array found, an object wanted"});
  expectParts(errorText(root->number("t")), {"a number wanted"});
}
