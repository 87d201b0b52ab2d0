// What emitters build kernels with: integers, addresses, loops, and vectors of 16 virtual lanes held as one or more native
// vectors of the target. Every float operation is exactly the IEEE one it is named after: no flags, no contraction.
// Virtual lanes make a reduction's order, and so its bits, the same on every target.
#ifndef BATTEN_COMPILER_KERNELS_EMITTERCONTEXT_H
#define BATTEN_COMPILER_KERNELS_EMITTERCONTEXT_H

#include "compiler/layout/WeightExpr.h"
#include "compiler/target/Target.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"

namespace batten {

/// Native vectors, one after the other: 16 virtual lanes, or a row of a matrix tile. Also masks of them.
using Lanes = llvm::SmallVector<mlir::Value>;

class EmitterContext {
public:
  EmitterContext(mlir::ImplicitLocOpBuilder &builder, const Target &target);

  mlir::ImplicitLocOpBuilder &b;
  const Target &target;
  mlir::Type f32, i32, i64, ptr;
  mlir::VectorType native; ///< vectorLanes x f32
  unsigned lanesPerVector; ///< of a native vector
  unsigned laneVectors;    ///< native vectors of 16 virtual lanes

  /// The kernel at hand: operand pointers, units, and the number of rows that its domain counts.
  llvm::SmallVector<mlir::Value, 8> operands;
  mlir::Value args, batch, first, last, worker, rows;

  /// Opens a function with the signature of batten_kernel_fn and loads the above. close() ends it.
  void openKernel(llvm::StringRef symbol, unsigned operandCount);
  void closeKernel();

