// Thin wrappers over arith, scf, vector and llvm ops.
#include "compiler/kernels/EmitterContext.h"

#include "batten/kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cstddef>
#include <numeric>

using namespace batten;
using namespace mlir;
namespace LLVMD = mlir::LLVM;

EmitterContext::EmitterContext(ImplicitLocOpBuilder &builder, const Target &target)
    : b(builder), target(target), f32(b.getF32Type()), i32(b.getI32Type()), i64(b.getI64Type()),
      ptr(LLVMD::LLVMPointerType::get(b.getContext())), native(VectorType::get({target.vectorLanes}, f32)),
      lanesPerVector(target.vectorLanes), laneVectors(BATTEN_LANES / target.vectorLanes) {}

void EmitterContext::openKernel(StringRef symbol, unsigned operandCount) {
  auto type = LLVMD::LLVMFunctionType::get(LLVMD::LLVMVoidType::get(b.getContext()), {ptr, i32, i32, i32});
  auto function = LLVMD::LLVMFuncOp::create(b, symbol, type);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  args = entry->getArgument(0);
  auto wide = [&](unsigned index) -> Value { return arith::ExtUIOp::create(b, i64, entry->getArgument(index)); };
  first = wide(1);
  last = wide(2);
  worker = wide(3);
  operands.clear();
  for (unsigned i = 0; i < operandCount; ++i)
    operands.push_back(loadPointer(args, offsetof(batten_kernel_args_t, ptr) + 8 * i));
  batch = loadPointer(args, offsetof(batten_kernel_args_t, batch));
  rows = loadU32(loadPointer(args, offsetof(batten_kernel_args_t, rows)));
}

void EmitterContext::closeKernel() {
  LLVMD::ReturnOp::create(b, ValueRange{});
  b.setInsertionPointAfter(b.getBlock()->getParentOp());
}

Value EmitterContext::constant(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }
Value EmitterContext::add(Value a, Value c) { return b.createOrFold<arith::AddIOp>(a, c); }
Value EmitterContext::sub(Value a, Value c) { return b.createOrFold<arith::SubIOp>(a, c); }
Value EmitterContext::mul(Value a, Value c) { return b.createOrFold<arith::MulIOp>(a, c); }
Value EmitterContext::div(Value a, Value c) { return b.createOrFold<arith::DivUIOp>(a, c); }
Value EmitterContext::rem(Value a, Value c) { return b.createOrFold<arith::RemUIOp>(a, c); }
Value EmitterContext::minimum(Value a, Value c) { return b.createOrFold<arith::MinUIOp>(a, c); }
Value EmitterContext::less(Value a, Value c) { return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, a, c); }
Value EmitterContext::select(Value condition, Value a, Value c) {
  return b.createOrFold<arith::SelectOp>(condition, a, c);
}
Value EmitterContext::logicalAnd(Value a, Value c) { return b.createOrFold<arith::AndIOp>(a, c); }

std::pair<Value, Value> EmitterContext::balanced(Value total, Value parts, Value index) {
  Value base = div(total, parts);
  Value larger = sub(total, mul(base, parts));
  Value extra = arith::ExtUIOp::create(b, i64, less(index, larger));
  return {add(mul(index, base), minimum(index, larger)), add(base, extra)};
}

Value EmitterContext::at(Value base, Value offset) {
  return LLVMD::GEPOp::create(b, ptr, b.getI8Type(), base, ValueRange{offset});
}
Value EmitterContext::at(Value base, int64_t offset) {
  if (offset == 0)
    return base;
  if (offset == static_cast<int32_t>(offset))
    return LLVMD::GEPOp::create(b, ptr, b.getI8Type(), base,
                                ArrayRef<LLVMD::GEPArg>{LLVMD::GEPArg(static_cast<int32_t>(offset))});
  return at(base, constant(offset));
}
Value EmitterContext::loadPointer(Value base, int64_t offset) {
  return LLVMD::LoadOp::create(b, ptr, at(base, offset), 8);
}
Value EmitterContext::loadU32(Value address) {
  return arith::ExtUIOp::create(b, i64, LLVMD::LoadOp::create(b, i32, address, 4));
}
Value EmitterContext::loadU64(Value address) { return LLVMD::LoadOp::create(b, i64, address, 8); }
Value EmitterContext::isNull(Value pointer) {
  return LLVMD::ICmpOp::create(b, LLVMD::ICmpPredicate::eq, pointer, LLVMD::ZeroOp::create(b, ptr));
}
Value EmitterContext::differ(Value pointer, Value other) {
  return LLVMD::ICmpOp::create(b, LLVMD::ICmpPredicate::ne, pointer, other);
}
Value EmitterContext::loadFloat(Value address) { return LLVMD::LoadOp::create(b, f32, address, 4); }
void EmitterContext::storeFloat(Value value, Value address) { LLVMD::StoreOp::create(b, value, address, 4); }
void EmitterContext::prefetch(Value address) { LLVMD::Prefetch::create(b, address, 0, 3, 1); }
Value EmitterContext::stackBlock(int64_t bytes) {
  return LLVMD::AllocaOp::create(b, ptr, b.getI8Type(), constant(bytes), 64);
}

