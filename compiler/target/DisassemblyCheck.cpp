// The checks on LLVM's MC layer. Loops are found as backward branches, which is exact for code from structured loops.
#include "compiler/target/DisassemblyCheck.h"
#include "compiler/target/InstructionLevel.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace batten;
using namespace llvm;

namespace {

/// An instruction of a function, at its offset in the image.
struct Instruction {
  uint64_t offset = 0, bytes = 0;
  MCInst inst;
};

/// A backward branch: the loop's first and last instruction.
struct Loop {
  uint64_t begin, end;
};

class Checker {
public:
  Checker(const Image &image, const batten::Target &target) : image(image), target(target) {}

  Error open() {
    static std::once_flag once;
    std::call_once(once, [] {
      LLVMInitializeX86TargetInfo();
      LLVMInitializeX86TargetMC();
      LLVMInitializeX86Disassembler();
    });
    triple = Triple(target.triple);
    std::string problem;
    backend = TargetRegistry::lookupTarget(triple, problem);
    if (!backend)
      return createStringError("no disassembler for target " + target.name + ": " + problem);
    registers.reset(backend->createMCRegInfo(triple));
    asmInfo.reset(backend->createMCAsmInfo(*registers, triple, options));
    instructions.reset(backend->createMCInstrInfo());
    subtarget.reset(backend->createMCSubtargetInfo(triple, target.cpu, target.extras));
    analysis.reset(backend->createMCInstrAnalysis(instructions.get()));
    context = std::make_unique<MCContext>(triple, asmInfo.get(), registers.get(), subtarget.get());
    disassembler.reset(backend->createMCDisassembler(*subtarget, *context));
    printer.reset(
        backend->createMCInstPrinter(triple, asmInfo->getAssemblerDialect(), *asmInfo, *instructions, *registers));
    return Error::success();
  }

  Error check(const ImageFunction &function) {
    if (function.frameBytes >= kFrameLimit)
      return fail(function, "has a stack frame of " + Twine(function.frameBytes) + " bytes, below " +
                                Twine(kFrameLimit) + " wanted");
    if (Error error = disassemble(function))
      return error;
    std::vector<Loop> loops;
    for (const Instruction &instruction : code) {
      if (const char *reason = forbidden(instruction.inst))
        return fail(function, instruction, reason);
      if (StringRef extension = beyondLevel(instruction); !extension.empty())
        return fail(function, instruction, "is above the level of " + target.name + ": it needs " + extension);
      const MCInstrDesc &desc = instructions->get(instruction.inst.getOpcode());
      uint64_t destination = 0;
      if (!desc.isBranch() || desc.isIndirectBranch() ||
          !analysis->evaluateBranch(instruction.inst, instruction.offset, instruction.bytes, destination))
        continue;
      if (destination < function.offset || destination >= function.offset + function.bytes)
        return fail(function, instruction, "leaves the function");
      if (destination <= instruction.offset)
        loops.push_back({destination, instruction.offset});
    }
    return checkLoops(function, loops);
  }

private:
  Error fail(const ImageFunction &function, const Twine &text) const {
    return createStringError("kernel " + function.name + " " + text);
  }
  Error fail(const ImageFunction &function, const Instruction &instruction, const Twine &reason) {
    return fail(function,
                "at +" + Twine(instruction.offset - function.offset) + ": '" + print(instruction.inst) + "' " + reason);
  }

  std::string print(const MCInst &inst) {
    std::string text;
    raw_string_ostream stream(text);
    printer->printInst(&inst, 0, "", *subtarget, stream);
    return StringRef(text).trim().str();
  }

  Error disassemble(const ImageFunction &function) {
    code.clear();
    ArrayRef<uint8_t> bytes(image.bytes.data() + function.offset, function.bytes);
    for (uint64_t position = 0; position < bytes.size();) {
      Instruction instruction;
      instruction.offset = function.offset + position;
      auto status = disassembler->getInstruction(instruction.inst, instruction.bytes, bytes.drop_front(position),
                                                 instruction.offset, nulls());
      if (status != MCDisassembler::Success)
        return fail(function, "at +" + Twine(position) + " holds bytes that are no instruction");
      position += instruction.bytes;
      code.push_back(std::move(instruction));
    }
    return Error::success();
  }

  StringRef beyondLevel(const Instruction &instruction) const {
    ArrayRef<uint8_t> bytes(image.bytes.data() + instruction.offset, instruction.bytes);
    return extensionBeyond(target, bytes, StringRef(printer->getMnemonic(instruction.inst).first).trim());
  }

