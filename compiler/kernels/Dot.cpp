// See the header. The instructions are vdpbf16ps, vpdpbusd (rows are u8) and, where there is no vpdpbusd, vpmaddwd on even and
// odd bytes: the same integers.
#include "compiler/kernels/Dot.h"
#include "compiler/kernels/Rows.h"
#include "compiler/layout/DotScratch.h"
#include "compiler/layout/WeightStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace batten;
using namespace mlir;
using layout::Elem;

namespace {

/// Added to a number of a few bits, it leaves its nearest integer in the low bits of the sum.
constexpr float kToInteger = 0x1.8p23f;
constexpr int32_t kToIntegerBits = 0x4B400000;
constexpr float kMostU8 = 255.0f;

VectorType vectorOf(EmitterContext &e, int64_t count, unsigned bits) {
  return VectorType::get({count}, e.b.getIntegerType(bits));
}

Value intrinsic(EmitterContext &e, StringRef name, Type type, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(e.b, type, e.b.getStringAttr(name), operands).getResult(0);
}

/// The low 16 or 8 bits of each lane, in lane order, reordered by groups where `order` says so.
void storeTruncated(EmitterContext &e, const Lanes &integers, unsigned bits, Value address,
                    ArrayRef<int64_t> order = {}) {
  int64_t lanes = e.lanesPerVector;
  for (auto [i, vector] : llvm::enumerate(integers)) {
    Value low = arith::TruncIOp::create(e.b, vectorOf(e, lanes, bits), vector);
    if (!order.empty()) {
      SmallVector<int64_t> mask;
      for (int64_t lane = 0; lane < lanes; ++lane)
        mask.push_back(lane / int64_t(order.size()) * int64_t(order.size()) + order[lane % order.size()]);
      low = vector::ShuffleOp::create(e.b, low, low, mask);
    }
    LLVM::StoreOp::create(e.b, low, e.at(address, int64_t(i) * lanes * bits / 8), bits / 8);
  }
}

/// Each lane's bf16, to nearest even, in its low 16 bits.
Lanes roundToBF16(EmitterContext &e, const Lanes &value) {
  Lanes bits = e.asIntegers(value), result;
  Lanes even = e.subIntegers(e.shiftRight(bits, 16), e.shiftLeft(e.shiftRight(e.shiftRight(bits, 16), 1), 1));
  for (auto [x, odd, isNan] : llvm::zip_equal(bits, even, e.isNan(value))) {
    Value rounded = arith::AddIOp::create(e.b, e.addIntegers({x}, 0x7FFF)[0], odd);
    Value quiet = e.asIntegers(e.splat(__builtin_nanf(""), 1))[0];
    result.push_back(arith::SelectOp::create(e.b, isNan, quiet, rounded));
  }
  return e.shiftRight(result, 16);
}

void emitRowBF16(EmitterContext &e, Value x, int64_t k, Value out) {
  forEachColumns(e, k, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
    Lanes value = zeroAbove(e, e.load(e.at(x, offset), 64), lanes);
    storeTruncated(e, roundToBF16(e, value), 16, e.at(out, e.div(offset, e.constant(2))));
    return {};
  });
}

/// Nearest integers of numbers of a few bits, as f32 with them in the low bits.
Lanes magicOf(EmitterContext &e, const Lanes &value) { return e.add(value, e.splat(kToInteger)); }

Lanes withinU8(EmitterContext &e, Lanes value) {
  value = e.max(value, e.splat(0.0f)); // a NaN becomes 0
  return e.select(e.less(value, e.splat(kMostU8)), value, e.splat(kMostU8));
}