SmallVector<Value> EmitterContext::loop(Value from, Value to, int64_t step, ValueRange carried, LoopBody body) {
  auto op = scf::ForOp::create(
      b, from, to, constant(step), carried,
      [&](OpBuilder &, Location, Value index, ValueRange values) { scf::YieldOp::create(b, body(index, values)); });
  return SmallVector<Value>(op.getResults());
}

void EmitterContext::loop(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  loop(from, to, step, {}, [&](Value index, ValueRange) -> SmallVector<Value> {
    body(index);
    return {};
  });
}

SmallVector<Value> EmitterContext::loopWhile(ValueRange init, function_ref<Value(ValueRange)> condition,
                                             StateBody body) {
  SmallVector<Type> types(init.getTypes());
  auto op = scf::WhileOp::create(
      b, types, init,
      [&](OpBuilder &, Location, ValueRange state) { scf::ConditionOp::create(b, condition(state), state); },
      [&](OpBuilder &, Location, ValueRange state) { scf::YieldOp::create(b, body(state)); });
  return SmallVector<Value>(op.getResults());
}

void EmitterContext::when(Value condition, function_ref<void()> body) {
  scf::IfOp::create(b, condition, [&](OpBuilder &, Location) {
    body();
    scf::YieldOp::create(b);
  });
}

void EmitterContext::dispatch(Value value, ArrayRef<int64_t> cases, function_ref<void(int64_t)> body) {
  Value index = arith::IndexCastOp::create(b, b.getIndexType(), value);
  // The last case is the default, so that no unreachable path is left.
  auto op = scf::IndexSwitchOp::create(b, TypeRange{}, index, cases.drop_back(), cases.size() - 1);
  OpBuilder::InsertionGuard guard(b);
  for (auto [position, which] : llvm::enumerate(cases)) {
    Region &region = position + 1 < cases.size() ? op.getCaseRegions()[position] : op.getDefaultRegion();
    b.setInsertionPointToStart(&region.emplaceBlock());
    body(which);
    scf::YieldOp::create(b);
  }
}

Lanes EmitterContext::splat(float value, unsigned vectors) {
  Value one = arith::ConstantOp::create(b, DenseElementsAttr::get(native, value));
  return Lanes(vectors, one);
}
Lanes EmitterContext::splat(Value scalar, unsigned vectors) {
  Value one = vector::BroadcastOp::create(b, native, scalar);
  return Lanes(vectors, one);
}
Lanes EmitterContext::load(Value address, unsigned vectors, unsigned alignment) {
  Lanes result;
  for (unsigned i = 0; i < vectors; ++i)
    result.push_back(
        LLVMD::LoadOp::create(b, native, at(address, i * lanesPerVector * 4), std::min(alignment, lanesPerVector * 4)));
  return result;
}
Lanes EmitterContext::loadWidened(Value address, layout::Elem elem, unsigned vectors, unsigned alignment) {
  unsigned bytes = lanesPerVector * static_cast<unsigned>(layout::elemBytes(elem));
  bool isF16 = elem == layout::Elem::F16;
  Type stored = elem == layout::Elem::F32 ? Type(f32) : isF16 ? Type(b.getF16Type()) : Type(b.getI16Type());
  auto type = VectorType::get({int64_t(lanesPerVector)}, stored);
  Lanes result;
  for (unsigned i = 0; i < vectors; ++i)
    result.push_back(LLVMD::LoadOp::create(b, type, at(address, i * bytes), std::max(std::min(alignment, bytes), 1u)));
  for (Value &vector : result) {
    if (isF16)
      vector = arith::ExtFOp::create(b, native, vector);
    if (elem == layout::Elem::BF16)
      vector = asFloats(shiftLeft({arith::ExtUIOp::create(b, integersOf(vector), vector)}, 16))[0];
  }
  return result;
}
void EmitterContext::store(const Lanes &value, Value address, unsigned alignment) {
  for (auto [i, vector] : llvm::enumerate(value))
    LLVMD::StoreOp::create(b, vector, at(address, i * lanesPerVector * 4), std::min(alignment, lanesPerVector * 4));
}
Lanes EmitterContext::loadMasked(Value address, const Lanes &mask) {
  Lanes zero = splat(0.0f, 1), result;
  for (auto [i, bits] : llvm::enumerate(mask))
    result.push_back(
        LLVMD::MaskedLoadOp::create(b, native, at(address, i * lanesPerVector * 4), bits, zero[0], uint32_t(4)));
  return result;
}
void EmitterContext::storeMasked(const Lanes &value, Value address, const Lanes &mask) {
  for (auto [i, bits] : llvm::enumerate(mask))
    LLVMD::MaskedStoreOp::create(b, value[i], at(address, i * lanesPerVector * 4), bits, uint32_t(4));
}
Lanes EmitterContext::maskBelow(Value count) {
  Value narrow = arith::TruncIOp::create(b, i32, count);
  auto type = VectorType::get({lanesPerVector}, i32);
  Value limit = vector::BroadcastOp::create(b, type, narrow);
  Lanes result;
  for (unsigned i = 0; i < laneVectors; ++i) {
    SmallVector<int32_t> indices(lanesPerVector);
    std::iota(indices.begin(), indices.end(), static_cast<int32_t>(i * lanesPerVector));
    Value index = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<int32_t>(indices)));
    result.push_back(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, limit));
  }
  return result;
}
Lanes EmitterContext::maskBelow(int64_t count, unsigned vectors) {
  auto type = VectorType::get({lanesPerVector}, b.getI1Type());
  Lanes result;
  for (unsigned i = 0; i < vectors; ++i) {
    SmallVector<bool> bits(lanesPerVector);
    for (unsigned lane = 0; lane < lanesPerVector; ++lane)
      bits[lane] = static_cast<int64_t>(i * lanesPerVector + lane) < count;
    result.push_back(arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<bool>(bits))));
  }
  return result;
}

