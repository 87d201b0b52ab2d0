// Targets, objects, images and the check of machine code: deterministic, the layout that ld.lld gives too, readable by
// binary tools, and refusals of whatever would need a loader or a reviewer.
#include "compiler/kernels/Emit.h"
#include "compiler/target/DisassemblyCheck.h"
#include "compiler/target/ImageWriter.h"
#include "compiler/target/InstructionLevel.h"
#include "compiler/target/ObjectEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <thread>

using namespace batten;

namespace {

std::vector<KernelKey> someKeys() {
  return {KernelKey::linear(50, 40, true, ActivationKind::GeluErf), KernelKey::attention(2, 32, 0.25f),
          KernelKey::layerNorm(40, 1e-5f), KernelKey::pooling(40, PoolKind::Max)};
}

Target targetOf(const char *name) { return cantFail(lookupTarget(name)); }

/// The object of the keys' kernels, as emitObject gives it.
std::vector<uint8_t> objectOf(const std::vector<KernelKey> &keys, const Target &target) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  registerObjectDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  cantFail(emitKernels(*module, keys, target));
  return cantFail(emitObject(*module, target));
}

/// The object of MLIR text in the LLVM dialect.
std::vector<uint8_t> objectOfText(const char *text, const Target &target) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  registerObjectDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  return cantFail(emitObject(*module, target));
}

/// What the image writer, or else the check, says to MLIR text.
std::string refusal(const char *text, const char *compiledFor = "x86-64-v3", const char *checkedFor = "x86-64-v3") {
  llvm::Expected<Image> image = writeImage(objectOfText(text, targetOf(compiledFor)));
  if (!image)
    return toString(image.takeError());
  llvm::Error error = checkDisassembly(*image, targetOf(checkedFor));
  return error ? toString(std::move(error)) : "";
}

/// For the tests' inline assembly; the product has none.
[[maybe_unused]] const bool kHasAssembler = [] {
  LLVMInitializeX86AsmParser();
  return true;
}();

/// A temporary file that goes with the object.
struct TemporaryFile {
  TemporaryFile(const char *suffix, llvm::ArrayRef<uint8_t> bytes = {}) {
    int file = -1;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("batten-image", suffix, file, path));
    llvm::raw_fd_ostream(file, /*shouldClose=*/true).write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  llvm::SmallString<128> path;
};

/// Runs a program of the LLVM that Batten is built with; gives its exit status.
int runTool(const char *name, std::vector<llvm::StringRef> arguments, llvm::StringRef output = "") {
  std::string program = std::string(BATTEN_LLVM_TOOLS) + "/" + name;
  arguments.insert(arguments.begin(), program);
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), output, llvm::StringRef("")};
  return llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, redirects);
}

} // namespace

TEST(TargetTest, KnownTargetsHaveTheirFeatures) {
  EXPECT_EQ(knownTargetNames(),
            (std::vector<std::string>{"x86-64-v3", "x86-64-v4", "x86-64-v4+avx512_bf16", "x86-64-v4+avx512_vnni"}));
  EXPECT_EQ(targetOf("x86-64-v3").features, BATTEN_X86_V3);
  EXPECT_EQ(targetOf("x86-64-v4").features, BATTEN_X86_V4);
  EXPECT_EQ(targetOf("x86-64-v4+avx512_bf16").features, BATTEN_X86_V4 | BATTEN_X86_AVX512_BF16);
  EXPECT_EQ(targetOf("x86-64-v4+avx512_vnni").features, BATTEN_X86_V4 | BATTEN_X86_AVX512_VNNI);
}

TEST(TargetTest, DefaultsAreThoseThatGainInTheMath) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(defaultTargetNames(BATTEN_ELEM_F32), (Names{"x86-64-v3", "x86-64-v4"}));
  EXPECT_EQ(defaultTargetNames(BATTEN_ELEM_BF16), (Names{"x86-64-v4+avx512_bf16"}));
  EXPECT_EQ(defaultTargetNames(BATTEN_ELEM_I8), (Names{"x86-64-v3", "x86-64-v4", "x86-64-v4+avx512_vnni"}));
  EXPECT_EQ(toString(checkMath(targetOf("x86-64-v4"), BATTEN_ELEM_BF16)),
            "target 'x86-64-v4': math bf16 needs avx512_bf16; targets that have it: x86-64-v4+avx512_bf16");
  EXPECT_EQ(toString(checkMath(targetOf("x86-64-v4+avx512_bf16"), BATTEN_ELEM_BF16)), "");
  EXPECT_EQ(toString(checkMath(targetOf("x86-64-v3"), BATTEN_ELEM_I8)), "");
}

