// Tests the lens on tensors that were rounded to f16 before it counted them.
#include <binade/binade.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>
#include <tests/support/temporary_directory.h>

#include <cmath>

namespace binade::train::lens_rounding_test {
namespace {

// A module whose gradient is `slopes`, with exponents far below the range of f16.
class Planted : public nn::Module {
 public:
  Planted() : slopes(empty({64})) {
    w = ones({64});
    register_parameter("w", w);
    for (int i = 0; i < 64; ++i) {
      slopes.data<float>()[i] = std::ldexp(i % 2 == 0 ? 1.0f : -1.0f, -i / 2 * 3 / 2);
    }
  }
  Tensor forward(const Tensor& x) override { return sum(w.to(DType::f32) * x); }
  Tensor w, slopes;
};

LensRecord record_of_planted(double scale, const Precision& precision) {
  Planted model;
  model.to(kernels::test_device(), precision);
  optim::SGD sgd(model.parameters(), {.lr = 1e-3f});
  optim::LossScaler scaler = optim::LossScaler::fixed(scale);
  Lens lens(model.parameters(), sgd, {.every = 1});
  lens.begin(0);
  scaler.scale(model(model.slopes.to(kernels::test_device()))).backward();
  lens.before_update();
  (void)scaler.step(sgd).value();
  lens.end();
  for (const LensRecord& record : lens.records()) {
    if (record.kind == LensKind::weight_gradient) {
      return record;
    }
  }
  fail("no record of a weight gradient");
}

// The number of slopes that f16 flushes at a scale, found by casting the exact slopes.
int64_t flushed_slopes(double scale) {
  const Tensor slopes = Planted().slopes;
  int64_t flushed = 0;
  for (int64_t i = 0; i < slopes.numel(); ++i) {
    flushed += static_cast<double>(half(slopes.at(i) * scale)) == 0;
  }
  return flushed;
}

TEST(LensRounding, ClaimsNothingOfWhatWasFlushedBeforeItWasCounted) {
  for (const double scale : {1.0, 8.0, 1024.0, 16384.0}) {
    const LensRecord low = record_of_planted(scale, Precision::mixed(DType::f16));
    const LensRecord full = record_of_planted(scale, Precision::full());
    EXPECT_EQ(low.stored, DType::f16);
    EXPECT_EQ(full.stored, DType::f32);
    EXPECT_EQ(low.counts.zeros(), flushed_slopes(scale));
    for (const auto& [at, fates] : scale_table(low.counts, kLensScales)) {
      EXPECT_TRUE(full.shows_flushed(at));
      EXPECT_EQ(low.shows_flushed(at), at < scale) << at << " of " << scale;
      if (low.shows_flushed(at)) {  // the visible ones plus those flushed when stored
        EXPECT_EQ(fates.flushed + low.counts.zeros(), flushed_slopes(at)) << at << " of " << scale;
      }
    }
    for (const auto& [at, fates] : scale_table(full.counts, kLensScales)) {
      EXPECT_EQ(fates.flushed, flushed_slopes(at)) << at << " of " << scale;
    }
    EXPECT_EQ(to_json(low).find("f16_flushed") != std::string::npos, scale > 1);
    EXPECT_NE(to_json(low).find("{\"scale\":32768,\"flushed\":null"), std::string::npos);
    EXPECT_EQ(to_json(full).find("null"), std::string::npos);
  }
}

TEST(LensRounding, ReportSaysWhatWasRoundedBefore) {
  const binade::testing::TemporaryDirectory directory;
  const std::string file = directory / "lens.jsonl";
  const auto report_of = [&file](double scale, const Precision& precision) {
    write_file_durably(file, to_json(record_of_planted(scale, precision)) + "\n");
    return read_lens(file);
  };
  const LensReport low = report_of(8, Precision::mixed(DType::f16));
  EXPECT_EQ(low.rounded_at, 8);
  EXPECT_TRUE(low.scales[0].shows_flushed);   // at 1
  EXPECT_FALSE(low.scales[1].shows_flushed);  // at 8
  for (const std::string& page : {to_text(low), to_html(low)}) {
    for (const char* part : {"rounded at 8", "flushed at least", "zero or flushed before",
                             "at least ", "not known", "lower bounds"}) {
      EXPECT_NE(page.find(part), std::string::npos) << part;
    }
  }
  const LensReport full = report_of(8, Precision::full());
  EXPECT_EQ(full.rounded_at, 0);
  for (const std::string& page : {to_text(full), to_html(full)}) {
    EXPECT_EQ(page.find("not known"), std::string::npos);
    EXPECT_EQ(page.find("at least"), std::string::npos);
  }
}

}  // namespace
}  // namespace binade::train::lens_rounding_test