template <typename Op> Lanes EmitterContext::binary(const Lanes &a, const Lanes &c) {
  Lanes result;
  for (auto [x, y] : llvm::zip_equal(a, c))
    result.push_back(Op::create(b, x, y));
  return result;
}
Lanes EmitterContext::add(const Lanes &a, const Lanes &c) { return binary<arith::AddFOp>(a, c); }
Lanes EmitterContext::sub(const Lanes &a, const Lanes &c) { return binary<arith::SubFOp>(a, c); }
Lanes EmitterContext::mul(const Lanes &a, const Lanes &c) { return binary<arith::MulFOp>(a, c); }
Lanes EmitterContext::div(const Lanes &a, const Lanes &c) { return binary<arith::DivFOp>(a, c); }
Lanes EmitterContext::fma(const Lanes &a, const Lanes &c, const Lanes &addend) {
  Lanes result;
  for (auto [x, y, z] : llvm::zip_equal(a, c, addend))
    result.push_back(LLVMD::FMAOp::create(b, x, y, z)); // vector.fma would become llvm.fmuladd, which may round twice
  return result;
}
Lanes EmitterContext::less(const Lanes &a, const Lanes &c) {
  Lanes result;
  for (auto [x, y] : llvm::zip_equal(a, c))
    result.push_back(arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y));
  return result;
}
Lanes EmitterContext::isNan(const Lanes &a) {
  return llvm::map_to_vector(
      a, [&](Value v) -> Value { return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, v, v); });
}
Lanes EmitterContext::select(const Lanes &mask, const Lanes &a, const Lanes &c) {
  Lanes result;
  for (auto [bits, x, y] : llvm::zip_equal(mask, a, c))
    result.push_back(arith::SelectOp::create(b, bits, x, y));
  return result;
}
static Value maxOf(ImplicitLocOpBuilder &b, Value a, Value c) {
  return arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, a, c), a, c);
}
Lanes EmitterContext::max(const Lanes &a, const Lanes &c) {
  Lanes result;
  for (auto [x, y] : llvm::zip_equal(a, c))
    result.push_back(maxOf(b, x, y));
  return result;
}
VectorType EmitterContext::integersOf(Value vector) {
  return VectorType::get(cast<VectorType>(vector.getType()).getShape(), i32);
}
Lanes EmitterContext::asIntegers(const Lanes &a) {
  return llvm::map_to_vector(a, [&](Value v) -> Value { return arith::BitcastOp::create(b, integersOf(v), v); });
}
Lanes EmitterContext::asFloats(const Lanes &a) {
  return llvm::map_to_vector(a, [&](Value v) -> Value { return arith::BitcastOp::create(b, native, v); });
}
static Value splatInteger(ImplicitLocOpBuilder &b, VectorType type, int32_t value) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}
Lanes EmitterContext::addIntegers(const Lanes &a, int32_t c) {
  return llvm::map_to_vector(
      a, [&](Value v) -> Value { return arith::AddIOp::create(b, v, splatInteger(b, integersOf(v), c)); });
}
Lanes EmitterContext::shiftLeft(const Lanes &a, int32_t bits) {
  return llvm::map_to_vector(
      a, [&](Value v) -> Value { return arith::ShLIOp::create(b, v, splatInteger(b, integersOf(v), bits)); });
}
Lanes EmitterContext::shiftRight(const Lanes &a, int32_t bits) {
  return llvm::map_to_vector(
      a, [&](Value v) -> Value { return arith::ShRSIOp::create(b, v, splatInteger(b, integersOf(v), bits)); });
}
Lanes EmitterContext::subIntegers(const Lanes &a, const Lanes &c) { return binary<arith::SubIOp>(a, c); }
Lanes EmitterContext::toFloats(const Lanes &integers) {
  return llvm::map_to_vector(integers, [&](Value v) -> Value { return arith::SIToFPOp::create(b, native, v); });
}
Lanes EmitterContext::fromScalars(ArrayRef<Value> scalars) {
  Lanes result;
  for (; !scalars.empty(); scalars = scalars.drop_front(lanesPerVector))
    result.push_back(vector::FromElementsOp::create(b, native, scalars.take_front(lanesPerVector)));
  return result;
}
Value EmitterContext::firstLane(const Lanes &a) { return vector::ExtractOp::create(b, a[0], int64_t(0)); }
Lanes EmitterContext::abs(const Lanes &a) {
  Lanes result;
  for (Value v : asIntegers(a))
    result.push_back(arith::AndIOp::create(b, v, splatInteger(b, integersOf(v), 0x7FFFFFFF)));
  return asFloats(result);
}
Lanes EmitterContext::negate(const Lanes &a) {
  return llvm::map_to_vector(a, [&](Value v) -> Value { return arith::NegFOp::create(b, v); });
}

