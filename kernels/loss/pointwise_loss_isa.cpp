// Pointwise losses over rows: blocks of up to kBlockSize elements in the compute type, one loop per
// functor.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/loss/pointwise_loss_functors.h>
#include <binade/kernels/loss/pointwise_loss_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

template <class C>
using LossLoop = void (*)(C* y, const C* x, const C* t, const C* p, int64_t n, C alpha);

#define BINADE_LOOP(name)                                                          \
  template <class C, class Functor>                                                \
  void name##_loop(C* y, const C* x, const C* t, const C* p, int64_t n, C alpha) { \
    for (int64_t i = 0; i < n; ++i) {                                              \
      y[i] = Functor::name(x[i], t[i], p[i], alpha);                               \
    }                                                                              \
  }
BINADE_LOOP(value)
BINADE_LOOP(dx)
BINADE_LOOP(dt)
#undef BINADE_LOOP

template <class C>
struct Loops {
#define BINADE_ENTRY(name, Functor) value_loop<C, loss::Functor>,
  static constexpr LossLoop<C> kValue[] = {BINADE_POINTWISE_LOSSES(BINADE_ENTRY)};
#undef BINADE_ENTRY
#define BINADE_ENTRY(name, Functor) dx_loop<C, loss::Functor>,
  static constexpr LossLoop<C> kDx[] = {BINADE_POINTWISE_LOSSES(BINADE_ENTRY)};
#undef BINADE_ENTRY
#define BINADE_ENTRY(name, Functor) dt_loop<C, loss::Functor>,
  static constexpr LossLoop<C> kDt[] = {BINADE_POINTWISE_LOSSES(BINADE_ENTRY)};
#undef BINADE_ENTRY
};

// Calls f(addresses of the operands, n) for every block of the task, in order.
template <class F>
void for_blocks(const LossTask& task, const F& f) {
  int64_t index[kMaxDims], row = task.first_row;
  std::byte* at[LossTask::kOperands];
  for (int k = 0; k < LossTask::kOperands; ++k) {
    at[k] = task.data[k] ? task.data[k] + task.from * task.stride[k][0] : nullptr;
  }
  const auto move = [&](int d, int64_t steps) {
    for (int k = 0; k < LossTask::kOperands; ++k) {
      at[k] = at[k] ? at[k] + steps * task.stride[k][d] : nullptr;
    }
  };
  for (int d = 1; d < task.dims; ++d) {
    index[d] = row % task.size[d];
    row /= task.size[d];
    move(d, index[d]);
  }
  for (int64_t r = 0; r < task.rows; ++r) {
    for (int64_t i = 0; i < task.n; i += kBlockSize) {
      std::byte* block[LossTask::kOperands];
      for (int k = 0; k < LossTask::kOperands; ++k) {
        block[k] = at[k] ? at[k] + i * task.stride[k][0] : nullptr;
      }
      f(block, task.n - i < kBlockSize ? task.n - i : kBlockSize);
    }
    for (int d = 1; d < task.dims; ++d) {
      move(d, 1);
      if (++index[d] < task.size[d]) {
        break;
      }
      move(d, -task.size[d]);
      index[d] = 0;
    }
  }
}

// Runs `loop` over a block of operands of storage type T and multiplies the results by the weights.
template <class T, class C>
class BlockRun {
 public:
  explicit BlockRun(const LossTask& task) : task_(task) {
    for (int64_t i = 0; i < kBlockSize; ++i) {
      ones_[i] = C(1);
    }
  }
  void operator()(LossLoop<C> loop, std::byte* const* at, int64_t n, C* y) {
    using Task = LossTask;
    const C* x = load(at, Task::kX, n, x_);
    const C* t = load(at, Task::kT, n, t_);
    const C* p = at[Task::kPosWeight] ? load(at, Task::kPosWeight, n, p_) : ones_;
    loop(y, x, t, p, n, static_cast<C>(task_.alpha));
    if (at[Task::kWeight]) {
      const C* w = load(at, Task::kWeight, n, p_);
      for (int64_t i = 0; i < n; ++i) {
        y[i] *= w[i];
      }
    }
  }

 private:
  const C* load(std::byte* const* at, int operand, int64_t n, C* block) const {
    return load_block<T>(at[operand], task_.stride[operand][0], n, block);
  }
  const LossTask& task_;
  C x_[kBlockSize], t_[kBlockSize], p_[kBlockSize], ones_[kBlockSize];
};

// Sums in lanes, so that the loop vectorises, and in double, so that the number of blocks does not
// matter.
template <class C>
double sum_of(const C* x, int64_t n) {
  constexpr int64_t kLanes = 128 / sizeof(C);
  C lane[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) {
    lane[j] = C(0);
  }
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      lane[j] += x[i + j];
    }
  }
  for (int64_t j = 0; i + j < n; ++j) {
    lane[j] += x[i + j];
  }
  double sum = 0;
  for (int64_t j = 0; j < kLanes; ++j) {
    sum += static_cast<double>(lane[j]);
  }
  return sum;
}

template <class T, class C>
double forward(const LossTask& task, bool store) {
  const LossLoop<C> loop = Loops<C>::kValue[static_cast<int>(task.op)];
  BlockRun<T, C> run(task);
  C y[kBlockSize];
  double sum = 0;
  for_blocks(task, [&](std::byte* const* at, int64_t n) {
    run(loop, at, n, y);
    sum += sum_of(y, n);
    if (store) {
      scatter<C>(y, at[LossTask::kOut], task.stride[LossTask::kOut][0], n);
    }
  });
  return sum;
}

template <class T, class C>
void backward(const LossTask& task, bool of_target) {
  const int op = static_cast<int>(task.op);
  const LossLoop<C> loop = of_target ? Loops<C>::kDt[op] : Loops<C>::kDx[op];
  const auto factor = static_cast<C>(task.factor);
  BlockRun<T, C> run(task);
  C y[kBlockSize], dy_block[kBlockSize];
  for_blocks(task, [&](std::byte* const* at, int64_t n) {
    run(loop, at, n, y);
    const C* dy =
        load_block<C>(at[LossTask::kUpstream], task.stride[LossTask::kUpstream][0], n, dy_block);
    for (int64_t i = 0; i < n; ++i) {
      y[i] *= dy[i] * factor;
    }
    const int64_t stride = task.stride[LossTask::kOut][0];
    if (kSame<T, C> && stride == static_cast<int64_t>(sizeof(T))) {
      __builtin_memcpy(at[LossTask::kOut], y, static_cast<size_t>(n) * sizeof(C));
    } else {
      store_block<T>(y, at[LossTask::kOut], stride, n);
    }
  });
}

}  // namespace

void pointwise_loss_forward_rows(const LossTask& task, bool store, double* sum) {
  switch (task.dtype) {
    case DType::f64: *sum = forward<double, double>(task, store); break;
    case DType::f32: *sum = forward<float, float>(task, store); break;
    case DType::f16: *sum = forward<half, float>(task, store); break;
    default: *sum = forward<bfloat16, float>(task, store);
  }
}

void pointwise_loss_backward_rows(const LossTask& task, bool of_target) {
  switch (task.dtype) {
    case DType::f64: return backward<double, double>(task, of_target);
    case DType::f32: return backward<float, float>(task, of_target);
    case DType::f16: return backward<half, float>(task, of_target);
    default: return backward<bfloat16, float>(task, of_target);
  }
}

}  // namespace binade::kernels::BINADE_ISA
