// Runs the emitter of each key, then the stages that make an image of the module.
#include "compiler/kernels/Emit.h"
#include "compiler/kernels/EmitterContext.h"
#include "compiler/kernels/Emitters.h"
#include "compiler/target/DisassemblyCheck.h"
#include "compiler/target/ImageWriter.h"
#include "compiler/target/ObjectEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/StringSet.h"

using namespace batten;

void batten::registerKernelDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
}

static void emitBody(EmitterContext &e, const KernelKey &key) {
  switch (key.op) {
  case KernelOp::Linear:
    return emitLinear(e, key);
  case KernelOp::Embed:
    return emitEmbed(e, key);
  case KernelOp::LayerNorm:
    return emitLayerNorm(e, key);
  case KernelOp::Attention:
    return emitAttention(e, key);
  case KernelOp::Pool:
    return emitPool(e, key);
  case KernelOp::L2Normalize:
    return emitL2Normalize(e, key);
  case KernelOp::Activation:
    return emitActivationRows(e, key);
  case KernelOp::Add:
    return emitAdd(e, key);
  case KernelOp::Slice:
    return emitSlice(e, key);
  case KernelOp::ConcatCols:
    return emitConcatCols(e, key);
  case KernelOp::RmsNorm:
    return emitRmsNorm(e, key);
  case KernelOp::Rope:
    return emitRope(e, key);
  case KernelOp::Gated:
    return emitGated(e, key);
  case KernelOp::AddType:
    return emitAddType(e, key);
  case KernelOp::GatherMarkers:
    return emitGatherMarkers(e, key);
  case KernelOp::DecisionFeatures:
    return emitDecisionFeatures(e, key);
  case KernelOp::Softmax:
    return emitSoftmax(e, key);
  }
}

llvm::Error batten::emitKernels(mlir::ModuleOp module, llvm::ArrayRef<KernelKey> keys, const Target &target) {
  mlir::ImplicitLocOpBuilder builder(module.getLoc(), module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  EmitterContext context(builder, target);
  llvm::StringSet<> symbols;
  for (const KernelKey &key : keys) {
    if (llvm::Error error = verifyKernelKey(key))
      return error;
    std::string symbol = kernelSymbol(key);
    if (!symbols.insert(symbol).second)
      return llvm::createStringError("kernel " + symbol + " is asked for twice");
    context.openKernel(symbol, kernelFacts(key).operandCount);
    emitBody(context, key);
    context.closeKernel();
  }
  return llvm::Error::success();
}

llvm::Expected<KernelImage> batten::makeKernelImage(llvm::ArrayRef<KernelKey> keys, const Target &target) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  registerObjectDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  if (llvm::Error error = emitKernels(*module, keys, target))
    return std::move(error);
  auto object = emitObject(*module, target);
  if (!object)
    return object.takeError();
  auto image = writeImage(*object);
  if (!image)
    return image.takeError();
  if (llvm::Error error = checkDisassembly(*image, target))
    return std::move(error);

  KernelImage result;
  for (const KernelKey &key : keys) {
    std::string symbol = kernelSymbol(key);
    const ImageFunction *function = image->find(symbol);
    if (!function)
      return llvm::createStringError("kernel " + symbol + " is not in the image");
    result.entries.push_back({symbol, function->offset, function->bytes});
  }
  result.bytes = std::move(image->bytes);
  result.codeOffset = image->codeOffset;
  result.codeBytes = image->codeBytes;
  return result;
}
