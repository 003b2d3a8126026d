// The overhead of a PyTorch op without Python: the ops of Overhead in work.cpp, called from C++.
// bench/peers/setup compiles it into a library that torch_work.py loads.
#include <torch/torch.h>

namespace {

torch::Tensor chain(const torch::Tensor& x, const torch::Tensor& one) {
  torch::Tensor y = x;
  for (int i = 0; i < 100; ++i) {
    y = y + one;
  }
  return y;
}

torch::Tensor leaf() { return torch::ones({1}, torch::requires_grad()); }

}  // namespace

extern "C" void add() {
  static const torch::Tensor x = leaf(), one = leaf();
  for (int i = 0; i < 1000; ++i) {
    torch::Tensor y = x + one;
  }
}

extern "C" void chain_forward() {
  static const torch::Tensor x = leaf(), one = leaf();
  chain(x, one);
}

extern "C" void chain() {
  static torch::Tensor x = leaf(), one = leaf();
  chain(x, one).backward();
  x.mutable_grad().reset();
  one.mutable_grad().reset();
}