// What a target brings beyond its level may stand in its code, and in no other's.
TEST(TargetTest, InstructionsOfFeaturesBelongToTheirTargets) {
  const uint8_t evex[] = {0x62, 0xF2, 0x7D, 0x48, 0x50, 0xC0};
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4"), evex, "vpdpbusd"), "VNNI");
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4+avx512_vnni"), evex, "vpdpbusd"), "");
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4+avx512_vnni"), evex, "vpdpwssd"), "VNNI");
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4+avx512_vnni"), evex, "vdpbf16ps"), "BF16");
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4+avx512_bf16"), evex, "vdpbf16ps"), "");
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4+avx512_bf16"), evex, "vcvtneps2bf16"), "");
  const uint8_t vex[] = {0xC4, 0xE2, 0x7D, 0x50, 0xC0};
  EXPECT_EQ(extensionBeyond(targetOf("x86-64-v4+avx512_vnni"), vex, "vpdpbusd"), "AVX-VNNI");
}

TEST(TargetTest, RefusesUnknownNamesWithTheKnownOnes) {
  EXPECT_EQ(
      toString(lookupTarget("x86-64-v5").takeError()),
      "unknown target 'x86-64-v5'; known targets: x86-64-v3, x86-64-v4, x86-64-v4+avx512_bf16, x86-64-v4+avx512_vnni");
  EXPECT_EQ(toString(lookupTarget("aarch64").takeError()),
            "target 'aarch64' has no code generator yet; known targets: x86-64-v3, x86-64-v4, x86-64-v4+avx512_bf16, "
            "x86-64-v4+avx512_vnni");
}

TEST(ImageTest, SameKeysGiveTheSameBytesOnAnyThread) {
  for (const std::string &name : knownTargetNames()) {
    KernelImage images[3];
    auto make = [&](int i) { images[i] = cantFail(makeKernelImage(someKeys(), targetOf(name.c_str()))); };
    make(0);
    std::thread other(make, 1), third(make, 2);
    other.join();
    third.join();
    EXPECT_EQ(images[0].bytes, images[1].bytes);
    EXPECT_EQ(images[0].bytes, images[2].bytes);
  }
}

TEST(ImageTest, EntriesAreInTheSegment) {
  KernelImage image = cantFail(makeKernelImage(someKeys(), targetOf("x86-64-v4")));
  EXPECT_EQ(image.codeOffset % 4096, 0u);
  EXPECT_LE(image.codeOffset + image.codeBytes, image.bytes.size());
  ASSERT_EQ(image.entries.size(), someKeys().size());
  for (size_t i = 0; i < image.entries.size(); ++i) {
    EXPECT_EQ(image.entries[i].symbol, kernelSymbol(someKeys()[i]));
    EXPECT_GE(image.entries[i].offset, image.codeOffset);
    EXPECT_LE(image.entries[i].offset + image.entries[i].bytes, image.codeOffset + image.codeBytes);
    EXPECT_GT(image.entries[i].bytes, 0u);
  }
}

TEST(ImageTest, IsAnElfFileWithOneExecutableSegmentAndSymbols) {
  KernelImage image = cantFail(makeKernelImage(someKeys(), targetOf("x86-64-v4")));
  llvm::StringRef bytes(reinterpret_cast<const char *>(image.bytes.data()), image.bytes.size());
  auto object = cantFail(llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "image")));
  const auto &file = llvm::cast<llvm::object::ELF64LEObjectFile>(*object).getELFFile();
  unsigned loads = 0;
  for (const auto &segment : cantFail(file.program_headers())) {
    EXPECT_FALSE((segment.p_flags & llvm::ELF::PF_W) && (segment.p_flags & llvm::ELF::PF_X));
    if (segment.p_type != llvm::ELF::PT_LOAD)
      continue;
    ++loads;
    EXPECT_EQ(segment.p_flags, unsigned(llvm::ELF::PF_R | llvm::ELF::PF_X));
    EXPECT_EQ(segment.p_offset, image.codeOffset);
    EXPECT_EQ(segment.p_filesz, image.codeBytes);
  }
  EXPECT_EQ(loads, 1u);
  std::vector<std::string> names;
  for (const auto &symbol : object->symbols())
    names.push_back(cantFail(symbol.getName()).str());
  for (const KernelEntry &entry : image.entries)
    EXPECT_TRUE(llvm::is_contained(names, entry.symbol)) << entry.symbol;
}