  const char *forbidden(const MCInst &inst) const {
    if (instructions->get(inst.getOpcode()).isCall())
      return "is a call; kernels call nothing";
    return StringSwitch<const char *>(instructions->getName(inst.getOpcode()))
        .Cases({"SYSCALL", "SYSENTER", "INT", "INT3", "INTO", "TRAP", "UD1Lm", "HLT"}, "enters the system")
        .Cases({"LDMXCSR", "VLDMXCSR", "FLDCW16m", "FXRSTOR", "FXRSTOR64", "XRSTOR", "XRSTOR64"},
               "changes the floating point state")
        .Default(nullptr);
  }

  bool isVector(MCRegister reg) const {
    StringRef name = registers->getName(reg);
    return name.starts_with("XMM") || name.starts_with("YMM") || name.starts_with("ZMM");
  }

  /// The base and index registers of the instruction's memory operand (base, scale, index, displacement, segment).
  std::optional<std::pair<MCRegister, MCRegister>> memoryOperand(const MCInst &inst) const {
    const MCInstrDesc &desc = instructions->get(inst.getOpcode());
    for (unsigned i = 0; i + 2 < inst.getNumOperands() && i < desc.getNumOperands(); ++i)
      if (desc.operands()[i].OperandType == MCOI::OPERAND_MEMORY && inst.getOperand(i).isReg() &&
          inst.getOperand(i + 2).isReg())
        return std::make_pair(inst.getOperand(i).getReg(), inst.getOperand(i + 2).getReg());
    return std::nullopt;
  }

  bool isBase(MCRegister reg, StringRef name) const { return reg.isValid() && registers->getName(reg) == name; }

  /// A vector instruction that reads a fixed place of the stack frame. What is spilled inside a loop is also reloaded
  /// there; a store alone may be a block of the frame being filled.
  bool isVectorReload(const MCInst &inst) const {
    auto memory = memoryOperand(inst);
    if (!memory || !instructions->get(inst.getOpcode()).mayLoad() || memory->second.isValid() ||
        !(isBase(memory->first, "RSP") || isBase(memory->first, "RBP")))
      return false;
    return llvm::any_of(inst, [&](const MCOperand &operand) {
      return operand.isReg() && operand.getReg().isValid() && isVector(operand.getReg());
    });
  }

  /// The multiplications of k loops: fma, and the dots of bf16 and i8.
  static bool isMultiplication(StringRef name) {
    return llvm::any_of(ArrayRef<StringRef>{"VFMADD", "VDPBF16PS", "VPDPBUSD", "VPMADDWD"},
                        [&](StringRef prefix) { return name.starts_with(prefix); });
  }

  /// Reads one float or dot that is no constant into all lanes, by itself or as an operand of a multiplication.
  bool isScalarBroadcast(const MCInst &inst) const {
    auto memory = memoryOperand(inst);
    if (!memory || isBase(memory->first, "RIP"))
      return false;
    StringRef name = instructions->getName(inst.getOpcode());
    return name.starts_with("VBROADCASTSS") || name.starts_with("VPBROADCASTD") ||
           (isMultiplication(name) && name.ends_with("mb"));
  }

  Error checkLoops(const ImageFunction &function, ArrayRef<Loop> loops) {
    for (const Loop &loop : loops) {
      bool innermost = llvm::none_of(loops, [&](const Loop &other) {
        return (other.begin > loop.begin || other.end < loop.end) && other.begin >= loop.begin && other.end <= loop.end;
      });
      if (!innermost)
        continue;
      const Instruction *reload = nullptr;
      bool multiplies = false, broadcasts = false;
      for (const Instruction &instruction : code) {
        if (instruction.offset < loop.begin || instruction.offset > loop.end)
          continue;
        if (!reload && isVectorReload(instruction.inst))
          reload = &instruction;
        multiplies |= isMultiplication(instructions->getName(instruction.inst.getOpcode()));
        broadcasts |= isScalarBroadcast(instruction.inst);
      }
      if (reload && multiplies && broadcasts)
        return fail(function, *reload,
                    "reloads a spilled vector register inside the k loop at +" + Twine(loop.begin - function.offset));
    }
    return Error::success();
  }

  const Image &image;
  const batten::Target &target;
  Triple triple;
  MCTargetOptions options;
  const llvm::Target *backend = nullptr;
  std::unique_ptr<MCRegisterInfo> registers;
  std::unique_ptr<MCAsmInfo> asmInfo;
  std::unique_ptr<MCInstrInfo> instructions;
  std::unique_ptr<MCSubtargetInfo> subtarget;
  std::unique_ptr<MCInstrAnalysis> analysis;
  std::unique_ptr<MCContext> context;
  std::unique_ptr<MCDisassembler> disassembler;
  std::unique_ptr<MCInstPrinter> printer;
  std::vector<Instruction> code;
};

} // namespace

Error batten::checkDisassembly(const Image &image, const batten::Target &target) {
  Checker checker(image, target);
  if (Error error = checker.open())
    return error;
  for (const ImageFunction &function : image.functions)
    if (Error error = checker.check(function))
      return error;
  return Error::success();
}
