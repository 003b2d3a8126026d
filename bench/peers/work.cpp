// Workloads that are single ops.
#include <bench/peers/model_work.h>
#include <bench/peers/work.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>

namespace binade::peers {
namespace {

// Applies an op to 16M numbers in rows of 1024, without recording.
class Elementwise : public Work {
 public:
  using Function = Tensor (*)(const Tensor&);
  explicit Elementwise(Function function) : function_(function) {
    manual_seed(0);
    x_ = randn({1 << 14, kCols});
  }
  void call() override {
    NoGradGuard no_grad;
    function_(x_);
  }

  static constexpr int64_t kCols = 1024;

 private:
  Function function_;
  Tensor x_;
};

// The reference for the others: it reads and writes every number.
class Copy : public Work {
 public:
  Copy() : x_(full({1 << 24}, 1)), y_(zeros({1 << 24})) {}
  void call() override { y_.copy_(x_); }

 private:
  Tensor x_, y_;
};

Tensor softmax_rows(const Tensor& x) { return softmax(x); }
Tensor layer_norm_rows(const Tensor& x) {
  static const Tensor weight = ones({Elementwise::kCols}), bias = zeros({Elementwise::kCols});
  return layer_norm(x, {Elementwise::kCols}, weight, bias);
}

Tensor chain(const Tensor& x, const Tensor& one) {
  Tensor y = x;
  for (int i = 0; i < 100; ++i) {
    y = y + one;
  }
  return y;
}

// Runs ops on one number, with almost no arithmetic.
class Overhead : public Work {
 public:
  using Function = void (*)(const Tensor& x, const Tensor& one);
  Overhead(Function function, int64_t units) : Work(units), function_(function) {
    x_.require_grad();
    one_.require_grad();
  }
  void call() override { function_(x_, one_); }

 private:
  Function function_;
  Tensor x_ = full({1}, 1), one_ = full({1}, 1);
};

void adds(const Tensor& x, const Tensor& one) {
  for (int i = 0; i < 1000; ++i) {
    add(x, one);
  }
}
void chain_forward(const Tensor& x, const Tensor& one) { chain(x, one); }
void chain_both(const Tensor& x, const Tensor& one) {
  chain(x, one).backward();
  x.zero_grad();
  one.zero_grad();
}

template <Elementwise::Function kFunction>
std::unique_ptr<Work> elementwise() {
  return std::make_unique<Elementwise>(kFunction);
}
template <Overhead::Function kFunction, int64_t kUnits>
std::unique_ptr<Work> overhead() {
  return std::make_unique<Overhead>(kFunction, kUnits);
}
template <class W>
std::unique_ptr<Work> make() {
  return std::make_unique<W>();
}

struct Entry {
  const char* name;
  std::unique_ptr<Work> (*make)();
};
constexpr Entry kEntries[] = {
    {"copy", make<Copy>},
    {"gelu", elementwise<gelu>},
    {"gelu_tanh", elementwise<gelu_tanh>},
    {"tanh", elementwise<tanh>},
    {"softmax", elementwise<softmax_rows>},
    {"layer_norm", elementwise<layer_norm_rows>},
    {"add", overhead<adds, 1000>},
    {"chain_forward", overhead<chain_forward, 100>},
    {"chain", overhead<chain_both, 100>},
};

}  // namespace

std::unique_ptr<Work> make_work(const std::string& name) {
  if (is_model_row(name)) {
    return make_model_work(parse_model_row(name));
  }
  std::string names;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) {
      return entry.make();
    }
    names += std::string(" ") + entry.name;
  }
  fail("peer_work: got work '", name, "', expected STEP:MODEL:BATCH:RULE or one of", names);
}

}  // namespace binade::peers