TEST(ImageTest, ObjdumpReadsIt) {
  KernelImage image = cantFail(makeKernelImage(someKeys(), targetOf("x86-64-v4")));
  TemporaryFile file("img", image.bytes), text("txt");
  ASSERT_EQ(runTool("llvm-objdump", {"-d", file.path}, text.path), 0);
  auto buffer = llvm::MemoryBuffer::getFile(text.path);
  ASSERT_TRUE(bool(buffer));
  for (const KernelEntry &entry : image.entries) {
    std::string heading = llvm::utohexstr(entry.offset, /*LowerCase=*/true, 16) + " <" + entry.symbol + ">:";
    EXPECT_TRUE((*buffer)->getBuffer().contains(heading)) << heading;
  }
}

// Told to place the sections as the image has them, another linker gives the same bytes, and leaves nothing to relocate.
TEST(ImageTest, AgreesWithLld) {
  for (const std::string &name : knownTargetNames()) {
    std::vector<uint8_t> object = objectOf(someKeys(), targetOf(name.c_str()));
    Image image = cantFail(writeImage(object));
    TemporaryFile objectFile("o", object), script("ld"), linked("so");
    {
      std::error_code error;
      llvm::raw_fd_ostream stream(script.path, error);
      stream << "SECTIONS { . = " << image.codeOffset << "; .text : ALIGN(64) { *(.text .text.*) } "
             << ".rodata : ALIGN(64) { ";
      // Constants in the object's order, as the image has them.
      llvm::StringRef bytes(reinterpret_cast<const char *>(object.data()), object.size());
      auto file = cantFail(llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "object")));
      for (const auto &section : file->sections()) {
        llvm::object::ELFSectionRef elf(section);
        if ((elf.getFlags() & llvm::ELF::SHF_ALLOC) && !section.isText() && section.getSize() &&
            elf.getType() == llvm::ELF::SHT_PROGBITS)
          stream << ". = ALIGN(64); *(" << cantFail(section.getName()) << ") ";
      }
      stream << "} .dynsym : { *(.dynsym) } .gnu.hash : { *(.gnu.hash) } .hash : { *(.hash) } .dynstr : { *(.dynstr) } "
             << "/DISCARD/ : { *(.eh_frame .note* .comment .stack_sizes) } }\n";
    }
    // -O0 keeps mergeable constants as they are.
    ASSERT_EQ(
        runTool("ld.lld", {"-shared", "-O0", "-z", "text", "-T", script.path, "-o", linked.path, objectFile.path}), 0);
    auto buffer = llvm::MemoryBuffer::getFile(linked.path);
    ASSERT_TRUE(bool(buffer));
    auto file = cantFail(llvm::object::ObjectFile::createELFObjectFile((*buffer)->getMemBufferRef()));
    for (const auto &section : file->sections()) {
      llvm::StringRef sectionName = cantFail(section.getName());
      EXPECT_FALSE(sectionName.starts_with(".rela")) << sectionName.str();
      if (sectionName != ".text" && sectionName != ".rodata")
        continue;
      llvm::StringRef contents = cantFail(section.getContents());
      ASSERT_GE(section.getAddress(), image.codeOffset);
      ASSERT_LE(section.getAddress() + contents.size(), image.codeOffset + image.codeBytes) << sectionName.str();
      llvm::StringRef ours(reinterpret_cast<const char *>(image.bytes.data()) + section.getAddress(), contents.size());
      EXPECT_TRUE(ours == contents) << name << " " << sectionName.str();
    }
  }
}

TEST(ImageTest, RefusesUndefinedSymbols) {
  EXPECT_EQ(refusal(R"(llvm.func @expf(f32) -> f32
    llvm.func @k(%x: f32) -> f32 { %0 = llvm.call @expf(%x) : (f32) -> f32
      llvm.return %0 : f32 })"),
            "undefined symbol expf: kernels call nothing outside of themselves");
}

TEST(ImageTest, RefusesLibraryCallsThatLlvmMakes) {
  EXPECT_EQ(refusal(R"(llvm.func @k(%x: f32) -> f32 { %0 = llvm.intr.exp2(%x) : (f32) -> f32
      llvm.return %0 : f32 })"),
            "undefined symbol exp2f: kernels call nothing outside of themselves");
}