void EmitterContext::transpose(SmallVectorImpl<Value> &square) {
  // Swaps the off-diagonal halves of squares of 2, 4, .. lanes.
  int64_t lanes = lanesPerVector;
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    SmallVector<int64_t> upper(lanes), lower(lanes);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool isHigh = lane & distance;
      upper[lane] = isHigh ? lanes + lane - distance : lane;
      lower[lane] = isHigh ? lanes + lane : lane + distance;
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & distance)
        continue;
      Value first = square[i], second = square[i + distance];
      square[i] = vector::ShuffleOp::create(b, first, second, upper);
      square[i + distance] = vector::ShuffleOp::create(b, first, second, lower);
    }
  }
}

Value EmitterContext::reduce(const Lanes &lanes, function_ref<Value(Value, Value)> combine) {
  Lanes level = lanes;
  while (level.size() > 1) { // halves of the virtual lanes are whole native vectors
    size_t half = level.size() / 2;
    for (size_t i = 0; i < half; ++i)
      level[i] = combine(level[i], level[i + half]);
    level.truncate(half);
  }
  Value value = level[0];
  for (int64_t width = lanesPerVector / 2; width >= 1; width /= 2) {
    SmallVector<int64_t> low(width), high(width);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), width);
    Value lower = vector::ShuffleOp::create(b, value, value, low);
    Value upper = vector::ShuffleOp::create(b, value, value, high);
    value = combine(lower, upper);
  }
  return firstLane({value});
}
Value EmitterContext::reduceAdd(const Lanes &lanes) {
  return reduce(lanes, [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, x, y); });
}
Value EmitterContext::reduceMax(const Lanes &lanes) {
  return reduce(lanes, [&](Value x, Value y) { return maxOf(b, x, y); });
}

Value EmitterContext::constantFloat(float value) { return arith::ConstantOp::create(b, b.getF32FloatAttr(value)); }
Value EmitterContext::addFloat(Value a, Value c) { return arith::AddFOp::create(b, a, c); }
Value EmitterContext::divFloat(Value a, Value c) { return arith::DivFOp::create(b, a, c); }
Value EmitterContext::maxFloat(Value a, Value c) { return maxOf(b, a, c); }
Value EmitterContext::squareRoot(Value a) { return LLVMD::SqrtOp::create(b, a); }
Value EmitterContext::toFloat(Value integer) {
  return arith::SIToFPOp::create(b, f32, arith::TruncIOp::create(b, i32, integer));
}
