// The inlined functions over the whole float range: every 509th float, both signs, from zero to infinity, and NaN. The
// bounds are those of the table in compiler/kernels/README.md.
#include "tests/kernels/KernelHarness.h"

#include "compiler/kernels/EmitterContext.h"
#include "compiler/kernels/Rows.h"
#include "compiler/kernels/VectorMath.h"
#include "compiler/target/ImageWriter.h"
#include "compiler/target/ObjectEmitter.h"
#include "tools/bench/MappedImage.h"

#include "mlir/IR/BuiltinOps.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

using namespace batten;
using namespace batten::test;

namespace {

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// Every 509th float that is no NaN, then the corners.
const std::vector<float> &samples() {
  static const std::vector<float> all = [] {
    std::vector<float> values;
    for (uint32_t sign : {0u, 0x80000000u})
      for (uint32_t bits = 0; bits <= 0x7F800000u; bits += 509)
        values.push_back(fromBits(sign | bits));
    for (float corner : {INFINITY, -INFINITY, 0.0f, -0.0f, NAN, 1e-38f, -1e-38f, 3.4028235e38f, -3.4028235e38f, 0.625f})
      values.push_back(corner);
    while (values.size() % 1024)
      values.push_back(0.0f);
    return values;
  }();
  return all;
}

struct Bounds {
  double absolute; ///< everywhere
  double units;    ///< relative, in 2^-24, where |wanted| is at least `least` and x is at least `from`
  double least = 1e-36;
  double from = -INFINITY;
};

/// Holds got against the function in double precision. Denormal inputs count as zero, and results may be flushed.
void check(const std::string &what, const std::vector<float> &x, const std::vector<float> &got,
           double (*wanted)(double), const Bounds &bounds) {
  double worstAbsolute = 0, worstUnits = 0;
  float whereAbsolute = 0, whereUnits = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " of NaN is " << got[i];
      continue;
    }
    double right = wanted(std::fabs(x[i]) < 0x1p-126f ? 0.0 : static_cast<double>(x[i]));
    if (std::isinf(right) || std::fabs(right) > 3.4028235e38) {
      ASSERT_TRUE(std::isinf(got[i]) && std::signbit(got[i]) == std::signbit(right)) << what << " of " << x[i];
      continue;
    }
    ASSERT_TRUE(std::isfinite(got[i])) << what << " of " << x[i] << " is " << got[i] << ", " << right << " wanted";
    double error = std::fabs(got[i] - right);
    // Large results err by their own rounding; the absolute bound is about the others.
    if (std::fabs(right) <= 1.0 && error > worstAbsolute) {
      worstAbsolute = error;
      whereAbsolute = x[i];
    }
    if (std::fabs(right) >= bounds.least && x[i] >= bounds.from && error / (std::fabs(right) * 0x1p-24) > worstUnits) {
      worstUnits = error / (std::fabs(right) * 0x1p-24);
      whereUnits = x[i];
    }
  }
  std::printf("%s: absolute %.3g at %g, relative %.2f * 2^-24 at %g\n", what.c_str(), worstAbsolute, whereAbsolute,
              worstUnits, whereUnits);
  EXPECT_LE(worstAbsolute, bounds.absolute) << what << " of " << whereAbsolute;
  EXPECT_LE(worstUnits, bounds.units) << what << " of " << whereUnits;
}

template <ActivationKind Kind> double wantedOf(double x) { return reference::activate(Kind, x); }

template <ActivationKind Kind> void checkActivation(const Bounds &bounds) {
  const std::vector<float> &x = samples();
  uint32_t rows = static_cast<uint32_t>(x.size() / 1024);
  std::vector<float> first;
  for (const std::string &target : runnableTargets()) {
    std::vector<float> got = runKernel(target, KernelKey::activation(1024, Kind), {Input::ofRows(rows, 1024, x)},
                                       plainBatch(rows), rows, 1024);
    check(target + " " + activationName(Kind).str(), x, got, wantedOf<Kind>, bounds);
    if (first.empty())
      first = got;
    expectSameBits(got, first, 1024, target);
  }
}

