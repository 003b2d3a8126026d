// Softmax and batch norm with f16 and with f32 arithmetic inside.
#include <algorithm>
#include <cmath>

#include "experiment.h"
#include "f16_arithmetic.h"

namespace study {
namespace {

constexpr double kOffset = 8;  // of the values that are normalised: as after a layer with a bias
constexpr double kAccurate = 0.01, kInaccurate = 0.25;

Tensor softmax_in_f16(const Tensor& x) {  // f16 [n]
  const half* in = x.data<half>();
  const int64_t n = x.numel();
  half largest = in[0], sum(0.0F);
  for (int64_t i = 1; i < n; ++i) {
    largest = static_cast<float>(in[i]) > static_cast<float>(largest) ? in[i] : largest;
  }
  for (int64_t i = 0; i < n; ++i) {
    sum = add(sum, exp(sub(in[i], largest)));
  }
  Tensor y = empty({n}, DType::f16);
  for (int64_t i = 0; i < n; ++i) {
    y.data<half>()[i] = div(exp(sub(in[i], largest)), sum);
  }
  return y;
}

Tensor normalize_in_f16(const Tensor& x) {  // f16 [n]: (x - mean) / sqrt(var + eps)
  const half* in = x.data<half>();
  const int64_t n = x.numel();
  const half count(static_cast<float>(n));
  half sum(0.0F), squares(0.0F);
  for (int64_t i = 0; i < n; ++i) {
    sum = add(sum, in[i]);
  }
  const half mean = div(sum, count);
  for (int64_t i = 0; i < n; ++i) {
    squares = add(squares, mul(sub(in[i], mean), sub(in[i], mean)));
  }
  const half deviation = sqrt(add(div(squares, count), half(1e-5F)));
  Tensor y = empty({n}, DType::f16);
  for (int64_t i = 0; i < n; ++i) {
    y.data<half>()[i] = div(sub(in[i], mean), deviation);
  }
  return y;
}

Tensor normalize(const Tensor& x) {  // Binade's batch norm over [n, 1], a channel
  return batch_norm(x.reshape({x.numel(), 1}), {}, {}, {}, {}).reshape({x.numel()});
}

// Root of the mean squared error of f16 results, over that of the exact values about zero.
double error_of(const Tensor& y, const Tensor& exact) {
  const Tensor difference = y.to(DType::f64) - exact;
  const double error = sum(square(difference)).item() / sum(square(exact)).item();
  return std::isfinite(error) ? std::sqrt(error) : INFINITY;
}

struct Op {
  const char* title;
  Tensor (*plain)(const Tensor& x);  // Binade's
  Tensor (*in_f16)(const Tensor& x);
  double offset;
};

// The mechanism of the batch norm's failure: from a sum of 32768 on a unit of f16 is 32, and the 8
// of another value is less than half of it.
void stalling_sum(Report& report) {
  constexpr int64_t kCount = 8192;
  const Tensor x = (randn({kCount}) + kOffset).to(DType::f16);
  half sum(0.0F);
  int64_t growing = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const half next = add(sum, x.data<half>()[i]);
    growing = next.bits != sum.bits ? i + 1 : growing;
    sum = next;
  }
  const auto last = static_cast<double>(sum);
  report.at_most("Batch norm, f16 inside: sum of 8192 values near 8 (65536 in truth)", last, 33000);
  report.at_least("Batch norm, f16 inside: values after which the sum stands still",
                  kCount - growing, kCount / 3.0);
  report.remarks.push_back(
      "In f16 the sum of values near 8 stalls at " + fixed(last, 0) + " after " +
      std::to_string(growing) +
      " of 8192 terms: there half a unit is 16. The mean comes out as about 4, the squares of the "
      "differences are about 16, and their sum overflows.");
}

void compare(const Op& op, const Lab& lab, Report& report) {
  Series f16{.name = "f16 inside", .x = {}, .y = {}};
  Series f32{.name = "f32 inside (Binade)", .x = {}, .y = {}};
  double worst = 0;
  for (int64_t n = 16; n <= 32768; n *= 2) {
    const Tensor x = (randn({n}) + op.offset).to(DType::f16);
    const Tensor exact = op.plain(x.to(DType::f64)), low = op.in_f16(x);
    f16.x.push_back(static_cast<double>(n));
    f16.y.push_back(error_of(low, exact));
    f32.x.push_back(static_cast<double>(n));
    f32.y.push_back(
        error_of(lab.broken ? low : op.plain(x.to(lab.data.device())).to(Device{}), exact));
    worst = std::max(worst, f32.y.back());
  }
  const double last = f16.y.back();
  report.plots.push_back({.title = op.title,
                          .caption = "Root mean square error over that of the exact result; f16 in "
                                     "and out. A point that is missing is infinite.",
                          .x = {.label = "values reduced", .scale = Axis::log2},
                          .y = {.label = "relative error", .scale = Axis::log10},
                          .series = {f16, f32}});
  report
      .at_most(std::string(op.title) + ", f32 inside, worst length: relative error", worst,
               kAccurate)
      .by_mechanism = true;
  report.at_least(std::string(op.title) + ", f16 inside, length 32768: relative error", last,
                  kInaccurate);
}

void run(const Lab& lab, Report& report) {
  manual_seed(1);
  const Op softmax_op{"Softmax", [](const Tensor& x) { return softmax(x); }, softmax_in_f16, 0};
  const Op norm_op{"Batch norm", normalize, normalize_in_f16, kOffset};
  compare(softmax_op, lab, report);
  compare(norm_op, lab, report);
  stalling_sum(report);
}

}  // namespace

const Experiment kReductions{
    .name = "reductions",
    .title = "Norms and softmax need f32 inside",
    .section = "section 3.3",
    .claim =
        "Large reductions should be carried out in f32: they come up in batch norm, when "
        "statistics are accumulated, and in softmax. Both read and write f16 tensors and "
        "compute in f32; as they are limited by memory, they are no slower for it.",
    .method =
        "Softmax and the normalisation of batch norm over f16 values, by Binade's ops and with "
        "every intermediate result rounded to f16, against f64.",
    .mechanism = "the f32 inside",
    .run = run};

}  // namespace study