TEST(ImageTest, RefusesWritableData) {
  EXPECT_EQ(refusal(R"(llvm.mlir.global internal @state(1 : i32) : i32
    llvm.func @k() -> i32 { %0 = llvm.mlir.addressof @state : !llvm.ptr
      %1 = llvm.load volatile %0 : !llvm.ptr -> i32
      llvm.store volatile %1, %0 : i32, !llvm.ptr
      llvm.return %1 : i32 })"),
            "section .data is writable; kernels have no state");
}

TEST(ImageTest, RefusesAddressesInConstants) {
  EXPECT_EQ(refusal(R"(llvm.func @f() { llvm.return }
    llvm.mlir.global internal constant @table() : !llvm.ptr { %0 = llvm.mlir.addressof @f : !llvm.ptr
      llvm.return %0 : !llvm.ptr }
    llvm.func @k() -> !llvm.ptr { %0 = llvm.mlir.addressof @table : !llvm.ptr
      %1 = llvm.load volatile %0 : !llvm.ptr -> !llvm.ptr
      llvm.return %1 : !llvm.ptr })"),
            "section .data.rel.ro is writable; kernels have no state");
}

TEST(ImageTest, RefusesBytesThatAreNoObject) {
  std::vector<uint8_t> bytes(100, 7);
  EXPECT_FALSE(toString(writeImage(bytes).takeError()).empty());
}

TEST(DisassemblyCheckTest, TakesAPlainFunction) {
  EXPECT_EQ(refusal("llvm.func @k(%x: i32) -> i32 { llvm.return %x : i32 }"), "");
}

TEST(DisassemblyCheckTest, RefusesCalls) {
  EXPECT_EQ(refusal(R"(llvm.func @f() attributes {passthrough = ["noinline"]} { llvm.return }
    llvm.func @k() { llvm.call @f() : () -> ()
      llvm.return })"),
            "kernel k at +4: 'callq\t-25' is a call; kernels call nothing");
}

TEST(DisassemblyCheckTest, RefusesInstructionsAboveTheTarget) {
  const char *text =
      R"(llvm.func @k(%p: !llvm.ptr) { %0 = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
      %1 = llvm.fadd %0, %0 : vector<16xf32>
      llvm.store %1, %p {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
      llvm.return })";
  EXPECT_EQ(refusal(text, "x86-64-v4", "x86-64-v4"), "");
  EXPECT_EQ(refusal(text, "x86-64-v4", "x86-64-v3"),
            "kernel k at +4: 'vmovups\t(%rdi), %zmm0' is above the level of x86-64-v3: it needs AVX-512");
}

TEST(DisassemblyCheckTest, RefusesInstructionsAboveEveryLevel) {
  for (const char *instruction :
       {"vpdpbusd %zmm1, %zmm2, %zmm3", "vpermb %zmm1, %zmm2, %zmm3", "vaddph %zmm1, %zmm2, %zmm3",
        "vcvtneps2bf16 %zmm1, %ymm2", "aesenc %xmm1, %xmm2", "rdrand %rax"}) {
    std::string text = R"(llvm.func @k() { llvm.inline_asm has_side_effects ")" + std::string(instruction) +
                       R"(", "" : () -> ()
      llvm.return })";
    std::string answer = refusal(text.c_str(), "x86-64-v4", "x86-64-v4");
    EXPECT_NE(answer.find("is above the level of x86-64-v4"), std::string::npos) << instruction << ": " << answer;
  }
  std::string mask = refusal(R"(llvm.func @k() { llvm.inline_asm has_side_effects "kandw %k1, %k2, %k3", "" : () -> ()
      llvm.return })");
  EXPECT_NE(mask.find("it needs AVX-512"), std::string::npos) << mask;
}

TEST(DisassemblyCheckTest, RefusesSystemCalls) {
  EXPECT_EQ(refusal(R"(llvm.func @k() { llvm.inline_asm has_side_effects "syscall", "~{rax},~{rcx},~{r11}" : () -> ()
      llvm.return })"),
            "kernel k at +4: 'syscall' enters the system");
}

TEST(DisassemblyCheckTest, RefusesChangesOfTheFloatingPointState) {
  EXPECT_EQ(
      refusal(
          R"mlir(llvm.func @k(%p: !llvm.ptr) { llvm.inline_asm has_side_effects "ldmxcsr ($0)", "r" %p : (!llvm.ptr) -> ()
      llvm.return })mlir"),
      "kernel k at +4: 'ldmxcsr\t(%rdi)' changes the floating point state");
}