/// Runs a kernel that is the function of its first operand's values, `last` of them.
using EmitFunction = Lanes (*)(EmitterContext &, const Lanes &);
std::vector<float> runFunction(const std::string &targetName, EmitFunction emit, const std::vector<float> &x) {
  Target target = cantFail(lookupTarget(targetName));
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  registerObjectDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  mlir::ImplicitLocOpBuilder builder(module->getLoc(), &context);
  builder.setInsertionPointToEnd(module->getBody());
  EmitterContext e(builder, target);
  e.openKernel("function", 2);
  e.loop(e.constant(0), e.mul(e.last, kFloatBytes), BATTEN_LANES * kFloatBytes, [&](mlir::Value offset) {
    e.store(emit(e, e.load(e.at(e.operands[0], offset))), e.at(e.operands[1], offset));
  });
  e.closeKernel();
  Image image = cantFail(writeImage(cantFail(emitObject(*module, target))));
  MappedImage mapped(image.bytes, image.codeOffset, image.codeBytes);
  std::vector<float> in = x, out(x.size());
  batten_kernel_batch_t batch{};
  batten_kernel_args_t args{};
  args.ptr[0] = in.data();
  args.ptr[1] = out.data();
  args.batch = &batch;
  args.rows = batch.rows;
  unsigned before = _mm_getcsr();
  _mm_setcsr(0x9FC0);
  mapped.entry(image.find("function")->offset)(&args, 0, static_cast<uint32_t>(x.size()), 0);
  _mm_setcsr(before);
  return out;
}

double expWanted(double x) { return x < -87.3 ? 0.0 : std::exp(x); }
double exp2Wanted(double x) { return x < -126.0 ? 0.0 : std::exp2(x); }

} // namespace

TEST(VectorMathTest, Exp2) {
  std::vector<float> x;
  for (float value : samples())
    x.push_back(value > 127.0f ? 127.0f : value);
  for (float value : {-126.0f, -126.5f, -126.49f, -126.00001f, -127.5f, 0.5f, -0.5f})
    x.push_back(value);
  while (x.size() % 16)
    x.push_back(0.0f);
  std::vector<float> first;
  for (const std::string &target : runnableTargets()) {
    std::vector<float> got = runFunction(target, emitExp2, x);
    check(target + " exp2", x, got, exp2Wanted, {6e-8, 1.4});
    if (first.empty())
      first = got;
    expectSameBits(got, first, 16, target);
  }
}

// Up to 0, where it is used: softmaxes subtract the largest first.
TEST(VectorMathTest, Exp) {
  std::vector<float> x;
  for (float value : samples())
    x.push_back(value > 0.0f ? 0.0f : value);
  std::vector<float> first;
  for (const std::string &target : runnableTargets()) {
    std::vector<float> got = runFunction(target, emitExp, x);
    check(target + " exp", x, got, expWanted, {7e-8, 1.5});
    if (first.empty())
      first = got;
    expectSameBits(got, first, 16, target);
  }
  EXPECT_EQ(first[0], 1.0f);
}

// Over all positive floats that are neither denormal nor infinite, and densely around 1, where the result is small.
TEST(VectorMathTest, Log) {
  std::vector<float> x;
  for (float value : samples())
    if (!(value < 0x1p-126f) && !std::isinf(value))
      x.push_back(value);
  for (uint32_t bits = 0x3F000000u; bits <= 0x40000000u; bits += 61)
    x.push_back(fromBits(bits));
  for (float value : {1.0f, 1e-9f, 0.70710677f, 0.70710683f, 1.41421354f, 1.41421366f, 2.0f, 0.5f})
    x.push_back(value);
  while (x.size() % 16)
    x.push_back(1.0f);
  std::vector<float> first;
  for (const std::string &target : runnableTargets()) {
    std::vector<float> got = runFunction(target, emitLog, x);
    check(target + " log", x, got, std::log, {5e-8, 1.4});
    if (first.empty())
      first = got;
    expectSameBits(got, first, 16, target);
  }
  EXPECT_EQ(first.back(), 0.0f);
}

TEST(VectorMathTest, GeluErf) { checkActivation<ActivationKind::GeluErf>({7e-8, 80, 1e-36, -6.0}); }
TEST(VectorMathTest, GeluTanh) { checkActivation<ActivationKind::GeluTanh>({1.2e-7, 160}); }
TEST(VectorMathTest, Silu) { checkActivation<ActivationKind::Silu>({1.2e-7, 3.6, 2e-36}); }
TEST(VectorMathTest, Tanh) { checkActivation<ActivationKind::Tanh>({9e-8, 2.6}); }
TEST(VectorMathTest, Sigmoid) { checkActivation<ActivationKind::Sigmoid>({9e-8, 2.9}); }
TEST(VectorMathTest, Relu) { checkActivation<ActivationKind::Relu>({0, 0}); }

// [R9] The two gelus differ, and each has the value that PyTorch gives.
TEST(VectorMathTest, GelusAtTheKnownPoint) {
  Input x = Input::ofRows(1, 1, {-2.7f});
  for (const std::string &target : runnableTargets()) {
    EXPECT_NEAR(runKernel(target, KernelKey::activation(1, ActivationKind::GeluErf), {x}, plainBatch(1), 1, 1)[0],
                -0.00936083, 1e-8);
    EXPECT_NEAR(runKernel(target, KernelKey::activation(1, ActivationKind::GeluTanh), {x}, plainBatch(1), 1, 1)[0],
                -0.00888759, 1e-8);
  }
}
