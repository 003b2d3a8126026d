// Tests simulated formats in models, and for each format a case in which it must fail.
#include <binade/core/ops.h>
#include <binade/core/ops/format.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cmath>

namespace binade::simulated_formats_test {
namespace {

double relative_error(const Tensor& got, const Tensor& want) {
  const double size = norm(want).item();
  return norm(sub(got, want)).item() / size;
}

// Returns [64, 256] with one channel that is a thousand times larger, as in the activations of
// large language models (Dettmers et al., "LLM.int8()", 2022).
Tensor with_outlier_channel(double factor) {
  manual_seed(3);
  Tensor x = randn({64, 256});
  Tensor row = ones({256});
  row.data<float>()[17] = static_cast<float>(factor);
  return mul(x, row);
}

// The relative error of all channels except the outlier.
double error_beside_outlier(const std::string& scheme, double factor) {
  const Tensor x = with_outlier_channel(factor);
  Tensor keep = ones({256});
  keep.data<float>()[17] = 0;
  return relative_error(mul(round_to_format(x, format_scheme(scheme)), keep), mul(x, keep));
}

TEST(FormatLimits, OutlierChannelBreaksATensorScaleAndNotBlocks) {
  constexpr double kOutlier = 1e5;
  EXPECT_GT(error_beside_outlier("e4m3fn/tensor", kOutlier), 0.2);
  EXPECT_LT(error_beside_outlier("e4m3fn/tensor", 1), 0.04);
  EXPECT_LT(error_beside_outlier("mxfp8", kOutlier), 0.5);
  // Only the outlier's own block of 32 suffers; the other 7 of 8 blocks are unchanged.
  const Tensor x = with_outlier_channel(kOutlier);
  const Tensor rounded = round_to_format(x, format_scheme("mxfp8"));
  EXPECT_LT(relative_error(slice(rounded, 1, 32, 256), slice(x, 1, 32, 256)), 0.04);
  EXPECT_GT(relative_error(slice(round_to_format(x, format_scheme("e4m3fn/tensor")), 1, 32, 256),
                           slice(x, 1, 32, 256)),
            0.2);
}

TEST(FormatLimits, SmallGradientsVanishInE4m3AndStayInE5m2) {
  manual_seed(4);
  const Tensor gradient = mul(randn({4096}), 0x1p-12);  // typical of unscaled activation gradients
  EXPECT_GT(relative_error(round_to_format(gradient, format_scheme("e4m3fn")), gradient), 0.9);
  EXPECT_LT(relative_error(round_to_format(gradient, format_scheme("e5m2")), gradient), 0.1);
  EXPECT_LT(relative_error(round_to_format(gradient, format_scheme("e4m3fn/tensor")), gradient),
            0.05);
}

TEST(FormatLimits, E5m2IsTooCoarseForWhatE4m3Holds) {
  manual_seed(5);
  const Tensor x = randn({4096});
  const double coarse = relative_error(round_to_format(x, format_scheme("e5m2")), x);
  EXPECT_GT(coarse, 1.8 * relative_error(round_to_format(x, format_scheme("e4m3fn")), x));
}

TEST(FormatLimits, F16OverflowsWhereBf16HoldsAndBf16LosesDigits) {
  const Tensor large = full({3}, 70000.0);
  EXPECT_TRUE(std::isinf(round_to_format(large, format_scheme("f16")).data<float>()[0]));
  EXPECT_LT(relative_error(round_to_format(large, format_scheme("bf16")), large), 0.004);
  const Tensor near_one = full({3}, 1 + 0x1p-9);
  EXPECT_EQ(round_to_format(near_one, format_scheme("bf16")).data<float>()[0], 1);
  EXPECT_EQ(round_to_format(near_one, format_scheme("f16")).data<float>()[0], 1 + 0x1p-9f);
  EXPECT_EQ(round_to_format(full({1}, 1 + 0x1p-11), format_scheme("tf32")).data<float>()[0], 1);
}

TEST(FormatLimits, Fp4NeedsSmallBlocks) {
  manual_seed(6);
  // Magnitudes that change by a factor of 256 within each block of 32.
  const Tensor slope = exp(mul(arange(0, 32, 1, DType::f32), -std::log(256.0) / 31));
  const Tensor x = mul(randn({64, 32}), slope);
  const Tensor tail = slice(x, 1, 16, 32);
  const auto tail_error = [&](const char* scheme) {
    return relative_error(slice(round_to_format(x, format_scheme(scheme)), 1, 16, 32), tail);
  };
  EXPECT_GT(tail_error("mxfp4"), 0.5);
  EXPECT_LT(tail_error("nvfp4"), 0.2);
  EXPECT_LT(tail_error("mxfp6"), tail_error("mxfp4"));
  EXPECT_LT(tail_error("mxfp8"), 0.1);
}

TEST(FormatLimits, NvfpTensorScaleReachesWhereTheBlockScaleDoesNot) {
  manual_seed(7);
  const Tensor tiny = mul(randn({8, 64}), 0x1p-40);
  FormatScheme one_level = format_scheme("nvfp4");
  EXPECT_LT(relative_error(round_to_format(tiny, one_level), tiny), 0.2);
  EXPECT_EQ(norm(round_to_format(tiny, one_level, ones({1}))).item(), 0);
}

TEST(FormatLimits, AccumulatorsStall) {
  const Tensor a = ones({1, 8192}), b = ones({8192, 1});
  const auto sum = [&](const char* format, kernels::SumOrder order) {
    return accumulated_matmul(a, b, {.format = number_format(format), .order = order}).item();
  };
  EXPECT_EQ(sum("f16", kernels::SumOrder::sequential), 2048);
  EXPECT_EQ(sum("bf16", kernels::SumOrder::sequential), 256);
  EXPECT_EQ(sum("f16", kernels::SumOrder::chunks), 8192);
  EXPECT_EQ(sum("f16", kernels::SumOrder::pairwise), 8192);
  EXPECT_EQ(sum("f16", kernels::SumOrder::kahan), 8192);
  EXPECT_EQ(sum("f32", kernels::SumOrder::sequential), 8192);
}

// A model of one linear layer ---------------------------------------------------------------------

struct Layer {
  Tensor x = randn({6, 32}), w = randn({5, 32}), b = randn({5}), dy = randn({6, 5});
  Layer() {
    x.require_grad();
    w.require_grad();
    b.require_grad();
  }
  Tensor run(const Precision& precision) {
    Tensor y;
    {
      const PrecisionScope scope(precision);
      y = linear(mul(x, 1), w, b);  // a leaf counts as a weight
    }
    backward(y, dy);
    return y;
  }
};

TEST(SimulatedFormats, RoundOperandsAndGradientsOfContractions) {
  manual_seed(8);
  Layer layer;
  const FormatSchemes schemes{.weights = format_scheme("e2m1"),
                              .activations = format_scheme("mxfp8"),
                              .gradients = format_scheme("e5m2")};
  const Tensor y = layer.run(with_formats(Precision::full(), schemes));
  const NoGradGuard guard;
  const Tensor x = round_to_format(layer.x, *schemes.activations);
  const Tensor dy = round_to_format(layer.dy, *schemes.gradients);
  const Tensor w = round_to_format(layer.w, *schemes.weights);
  EXPECT_EQ(norm(sub(y, linear(x, w, layer.b))).item(), 0);
  EXPECT_LT(relative_error(layer.w.grad(), matmul(transpose(dy, 0, 1), x)), 1e-6);
  EXPECT_LT(relative_error(layer.x.grad(), matmul(dy, w)), 1e-6);
}

// An infinity in the gradient of a product reaches the gradients of its operands.
TEST(SimulatedFormats, AnOverflowIsSeenBehindThem) {
  manual_seed(10);
  for (const char* scheme : {"e4m3fn/tensor", "e5m2/tensor", "e5m2/delayed=4", "mxfp8",
                             "mxfp8-e5m2", "mxfp4", "nvfp4"}) {
    for (const double bad : std::vector<double>{INFINITY, -INFINITY, NAN}) {
      const FormatScheme wanted = format_scheme(scheme);
      const Precision precision = with_formats(
          Precision::full(), {.weights = wanted, .activations = wanted, .gradients = wanted});
      Layer layer;
      if (wanted.scaling == FormatScaling::delayed) {
        (void)layer.run(precision);  // the histories begin
        layer.w.zero_grad();
        layer.x.zero_grad();
      }
      layer.dy.data<float>()[7] = static_cast<float>(bad);
      (void)layer.run(precision);
      EXPECT_FALSE(std::isfinite(sum(layer.w.grad()).item())) << scheme << " " << bad;
      EXPECT_FALSE(std::isfinite(sum(layer.x.grad()).item())) << scheme << " " << bad;
    }
  }
}

TEST(SimulatedFormats, ActOnContractionsAlone) {
  const Precision precision =
      with_formats(Precision::full(), {.activations = format_scheme("e2m1")});
  const PrecisionScope scope(precision);
  const Tensor x = full({2, 2}, 1.1);
  EXPECT_FLOAT_EQ(add(x, x).data<float>()[0], 2.2f);
  EXPECT_EQ(matmul(x, x).data<float>()[0], 2);
}

// Blocks lie along the dimension that a product sums over, for every op.
TEST(SimulatedFormats, BlocksLieAlongTheSummedDimension) {
  manual_seed(9);
  const Precision precision =
      with_formats(Precision::full(), {.activations = format_scheme("mxfp4")});
  FormatScheme rows = format_scheme("mxfp4"), columns = rows, channels = rows;
  columns.axis = -2;
  channels.axis = 1;
  const auto differ = [](const Tensor& a, const Tensor& b) { return norm(sub(a, b)).item() > 0; };
  const Tensor a = mul(randn({6, 64}), exp(randn({6, 1}))),
               b = mul(randn({64, 5}), exp(randn({64, 1})));
  const Tensor left = round_to_format(a, rows), right = round_to_format(b, columns);
  ASSERT_TRUE(differ(right, round_to_format(b, rows)));
  const Tensor want = matmul(left, right), start = zeros({6, 5});
  const Tensor x = mul(randn({1, 64, 4, 4}), exp(randn({1, 64, 1, 1}))), w = randn({3, 64, 1, 1});
  const Tensor image = conv2d(round_to_format(x, channels), round_to_format(w, channels), {});
  Tensor x_ = x.clone(), w_ = w.clone();
  const PrecisionScope scope(precision);
  EXPECT_FALSE(differ(matmul(a, b), want));
  EXPECT_FALSE(differ(addmm(round_to_format(start, rows), a, b), want));
  EXPECT_FALSE(
      differ(squeeze(baddbmm(unsqueeze(start, 0), unsqueeze(a, 0), unsqueeze(b, 0)), 0), want));
  EXPECT_FALSE(differ(conv2d(x_, w_, {}), image));
}

TEST(SimulatedFormats, DelayedScalesComeFromEarlierUses) {
  const Precision precision =
      with_formats(Precision::full(), {.activations = format_scheme("e4m3fn/delayed=2")});
  const auto product = [&](double value) {
    const PrecisionScope scope(precision);
    return matmul(full({1, 2}, value), full({2, 1}, 1.0)).item();
  };
  EXPECT_EQ(product(1e4), 896);       // scale 1: saturates at 448
  EXPECT_NEAR(product(1e4), 2e4, 1);  // uses the scale of the previous use
  EXPECT_NEAR(product(1), 2, 2 * 10000.0 / 448 / 512);
  EXPECT_NEAR(product(3), 6, 0.5);
}

TEST(SimulatedFormats, AreWrittenAndReadBack) {
  const Precision precision =
      with_formats(Precision::mixed(DType::bf16),
                   {.weights = format_scheme("nvfp4"), .gradients = format_scheme("e5m2/tensor")});
  EXPECT_EQ(to_string(precision), "mixed bf16, simulated weights nvfp4, gradients e5m2/tensor");
  const Precision back = precision_of_json(to_json(precision));
  EXPECT_TRUE(back == precision);
  EXPECT_FALSE(back == Precision::mixed(DType::bf16));
  const Precision ruled = precision.with({{.op = "softmax", .dtype = DType::f32}});
  EXPECT_EQ(formats_of(ruled), formats_of(precision));
  EXPECT_FALSE(with_formats(precision, {}).acts() == false);
  EXPECT_THROW(precision_of_json(R"({"policy": "fp32", "formats": {"bias": "e4m3"}})"), Error);
}

// What is not finite must reach the check of a loss scaler, and only that.
TEST(RoundToFormat, KeepsWhatIsNotFinite) {
  for (const char* scheme : {"e4m3fn", "e4m3fn:overflow=saturate", "e5m2:overflow=saturate", "e2m1",
                             "e3m2", "f16", "bf16", "e4m3fn/tensor", "e5m2/tensor", "e4m3/tensor",
                             "e2m1/tensor", "e5m2/tensor/toward-zero", "e4m3fn/tensor/stochastic",
                             "mxfp8", "mxfp8-e5m2", "mxfp6", "mxfp6-e3m2", "mxfp4", "nvfp4"}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      const FormatScheme wanted = format_scheme(scheme);
      for (const double bad : std::vector<double>{INFINITY, -INFINITY, NAN}) {
        SCOPED_TRACE(text(scheme, " ", dtype, " ", bad));
        Tensor x = full({3, 64}, 1.5, DType::f64);
        x.data<double>()[70] = bad;
        const Tensor y = round_to_format(x.to(dtype), wanted).to(DType::f64);
        EXPECT_FALSE(std::isfinite(y.data<double>()[70]));
        for (const int64_t finite : {0, 63, 96, 191}) {  // of other blocks
          EXPECT_TRUE(std::isfinite(y.data<double>()[finite]));
        }
      }
    }
  }
}

TEST(RoundToFormat, AScaleSaturatesFiniteValues) {
  for (const char* scheme : {"e4m3fn/tensor", "e5m2/tensor", "e4m3/tensor", "e2m1/tensor",
                             "e3m4/tensor", "mxfp8", "mxfp4", "nvfp4"}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const double top = dtype == DType::f16    ? 65504
                         : dtype == DType::bf16 ? 0x1.fep127
                                                : 0x1.fffffep127;
      for (const double x : {top, 0.99 * top, -top}) {
        const double y = round_to_format(full({32}, x, dtype), format_scheme(scheme))
                             .to(DType::f64)
                             .data<double>()[5];
        EXPECT_TRUE(std::isfinite(y)) << scheme << " " << to_string(dtype) << " " << x;
      }
    }
  }
  // A delayed scale that is too small.
  const Tensor y = round_to_format(full({3}, 1e30), format_scheme("e4m3fn/delayed=2"), ones({1}));
  EXPECT_EQ(y.data<float>()[0], 448);
}

