// See the header. The instructions are vdpbf16ps, vpdpbusd (rows as u8, 128 too large; the panel's sums take that back)
// and, where there is no vpdpbusd, vpmaddwd on even and odd bytes: the same integers.
#include "compiler/kernels/Dot.h"
#include "compiler/kernels/Rows.h"
#include "compiler/layout/DotScratch.h"
#include "compiler/layout/PackLayout.h"
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

void emitRowI8(EmitterContext &e, Value x, int64_t k, Value out, Value scale) {
  // The largest of |x|, and a sum that is 0 unless the row holds a NaN or an infinity.
  Lanes carried = e.splat(0.0f);
  carried.append(carried);
  Lanes folded = forEachColumns(e, k, carried, [&](Value offset, int64_t lanes, const Lanes &state) -> Lanes {
    Lanes value = zeroAbove(e, e.load(e.at(x, offset), 64), lanes);
    Lanes most(ArrayRef(state).take_front(e.laneVectors)), broken(ArrayRef(state).drop_front(e.laneVectors));
    most = e.max(e.abs(value), most);
    most.append(e.fma(value, e.splat(0.0f), broken));
    return most;
  });
  Value most = e.reduceMax(Lanes(ArrayRef(folded).take_front(e.laneVectors)));
  Value broken = e.reduceAdd(Lanes(ArrayRef(folded).drop_front(e.laneVectors)));
  Value counts = arith::CmpFOp::create(e.b, arith::CmpFPredicate::OLE, e.constantFloat(layout::kSmallestI8Row), most);
  Value zero = e.constantFloat(0.0f), full = e.constantFloat(127.0f);
  Value factor = arith::SelectOp::create(e.b, counts, e.divFloat(full, most), zero);
  Value size = arith::SelectOp::create(e.b, counts, e.divFloat(most, full), zero);
  e.storeFloat(e.addFloat(size, broken), scale);

  bool bytes = hasByteDot(e.target);
  Lanes factors = e.splat(factor);
  forEachColumns(e, k, {}, [&](Value offset, int64_t lanes, const Lanes &) -> Lanes {
    Lanes value = e.mul(zeroAbove(e, e.load(e.at(x, offset), 64), lanes), factors);
    value = e.max(value, e.splat(-127.0f)); // a NaN becomes -127
    value = e.select(e.less(value, e.splat(127.0f)), value, e.splat(127.0f));
    Lanes integers =
        e.addIntegers(e.asIntegers(e.add(value, e.splat(kToInteger))), -kToIntegerBits + (bytes ? 128 : 0));
    Value to = e.at(out, e.div(offset, e.constant(bytes ? 4 : 2)));
    if (bytes)
      storeTruncated(e, integers, 8, to);
    else
      storeTruncated(e, integers, 16, to, {0, 2, 1, 3}); // even bytes of a dot, then odd ones
    return {};
  });
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
      emitRowI8(e, from, k, to, e.at(scratch, e.add(e.mul(row, kFloatBytes), layout::dotScales(k))));
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

Lanes batten::emitScaledSums(EmitterContext &e, const Lanes &integers, Value rowScale, Value scales, Value sums) {
  unsigned count = integers.size();
  Lanes exact = integers;
  if (hasByteDot(e.target)) // rows were 128 too large
    exact = e.subIntegers(exact, e.shiftLeft(e.asIntegers(e.load(sums, count, 64)), 7));
  return e.mul(e.toFloats(exact), e.mul(e.splat(rowScale, count), e.load(scales, count, 64)));
}
