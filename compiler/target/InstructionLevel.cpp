// Encodings first (EVEX is AVX-512, its maps above 3 and REX2 are newer still), then families of names.
#include "compiler/target/InstructionLevel.h"

using namespace batten;
using llvm::StringRef;

namespace {

/// Names that begin so belong to an extension that no level has. A target may have the feature that brings them.
struct Family {
  StringRef prefix, extension;
  uint64_t feature = 0;
};

constexpr Family kNewer[] = {
    {"vpdpbusd", "VNNI", BATTEN_X86_AVX512_VNNI},
    {"vpdp", "VNNI"},
    {"vp4dp", "AVX512-4VNNIW"},
    {"v4f", "AVX512-4FMAPS"},
    {"vpmadd52", "IFMA"},
    {"vdpbf16", "BF16", BATTEN_X86_AVX512_BF16},
    {"vcvtneps2bf16", "BF16", BATTEN_X86_AVX512_BF16},
    {"vcvtne", "BF16"},
    {"vbcstne", "AVX-NE-CONVERT"},
    {"vpopcnt", "VPOPCNTDQ or BITALG"},
    {"vpshufbitqmb", "BITALG"},
    {"vpshld", "VBMI2"},
    {"vpshrd", "VBMI2"},
    {"vpcompressb", "VBMI2"},
    {"vpcompressw", "VBMI2"},
    {"vpexpandb", "VBMI2"},
    {"vpexpandw", "VBMI2"},
    {"vpermb", "VBMI"},
    {"vpermi2b", "VBMI"},
    {"vpermt2b", "VBMI"},
    {"vpmultishiftqb", "VBMI"},
    {"vp2intersect", "VP2INTERSECT"},
    {"vexp2", "AVX512-ER"},
    {"vrcp28", "AVX512-ER"},
    {"vrsqrt28", "AVX512-ER"},
    {"vgatherpf", "AVX512-PF"},
    {"vscatterpf", "AVX512-PF"},
    {"vgf2p8", "GFNI"},
    {"gf2p8", "GFNI"},
    {"aes", "AES"},
    {"vaes", "AES"},
    {"pclmul", "PCLMULQDQ"},
    {"vpclmul", "PCLMULQDQ"},
    {"sha1", "SHA"},
    {"sha256", "SHA"},
    {"vsha512", "SHA512"},
    {"vsm3", "SM3"},
    {"vsm4", "SM4"},
    {"adcx", "ADX"},
    {"adox", "ADX"},
    {"rdrand", "RDRAND"},
    {"rdseed", "RDSEED"},
    {"tile", "AMX"},
    {"tdp", "AMX"},
    {"ldtilecfg", "AMX"},
    {"sttilecfg", "AMX"},
    {"prefetchw", "PRFCHW"},
    {"prefetchit", "PREFETCHI"},
    {"clwb", "CLWB"},
    {"clflushopt", "CLFLUSHOPT"},
    {"cldemote", "CLDEMOTE"},
    {"movdir", "MOVDIRI"},
    {"serialize", "SERIALIZE"},
    {"vfmaddp", "FMA4"},
    {"vfmadds", "FMA4"},
};

bool isLegacyPrefix(uint8_t byte) {
  return byte == 0x66 || byte == 0x67 || byte == 0xF0 || byte == 0xF2 || byte == 0xF3 || byte == 0x26 || byte == 0x2E ||
         byte == 0x36 || byte == 0x3E || byte == 0x64 || byte == 0x65;
}

} // namespace

StringRef batten::extensionBeyond(const Target &target, llvm::ArrayRef<uint8_t> bytes, StringRef mnemonic) {
  bool has512 = target.features & BATTEN_X86_AVX512F;
  while (!bytes.empty() && isLegacyPrefix(bytes[0]))
    bytes = bytes.drop_front();
  if (bytes.size() > 1) {
    if (bytes[0] == 0xD5)
      return "APX";
    if (bytes[0] == 0x8F && (bytes[1] & 0x1F) >= 8)
      return "XOP";
    if (bytes[0] == 0x62 && !has512)
      return "AVX-512";
    if (bytes[0] == 0x62 && (bytes[1] & 7) > 3) // the opcode map
      return (bytes[1] & 7) == 4 ? "APX" : "AVX512-FP16";
    bool isVex = bytes[0] == 0xC4 || bytes[0] == 0xC5;
    if (isVex && mnemonic.starts_with("k") && !has512) // mask registers
      return "AVX-512";
    if (isVex && mnemonic.starts_with("vpdp"))
      return "AVX-VNNI";
  }
  for (const Family &family : kNewer)
    if (mnemonic.starts_with(family.prefix))
      return target.features & family.feature ? "" : family.extension;
  return "";
}
