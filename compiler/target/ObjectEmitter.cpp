// The pipeline from MLIR to object bytes. Passes are few on purpose: kernels are emitted as they should run, an optimizer
// would double compile time, and its unroller would spill accumulators.
#include "compiler/target/ObjectEmitter.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

#include <mutex>

using namespace batten;

void batten::registerObjectDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::LLVM::LLVMDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

static llvm::Error lowerToLLVMDialect(mlir::ModuleOp module) {
  mlir::PassManager passes(module.getContext());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(mlir::createSCFToControlFlowPass());
  passes.addPass(mlir::createConvertVectorToLLVMPass());
  passes.addPass(mlir::createArithToLLVMConversionPass());
  passes.addPass(mlir::createConvertIndexToLLVMPass());
  passes.addPass(mlir::createUBToLLVMConversionPass());
  passes.addPass(mlir::createConvertControlFlowToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  std::string problem;
  mlir::ScopedDiagnosticHandler handler(module.getContext(), [&](mlir::Diagnostic &diagnostic) {
    if (problem.empty())
      problem = diagnostic.str();
    return mlir::success();
  });
  if (mlir::failed(passes.run(module)))
    return llvm::createStringError("kernels don't lower: " + problem);
  return llvm::Error::success();
}

static std::unique_ptr<llvm::TargetMachine> makeMachine(const Target &target, std::string &problem) {
  llvm::Triple triple(target.triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  options.NoTrappingFPMath = true;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EmitStackSizeSection = true;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(triple, target.cpu, target.extras, options,
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           llvm::CodeGenOptLevel::Aggressive));
}

static void setAttributes(llvm::Module &module, const llvm::TargetMachine &machine, const Target &target) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  std::string bits = std::to_string(target.vectorLanes * 32);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    function.setDSOLocal(true);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr(llvm::Attribute::NoRedZone);
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.extras);
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
    function.addFnAttr("no-builtins");
    function.addFnAttr("frame-pointer", "all");
  }
}

static void runPasses(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager perFunction;
  perFunction.addPass(llvm::PromotePass());
  perFunction.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  perFunction.addPass(llvm::InstCombinePass());
  perFunction.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(perFunction)));
  pipeline.run(module, modules);
}

/// What TargetMachine::addPassesToEmitFile does, without hoisting out of loops before register allocation: that would move
/// the two dozen constants of an activation out of every loop of its kernel, and spill the accumulators of the k loops
/// for them. Left where they are used, constants are memory operands and cost nothing.
static llvm::Expected<std::vector<uint8_t>> generateCode(llvm::Module &module,
                                                         llvm::CodeGenTargetMachineImpl &machine) {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  auto *info = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig *config = machine.createPassConfig(passes);
  config->disablePass(&llvm::EarlyMachineLICMID);
  passes.add(config); // takes ownership, as of the others
  passes.add(info);
  if (config->addISelPasses())
    return llvm::createStringError("the target has no instruction selection");
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, info->getMMI().getContext()))
    return llvm::createStringError("the target can't emit objects");
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::vector<uint8_t>(object.begin(), object.end());
}

llvm::Expected<std::vector<uint8_t>> batten::emitObject(mlir::ModuleOp module, const Target &target) {
  initializeTargets();
  if (llvm::Error error = lowerToLLVMDialect(module))
    return std::move(error);
  llvm::LLVMContext context; // before the module, which must go first
  std::unique_ptr<llvm::Module> ir = mlir::translateModuleToLLVMIR(module, context, "kernels");
  if (!ir)
    return llvm::createStringError("kernels don't translate to LLVM IR");
  std::string problem;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(target, problem);
  if (!machine)
    return llvm::createStringError("no code generator for target " + target.name + ": " + problem);
  setAttributes(*ir, *machine, target);
  runPasses(*ir, *machine);
  llvm::raw_string_ostream verifierText(problem);
  if (llvm::verifyModule(*ir, &verifierText))
    return llvm::createStringError("kernels give wrong LLVM IR: " + problem);

  return generateCode(*ir, static_cast<llvm::CodeGenTargetMachineImpl &>(*machine));
}
