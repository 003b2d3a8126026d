// ctc_loss on the CPU: samples are split over threads; each is one sequential recursion.
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/ctc_loss.h>
#include <binade/kernels/loss/ctc_loss_isa_internal.h>

#include <cmath>
#include <limits>
#include <vector>

namespace binade::kernels {
namespace {

int64_t value(const View& v, int64_t i) { return v.as<int64_t>()[i * v.strides[0]]; }

double read(const View& v, int64_t i) {
  const int64_t at = i * v.strides[0];
  return v.dtype == DType::f64 ? v.as<double>()[at] : static_cast<double>(v.as<float>()[at]);
}

void write(const View& v, int64_t i, double x) {
  v.dtype == DType::f64 ? v.as<double>()[i] = x : v.as<float>()[i] = static_cast<float>(x);
}

template <class... Parts>
void check_value(bool good, int64_t value, const Parts&... message) {
  if (!good) [[unlikely]] {
    throw IndexError(text("ctc_loss: got ", message...), "ctc_loss", value);
  }
}

void check_lengths(const CtcSequences& s) {
  const int64_t times = s.log_probs.size(0), classes = s.log_probs.size(2);
  for (int64_t n = 0; n < s.log_probs.size(1); ++n) {
    const int64_t input = value(s.input_lengths, n), target = value(s.target_lengths, n);
    check_value(input >= 0 && input <= times, input, "input length ", input, " of sample ", n,
                ", expected 0 to ", times);
    check_value(target >= 0 && target <= s.targets.size(1), target, "target length ", target,
                " of sample ", n, ", expected 0 to ", s.targets.size(1));
    for (int64_t i = 0; i < target; ++i) {
      const int64_t label =
          s.targets.as<int64_t>()[n * s.targets.strides[0] + i * s.targets.strides[1]];
      check_value(label >= 0 && label < classes && label != s.blank, label, "label ", label, " at ",
                  i, " of sample ", n, ", expected 0 to ", classes - 1, " but not blank ", s.blank);
    }
  }
}

// The states of sample n; owns the memory that a CtcSample points to.
struct States {
  std::vector<int64_t> classes;
  std::vector<double> skip_wide;
  std::vector<float> skip;

  States(const CtcSequences& s, int64_t n) {
    const int64_t labels = value(s.target_lengths, n);
    const View& t = s.targets;
    for (int64_t i = 0; i < labels; ++i) {
      classes.push_back(s.blank);
      classes.push_back(t.as<int64_t>()[n * t.strides[0] + i * t.strides[1]]);
    }
    classes.push_back(s.blank);
    for (size_t i = 0; i < classes.size(); ++i) {
      const bool may = i % 2 == 1 && i >= 2 && classes[i] != classes[i - 2];
      skip_wide.push_back(may ? 0 : -std::numeric_limits<double>::infinity());
    }
    skip.assign(skip_wide.begin(), skip_wide.end());
  }
};

// Calls f(n, sample) for every sample.
template <class F>
void for_samples(const CtcSequences& s, const View& alpha, const F& f) {
  const View& x = s.log_probs;
  const auto width = static_cast<int64_t>(size_of(x.dtype));
  parallel_for(x.size(1), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const States states(s, n);
      const auto count = static_cast<int64_t>(states.classes.size());
      const Workspace scratch(static_cast<size_t>((4 * (count + 2) + x.size(2)) * width));
      f(n,
        CtcSample{.compute = x.dtype,
                  .log_probs = x.data + n * x.size(2) * width,
                  .time_stride = x.size(1) * x.size(2),
                  .times = value(s.input_lengths, n),
                  .classes = x.size(2),
                  .state_class = states.classes.data(),
                  .skip = x.dtype == DType::f64 ? static_cast<const void*>(states.skip_wide.data())
                                                : states.skip.data(),
                  .states = count,
                  .alpha = alpha.data + n * alpha.size(1) * alpha.size(2) * width,
                  .alpha_stride = alpha.size(2),
                  .scratch = scratch.as<void>()});
    }
  });
}

double weight_of(const CtcSequences& s, int64_t n) {
  const auto length = static_cast<double>(value(s.target_lengths, n));
  return s.mean ? 1 / (std::fmax(length, 1) * static_cast<double>(s.log_probs.size(1))) : 1;
}

}  // namespace

void cpu::ctc_loss_forward(const CtcLossForward& a) {
  check_arguments(a);
  const CtcSequences& s = a.sequences;
  check_lengths(s);
  for_samples(s, a.alpha, [&](int64_t n, const CtcSample& sample) {
    double nll = 0;
    ctc_forward_best(sample, &nll);
    write(a.nll, n, nll);
    write(a.loss, n, s.zero_infinity && std::isinf(nll) ? 0 : nll * weight_of(s, n));
  });
}

void cpu::ctc_loss_backward(const CtcLossBackward& a) {
  check_arguments(a);
  const CtcSequences& s = a.sequences;
  check_lengths(s);
  const auto width = static_cast<int64_t>(size_of(a.dlogits.dtype));
  for_samples(s, a.alpha, [&](int64_t n, const CtcSample& sample) {
    const double nll = read(a.nll, n);
    std::byte* first = a.dlogits.data + n * a.dlogits.strides[1] * width;
    View rest = a.dlogits;  // one value: times after the input, or all if nll is not finite
    rest.sizes = {a.dlogits.size(0), a.dlogits.size(2)};
    rest.strides = {a.dlogits.strides[0], a.dlogits.strides[2]};
    rest.contiguous = false;
    const auto fill = [&](int64_t from, int64_t to, double x) {
      rest.data = first + from * rest.strides[0] * width;
      rest.sizes[0] = to - from;
      rest.numel = element_count(rest.sizes);
      cpu::fill({.y = rest, .value = x});
    };
    fill(sample.times, a.dlogits.size(0), 0);
    if (!std::isfinite(nll)) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      return fill(0, sample.times, s.zero_infinity && std::isinf(nll) ? 0 : nan);
    }
    ctc_backward_best(sample, CtcGradient{.scale = read(a.dy, n) * weight_of(s, n),
                                          .dlogits = first,
                                          .time_stride = a.dlogits.strides[0] * width,
                                          .class_stride = a.dlogits.strides[2] * width,
                                          .dtype = a.dlogits.dtype});
  });
}

}  // namespace binade::kernels