TEST(DisassemblyCheckTest, RefusesLargeFrames) {
  EXPECT_EQ(refusal(R"(llvm.func @k(%i: i64) -> i8 { %n = llvm.mlir.constant(5000 : i64) : i64
      %0 = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
      %1 = llvm.getelementptr %0[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %2 = llvm.load volatile %1 : !llvm.ptr -> i8
      llvm.return %2 : i8 })"),
            "kernel k has a stack frame of 5008 bytes, below 4096 wanted");
}

// A k loop with an accumulator in the frame instead of a register.
TEST(DisassemblyCheckTest, RefusesReloadsInAKLoop) {
  std::string text = refusal(R"(llvm.func @k(%a: !llvm.ptr, %n: i64) {
      %one = llvm.mlir.constant(1 : i64) : i64
      %zero = llvm.mlir.constant(0 : i64) : i64
      %slot = llvm.alloca %one x vector<8xf32> : (i64) -> !llvm.ptr
      llvm.br ^loop(%zero : i64)
    ^loop(%i: i64):
      %p = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %s = llvm.load %p : !llvm.ptr -> f32
      %u = llvm.mlir.undef : vector<8xf32>
      %z = llvm.mlir.constant(0 : i32) : i32
      %v = llvm.insertelement %s, %u[%z : i32] : vector<8xf32>
      %b = llvm.shufflevector %v, %u [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xf32>
      %acc = llvm.load volatile %slot : !llvm.ptr -> vector<8xf32>
      %new = llvm.intr.fma(%b, %b, %acc) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
      llvm.store volatile %new, %slot : vector<8xf32>, !llvm.ptr
      %next = llvm.add %i, %one : i64
      %more = llvm.icmp "ult" %next, %n : i64
      llvm.cond_br %more, ^loop(%next : i64), ^end
    ^end:
      llvm.return })");
  EXPECT_NE(text.find("reloads a spilled vector register inside the k loop"), std::string::npos) << text;
}

TEST(EmitTest, RefusesKeysTwiceAndWrongOnes) {
  Target target = targetOf("x86-64-v3");
  EXPECT_EQ(toString(makeKernelImage({KernelKey::add(8), KernelKey::add(8)}, target).takeError()),
            "kernel add_8_f32 is asked for twice");
  EXPECT_EQ(toString(makeKernelImage({KernelKey::add(0)}, target).takeError()),
            "kernel key add: width is 0, 1 to 16777215 wanted");
}

// No register is spilled in any of them, on targets that this machine can't run too.
TEST(EmitTest, EveryTargetTakesLinearsOfEveryPrecision) {
  using layout::Elem;
  std::vector<KernelKey> keys;
  for (auto [k, n] : {std::pair(384, 1536), {7, 17}})
    for (const KernelKey &key : {KernelKey::linear(k, n, true, ActivationKind::GeluErf),
                                 KernelKey::linear(k, n, true, ActivationKind::None, true)})
      for (const KernelKey &chosen :
           {key.with(Elem::F16), key.with(Elem::BF16), key.with(Elem::BF16, Elem::BF16), key.with(Elem::I8, Elem::I8)})
        keys.push_back(chosen);
  for (Elem elem : {Elem::F16, Elem::BF16})
    keys.push_back(KernelKey::embed(40, true, true, true, 2).with(elem));
  for (const std::string &name : knownTargetNames()) {
    llvm::Expected<KernelImage> image = makeKernelImage(keys, targetOf(name.c_str()));
    ASSERT_TRUE(bool(image)) << name << ": " << toString(image.takeError());
    EXPECT_EQ(image->entries.size(), keys.size());
  }
}

// Code is made and checked for targets that this machine can't run too: no call, small frames, no instruction above it.
TEST(EmitTest, EveryTargetTakesKernelsOfRows) {
  std::vector<KernelKey> keys;
  for (int64_t width : {1, 17, 40, 257, 768}) {
    keys.insert(keys.end(),
                {KernelKey::rmsNorm(width, 1e-5f), KernelKey::gated(width, ActivationKind::GeluErf),
                 KernelKey::gated(width, ActivationKind::Silu, true),
                 KernelKey::activation(width, ActivationKind::Sigmoid), KernelKey::softmax(width),
                 KernelKey::addType(width), KernelKey::gatherMarkers(width), KernelKey::decisionFeatures(width)});
    keys.push_back(KernelKey::rope(4, 2 * width, 2));
  }
  for (const std::string &name : knownTargetNames()) {
    llvm::Expected<KernelImage> image = makeKernelImage(keys, targetOf(name.c_str()));
    ASSERT_TRUE(bool(image)) << name << ": " << toString(image.takeError());
    EXPECT_EQ(image->entries.size(), keys.size());
  }
}
