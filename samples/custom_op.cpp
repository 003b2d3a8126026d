// A custom op: scaled softsign, y = x / (s + |x|) with a learned scale s, here without kernels, so
// that it runs on every device and in every dtype. docs/custom-ops.md explains each line.
#include <binade/binade.h>

#include <cstdio>
using namespace binade;

// The op's name in errors, and its class: sums and ratios are safe in f16, so `pointwise`.
static constexpr Op kSoftsign{"softsign", OpClass::pointwise};

Tensor softsign(const Tensor& x_, const Tensor& s_) {
  auto [x, s] = kSoftsign.enter(x_, s_);  // cast as the precision policy asks
  Tensor y;
  {
    const NoGradGuard plain;  // the ops inside are not recorded
    y = x / (s + abs(x));
  }
  return kSoftsign.record(
      {x, s}, y, save(x, s), [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& s) {
        const Tensor d = dy / square(s + abs(x));
        return Grads(needs[0] ? d * s : Tensor(),        // dx = dy s / (s + |x|)^2
                     needs[1] ? neg(d * x) : Tensor());  // ds = -dy x / (s + |x|)^2
      });
}

int main() {
  manual_seed(0);
  // 1. Is the gradient right? Compared with differences in f64, with an input that broadcasts.
  Tensor x = randn({3, 5}, DType::f64), s = full({5}, 1.5, DType::f64);
  gradcheck([](const auto& in) { return softsign(in[0], in[1]); },
            {x.require_grad(), s.require_grad()});
  std::puts("gradcheck: passed");

  // 2. Under autocast it runs in the dtype of its class, like the ops of the library.
  const Device device = Device::best();  // the GPU if there is one
  const PrecisionScope scope(Precision::autocast(DType::bf16));
  Tensor w = randn({5, 5}).to(device).require_grad(), scale = ones({5}).to(device).require_grad();
  const Tensor y = softsign(matmul(randn({3, 5}).to(device), w), scale.to(DType::bf16));
  sum(square(y)).backward();
  std::printf("result %s, gradient of w %s, of scale %s, on %s\n", to_string(y.dtype()),
              to_string(w.grad().dtype()), to_string(scale.grad().dtype()),
              describe(device).c_str());
}