TEST(RoundToFormat, PassesTheGradientStraightThrough) {
  Tensor x = randn({3, 5});
  x.require_grad();
  const Tensor dy = randn({3, 5});
  backward(round_to_format(x, format_scheme("mxfp4")), dy);
  EXPECT_EQ(norm(sub(x.grad(), dy)).item(), 0);
}

TEST(RoundToFormat, StochasticDrawsFromTheGenerator) {
  const FormatScheme scheme = format_scheme("e2m1/stochastic");
  const Tensor x = full({1001}, 1.2);
  manual_seed(5);
  const Tensor a = round_to_format(x, scheme), b = round_to_format(x, scheme);
  manual_seed(5);
  EXPECT_EQ(norm(sub(round_to_format(x, scheme), a)).item(), 0);
  EXPECT_GT(norm(sub(a, b)).item(), 0);
  EXPECT_NEAR(mean(a).item(), 1.2, 4 * 0.25 / std::sqrt(1001.0));
}

TEST(AccumulatedMatmul, GradientsAreProductsOfTheSameKind) {
  Tensor a = ones({1, 4096}), b = ones({4096, 1});
  a.require_grad();
  b.require_grad();
  const Tensor y = accumulated_matmul(a, b, {.format = number_format("bf16")});
  EXPECT_EQ(y.item(), 256);
  backward(y, full({1, 1}, 1.5));
  EXPECT_EQ(a.grad().data<float>()[77], 1.5f);
  EXPECT_EQ(b.grad().data<float>()[4095], 1.5f);
}

}  // namespace
}  // namespace binade::simulated_formats_test
