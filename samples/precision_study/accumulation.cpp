// Long dot products with an f16 and with an f32 accumulator.
#include <algorithm>
#include <cmath>

#include "experiment.h"
#include "f16_arithmetic.h"

namespace study {
namespace {

constexpr int64_t kRows = 32;  // dot products per length
// Half a unit of f16, for the one rounding to f16, and a twentieth of it for the f32 sum.
constexpr double kAccurate = 1.05 * 0x1p-11, kInaccurate = 0.5;

double dot_in_f16(const half* a, const half* b, int64_t length) {
  half sum(0.0F);
  for (int64_t i = 0; i < length; ++i) {
    sum = add(sum, mul(a[i], b[i]));
  }
  return static_cast<double>(sum);
}

double dot_exact(const half* a, const half* b, int64_t length) {
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Errors {
  double f16, f32;  // medians, relative
  double worst_f32;
};

// The errors of `kRows` dot products: rows of a with vector b, both uniform in [0, 1) / sqrt(8).
Errors errors_at(int64_t length, const Lab& lab) {
  const Tensor a = (rand({kRows, length}) * 0.35).to(DType::f16);
  const Tensor b = (rand({length, 1}) * 0.35).to(DType::f16);
  const Device device = lab.data.device();
  const Tensor y =
      matmul(a.to(device), b.to(device)).to(Device{});  // f16 in, f32 accumulators, f16 out
  std::vector<double> in_f16, in_f32;
  for (int64_t row = 0; row < kRows; ++row) {
    const half* from = a.data<half>() + row * length;
    const double exact = dot_exact(from, b.data<half>(), length);
    const double low = dot_in_f16(from, b.data<half>(), length);
    in_f16.push_back(std::abs(low / exact - 1));
    in_f32.push_back(std::abs((lab.broken ? low : y.at(row)) / exact - 1));
  }
  return {median(in_f16), median(in_f32), *std::max_element(in_f32.begin(), in_f32.end())};
}

void run(const Lab& lab, Report& report) {
  manual_seed(1);
  Series f16{.name = "f16 accumulator", .x = {}, .y = {}};
  Series f32{.name = "f32 accumulator (Binade's matmul)", .x = {}, .y = {}};
  double worst = 0, last = 0;
  for (int64_t length = 16; length <= 65536; length *= 2) {
    const Errors errors = errors_at(length, lab);
    f16.x.push_back(static_cast<double>(length));
    f16.y.push_back(errors.f16);
    f32.x.push_back(static_cast<double>(length));
    f32.y.push_back(errors.f32);
    worst = std::max(worst, errors.worst_f32);
    last = errors.f16;
  }
  report.plots.push_back(
      {.title = "Error of a dot product",
       .caption = "Median over 32 dot products of positive numbers, against f64. With an f16 "
                  "accumulator the sum stops growing: at the latest when it is 4096 times a term.",
       .x = {.label = "length", .scale = Axis::log2},
       .y = {.label = "relative error", .scale = Axis::log10},
       .series = {f16, f32}});
  report.at_least("f16 accumulator, length 65536: relative error", last, kInaccurate);
  report
      .at_most(
          "f32 accumulator, worst of all dot products: relative error (half a unit of f16 is "
          "2^-11)",
          worst, kAccurate)
      .by_mechanism = true;
}

}  // namespace

const Experiment kAccumulation{
    .name = "accumulation",
    .title = "Dot products need f32 accumulators",
    .section = "section 3.3",
    .claim =
        "Some networks require that an f16 dot product accumulates its partial products in f32 "
        "and is rounded to f16 once, when it is written.",
    .method =
        "Dot products of f16 vectors of growing length, by Binade's matmul (f16 in, f32 "
        "accumulators, f16 out) and with every product and partial sum rounded to f16.",
    .mechanism = "the f32 accumulator",
    .run = run};

}  // namespace study