  // 64-bit integers
  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value c);
  mlir::Value add(mlir::Value a, int64_t c) { return add(a, constant(c)); }
  mlir::Value sub(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, mlir::Value c);
  mlir::Value mul(mlir::Value a, int64_t c) { return mul(a, constant(c)); }
  mlir::Value div(mlir::Value a, mlir::Value c);
  mlir::Value rem(mlir::Value a, mlir::Value c);
  mlir::Value ceilDiv(mlir::Value a, int64_t c) { return div(add(a, c - 1), constant(c)); }
  mlir::Value minimum(mlir::Value a, mlir::Value c);
  mlir::Value less(mlir::Value a, mlir::Value c); ///< unsigned; an i1
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value c);
  mlir::Value logicalAnd(mlir::Value a, mlir::Value c);
  /// Part `index` of `total` units cut into `parts` balanced parts: its first unit and its size.
  std::pair<mlir::Value, mlir::Value> balanced(mlir::Value total, mlir::Value parts, mlir::Value index);

  // addresses and scalars; offsets are in bytes
  mlir::Value at(mlir::Value base, mlir::Value offset);
  mlir::Value at(mlir::Value base, int64_t offset);
  mlir::Value loadPointer(mlir::Value base, int64_t offset);
  mlir::Value loadU32(mlir::Value address); ///< as i64
  mlir::Value loadU64(mlir::Value address);
  mlir::Value isNull(mlir::Value pointer);
  mlir::Value differ(mlir::Value pointer, mlir::Value other); ///< an i1
  mlir::Value loadFloat(mlir::Value address);
  void storeFloat(mlir::Value value, mlir::Value address);
  void prefetch(mlir::Value address);
  /// A block of the stack frame, 64-byte aligned. Call right after openKernel.
  mlir::Value stackBlock(int64_t bytes);

  // control flow
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value index, mlir::ValueRange carried)>;
  /// for (i = from; i < to; i += step) with values carried from one turn to the next; gives their last state.
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
                                      LoopBody body);
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// while (condition(state)) state = body(state); gives the last state.
  using StateBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> loopWhile(mlir::ValueRange init,
                                           llvm::function_ref<mlir::Value(mlir::ValueRange)> condition, StateBody body);
  /// The same while the state's first value is below end.
  void loopBelow(mlir::ValueRange init, mlir::Value end, StateBody body) {
    loopWhile(init, [&](mlir::ValueRange state) { return less(state[0], end); }, body);
  }
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Emits body(c) for each c of cases and jumps to the one that value equals; value must be one of them.
  void dispatch(mlir::Value value, llvm::ArrayRef<int64_t> cases, llvm::function_ref<void(int64_t)> body);

  // vectors
  Lanes splat(float value, unsigned vectors);
  Lanes splat(float value) { return splat(value, laneVectors); }
  Lanes splat(mlir::Value scalar, unsigned vectors);
  Lanes splat(mlir::Value scalar) { return splat(scalar, laneVectors); }
  Lanes load(mlir::Value address, unsigned vectors, unsigned alignment);
  Lanes load(mlir::Value address, unsigned alignment = 4) { return load(address, laneVectors, alignment); }
  /// Numbers of that element type, F32, F16 or BF16, as f32: `vectors` native vectors of them.
  Lanes loadWidened(mlir::Value address, layout::Elem elem, unsigned vectors, unsigned alignment = 1);
  Lanes loadWidened(mlir::Value address, layout::Elem elem) { return loadWidened(address, elem, laneVectors); }
  void store(const Lanes &value, mlir::Value address, unsigned alignment = 4);
  /// Lanes outside of the mask are neither read (they are 0) nor written.
  Lanes loadMasked(mlir::Value address, const Lanes &mask);
  void storeMasked(const Lanes &value, mlir::Value address, const Lanes &mask);
  /// Lanes below count are set.
  Lanes maskBelow(mlir::Value count);
  Lanes maskBelow(int64_t count, unsigned vectors);
  Lanes maskBelow(int64_t count) { return maskBelow(count, laneVectors); }

  Lanes add(const Lanes &a, const Lanes &c);
  Lanes sub(const Lanes &a, const Lanes &c);
  Lanes mul(const Lanes &a, const Lanes &c);
  Lanes div(const Lanes &a, const Lanes &c);
  Lanes fma(const Lanes &a, const Lanes &c, const Lanes &addend); ///< a * c + addend, rounded once
  Lanes max(const Lanes &a, const Lanes &c);                      ///< a > c ? a : c
  Lanes less(const Lanes &a, const Lanes &c);                     ///< false where one is NaN
  Lanes isNan(const Lanes &a);
  Lanes select(const Lanes &mask, const Lanes &a, const Lanes &c);
  Lanes abs(const Lanes &a);
  Lanes negate(const Lanes &a);
  Lanes asIntegers(const Lanes &a);
  Lanes asFloats(const Lanes &a);
  Lanes addIntegers(const Lanes &a, int32_t c);
  Lanes subIntegers(const Lanes &a, const Lanes &c);
  Lanes shiftLeft(const Lanes &a, int32_t bits);
  Lanes shiftRight(const Lanes &a, int32_t bits); ///< keeps the sign
  Lanes toFloats(const Lanes &integers);

  /// Sixteen floats as virtual lanes.
  Lanes fromScalars(llvm::ArrayRef<mlir::Value> scalars);
  mlir::Value firstLane(const Lanes &a);

  /// Transposes a square of native vectors.
  void transpose(llvm::SmallVectorImpl<mlir::Value> &square);

  /// Folds 16 virtual lanes by the fixed tree: lane i with lane i+8, then i+4, i+2, i+1.
  mlir::Value reduceAdd(const Lanes &lanes);
  mlir::Value reduceMax(const Lanes &lanes);

  // scalar floats
  mlir::Value constantFloat(float value);
  mlir::Value addFloat(mlir::Value a, mlir::Value c);
  mlir::Value divFloat(mlir::Value a, mlir::Value c);
  mlir::Value maxFloat(mlir::Value a, mlir::Value c); ///< a > c ? a : c
  mlir::Value squareRoot(mlir::Value a);
  mlir::Value toFloat(mlir::Value integer); ///< of an i64 below 2^31

private:
  template <typename Op> Lanes binary(const Lanes &a, const Lanes &c);
  mlir::Value reduce(const Lanes &lanes, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  mlir::VectorType integersOf(mlir::Value vector);
};

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_EMITTERCONTEXT_H