/// A group of a row: `count` elements from x on, as bytes or 16-bit numbers to `out`, scale and zero to `pair`.
void emitGroupI8(EmitterContext &e, Value x, int64_t count, Value out, Value pair) {
  // The largest of x and of -x, none below 0, and a sum that is 0 unless there is a NaN or an infinity.
  unsigned vectors = e.laneVectors;
  auto part = [&](const Lanes &state, unsigned i) { return Lanes(ArrayRef(state).slice(i * vectors, vectors)); };
  Lanes zeros = e.splat(0.0f), carried;
  for (int i = 0; i < 3; ++i)
    carried.append(zeros);
  Lanes folded = forEachColumns(e, count, carried, [&](Value offset, int64_t lanes, const Lanes &state) -> Lanes {
    Lanes value = loadColumns(e, e.at(x, offset), lanes);
    Lanes next = e.max(value, part(state, 0));
    next.append(e.max(e.negate(value), part(state, 1)));
    next.append(e.fma(value, zeros, part(state, 2)));
    return next;
  });
  Lanes high = e.splat(e.reduceMax(part(folded, 0))), low = e.splat(e.reduceMax(part(folded, 1)));
  Lanes broken = e.splat(e.reduceAdd(part(folded, 2))), range = e.add(high, low);
  Lanes none = e.less(range, e.splat(layout::kSmallestI8Range));
  Lanes factor = e.select(none, zeros, e.div(e.splat(kMostU8), range));
  Lanes scale = e.add(e.select(none, zeros, e.mul(range, e.splat(1.0f / kMostU8))), broken);
  Lanes zero = e.sub(magicOf(e, withinU8(e, e.mul(low, factor))), e.splat(kToInteger));
  e.storeFloat(e.firstLane(scale), pair);
  e.storeFloat(e.firstLane(zero), e.at(pair, kFloatBytes));

  bool bytes = hasByteDot(e.target);
  forEachColumns(e, count, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
    Lanes value = withinU8(e, e.fma(loadColumns(e, e.at(x, offset), lanes), factor, zero));
    Lanes integers = e.addIntegers(e.asIntegers(magicOf(e, value)), -kToIntegerBits);
    Value to = e.at(out, e.div(offset, e.constant(bytes ? 4 : 2)));
    if (bytes)
      storeTruncated(e, integers, 8, to);
    else
      storeTruncated(e, integers, 16, to, {0, 2, 1, 3}); // even bytes of a dot, then odd ones
    return {};
  });
}

/// Groups come in two sizes at most, and the last one may end within a dot. What a group writes past its end the next one writes
/// over, or no weight reads.
void emitRowI8(EmitterContext &e, Value x, int64_t k, Value out, Value pairs) {
  int64_t dots = layout::i8Dots(k), groups = layout::i8Groups(k), bytes = rowDotBytes(e.target, Elem::I8);
  int64_t large = dots % groups, size = dots / groups;
  auto emit = [&](int64_t first, int64_t last, int64_t firstDot, int64_t groupDots, int64_t count) {
    if (first == last)
      return;
    e.loop(e.constant(first), e.constant(last), 1, [&](Value group) {
      Value dot = e.add(e.mul(e.sub(group, e.constant(first)), groupDots), firstDot);
      emitGroupI8(e, e.at(x, e.mul(dot, 4 * kFloatBytes)), count, e.at(out, e.mul(dot, bytes)),
                  e.at(pairs, e.mul(group, 2 * kFloatBytes)));
    });
  };
  bool cut = k % 4 != 0; // the last group by itself
  int64_t whole = cut ? groups - 1 : groups;
  emit(0, std::min(large, whole), 0, size + 1, 4 * (size + 1));
  emit(std::min(large, whole), whole, large * (size + 1), size, 4 * size);
  if (cut) {
    int64_t lastDots = size; // the last group is a small one
    emit(groups - 1, groups, dots - lastDots, lastDots, k - 4 * (dots - lastDots));
  }
}

/// vpmaddwd: lanes of i32, each the sum of two products of neighbouring 16-bit numbers.
Value multiplyPairs(EmitterContext &e, Value a, Value c) {
  int64_t count = 2 * int64_t(e.lanesPerVector);
  Value words[] = {vector::BitCastOp::create(e.b, vectorOf(e, count, 16), a),
                   vector::BitCastOp::create(e.b, vectorOf(e, count, 16), c)};
  if (count == 16)
    return intrinsic(e, "llvm.x86.avx2.pmadd.wd", vectorOf(e, 8, 32), words);
  if (e.target.features & BATTEN_X86_AVX512BW)
    return intrinsic(e, "llvm.x86.avx512.pmaddw.d.512", vectorOf(e, 16, 32), words);
  Value halves[2]; // vectors of two registers
  for (int64_t half : {0, 1}) {
    SmallVector<Value> parts;
    for (Value word : words)
      parts.push_back(vector::ExtractStridedSliceOp::create(e.b, word, ArrayRef(16 * half), ArrayRef<int64_t>(16),
                                                            ArrayRef<int64_t>(1)));
    halves[half] = intrinsic(e, "llvm.x86.avx2.pmadd.wd", vectorOf(e, 8, 32), parts);
  }
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, 16));
  return vector::ShuffleOp::create(e.b, halves[0], halves[1], all);
}

/// The dwords of a vector with all but their even 16-bit halves cleared, or the odd ones moved there, as f32.
Lanes halfOf(EmitterContext &e, const Lanes &dwords, bool odd) {
  Lanes bits = e.asIntegers(dwords);
  return e.asFloats(odd ? e.shiftLeft(e.shiftRight(bits, 16), 16) : e.shiftLeft(bits, 16));
}

} // namespace

bool batten::hasByteDot(const Target &target) { return target.features & BATTEN_X86_AVX512_VNNI; }

int64_t batten::rowDotBytes(const Target &target, Elem math) {
  return math == Elem::I8 && !hasByteDot(target) ? 2 * layout::kDotBytes : layout::kDotBytes;
}

unsigned batten::dotTileRows(const Target &target, Elem math) {
  if (math == Elem::BF16 && !(target.features & BATTEN_X86_AVX512_BF16))
    return 2; // two fmas and four operands for each dot
  if (math == Elem::BF16 || hasByteDot(target))
    return target.tileRows;
  return target.tileRows > 8 ? target.tileRows - 4
                             : target.tileRows - 2; // a row's dot and a vector take two registers each
}

void batten::emitRowsForDot(EmitterContext &e, Elem math, Value x, int64_t strideX, int64_t k, Value first, Value count,
                            Value scratch) {
  e.loop(e.constant(0), count, 1, [&](Value row) {
    Value from = e.at(x, e.mul(e.add(first, row), strideX));
    Value to = e.at(scratch, e.mul(row, layout::dotRowBytes(k)));
    if (math == Elem::BF16)
      emitRowBF16(e, from, k, to);
    else
      emitRowI8(e, from, k, to, e.at(scratch, e.add(e.mul(row, layout::dotScaleBytes(k)), layout::dotScales(k))));
  });
}

Lanes batten::loadDotWeights(EmitterContext &e, Elem math, Value address, unsigned alignment) {
  Lanes dots = e.asIntegers(e.load(address, 1, alignment));
  if (math != Elem::I8 || hasByteDot(e.target))
    return dots;
  // Even and odd bytes as 16-bit numbers.
  int64_t count = 2 * int64_t(e.lanesPerVector);
  VectorType words = vectorOf(e, count, 16);
  Value eight = arith::ConstantOp::create(e.b, DenseElementsAttr::get(words, int16_t(8)));
  Value odd = vector::BitCastOp::create(e.b, words, dots[0]);
  Value even = arith::ShRSIOp::create(e.b, arith::ShLIOp::create(e.b, odd, eight), eight);
  return {even, arith::ShRSIOp::create(e.b, odd, eight)};
}

Lanes batten::splatDot(EmitterContext &e, Elem math, Value address) {
  Lanes parts;
  for (int64_t at = 0; at < rowDotBytes(e.target, math); at += layout::kDotBytes)
    parts.append(e.asIntegers(e.splat(e.loadFloat(e.at(address, at)), 1)));
  return parts;
}

Value batten::emitDot(EmitterContext &e, Elem math, Value sum, const Lanes &row, const Lanes &weights) {
  int64_t lanes = e.lanesPerVector;
  if (math == Elem::BF16) {
    if (e.target.features & BATTEN_X86_AVX512_BF16) {
      auto pairs = VectorType::get({2 * lanes}, e.b.getBF16Type());
      Value operands[] = {sum, vector::BitCastOp::create(e.b, pairs, row[0]),
                          vector::BitCastOp::create(e.b, pairs, weights[0])};
      return intrinsic(e, "llvm.x86.avx512bf16.dpbf16ps.512", e.native, operands);
    }
    // The instruction's two steps.
    Lanes odd = e.fma(halfOf(e, row, true), halfOf(e, weights, true), Lanes{sum});
    return e.fma(halfOf(e, row, false), halfOf(e, weights, false), odd)[0];
  }
  if (hasByteDot(e.target)) {
    VectorType bytes = vectorOf(e, 4 * lanes, 8);
    Value operands[] = {sum, vector::BitCastOp::create(e.b, bytes, row[0]),
                        vector::BitCastOp::create(e.b, bytes, weights[0])};
    return intrinsic(e, "llvm.x86.avx512.vpdpbusd.512", vectorOf(e, lanes, 32), operands);
  }
  for (auto [part, words] : llvm::zip_equal(row, weights))
    sum = arith::AddIOp::create(e.b, sum, multiplyPairs(e, part, words));
  return sum;
}

Lanes batten::emitScaledSums(EmitterContext &e, const Lanes &integers, Value pair, Value columns, const Lanes &before) {
  unsigned count = integers.size();
  Lanes zero = e.splat(e.loadFloat(e.at(pair, kFloatBytes)), count), scale = e.splat(e.loadFloat(pair), count);
  Lanes sums = e.load(e.at(columns, BATTEN_PANEL_COLS * kFloatBytes), count, 64);
  Lanes exact = e.fma(e.negate(zero), sums, e.toFloats(integers));
  return e.fma(exact, e.mul(scale, e.load(columns, count, 64)), before);
}
