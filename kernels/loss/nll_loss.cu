// nll_loss on CUDA: one thread per target. The gradient is a fill with 0 and a scatter of one
// element per target.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/loss/nll_loss.h>
#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <limits>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

template <class T, class C = Compute<T>>
struct Problem {
  T* log_probs;  // or their gradient
  int64_t stride[3];
  const int64_t* target;
  int64_t target_stride[2];
  int64_t rows, inner, classes, ignore_index;
  const C* weight;
  C* row_loss;  // forward
  C* row_weight;
  const C* row_scale;  // backward
  FaultSite site;
};

template <class T>
__global__ void __launch_bounds__(kThreads) nll_loss_thread_per_target_kernel(Problem<T> p) {
  using C = Compute<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; row < p.rows;
       row += threads) {
    const int64_t n = row / p.inner, i = row % p.inner;
    const int64_t t = p.target[n * p.target_stride[0] + i * p.target_stride[1]];
    const bool ignored = t == p.ignore_index, valid = t >= 0 && t < p.classes;
    const int64_t first = n * p.stride[0] + i * p.stride[2];
    const C nan = std::numeric_limits<C>::quiet_NaN();
    const C w = ignored ? C(0) : !valid ? nan : p.weight ? p.weight[t] : C(1);
    if (p.row_scale) {
      if (valid && !ignored) {
        p.log_probs[first + t * p.stride[1]] = static_cast<T>(-w * p.row_scale[row]);
      } else if (!ignored) {
        p.log_probs[first] = static_cast<T>(nan);
      }
    } else {
      if (!valid && !ignored) {
        dev::report_fault(p.site, t, p.classes);
      }
      const bool read = valid && !ignored;
      const C value = read ? static_cast<C>(p.log_probs[first + t * p.stride[1]]) : C(0);
      p.row_loss[row] = ignored ? C(0) : -w * value;
      p.row_weight[row] = w;
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

template <class T>
Problem<T> problem_of(const View& log_probs, const View& target, const View& weight,
                      int64_t ignore_index) {
  return {.log_probs = log_probs.as<T>(),
          .stride = {log_probs.strides[0], log_probs.strides[1], log_probs.strides[2]},
          .target = target.as<int64_t>(),
          .target_stride = {target.strides[0], target.strides[1]},
          .rows = target.numel,
          .inner = log_probs.size(2),
          .classes = log_probs.size(1),
          .ignore_index = ignore_index,
          .weight = weight.as<Compute<T>>(),
          .row_loss = nullptr,
          .row_weight = nullptr,
          .row_scale = nullptr,
          .site = fault_site(log_probs.device, "nll_loss", "target")};
}

template <class T>
void start(const Problem<T>& p) {
  if (p.rows > 0) {
    launch({"nll_loss_thread_per_target_kernel", grid_blocks(p.rows, kThreads), kThreads},
           nll_loss_thread_per_target_kernel<T>, p);
  }
}

}  // namespace

void cuda::nll_loss_forward(const NllLossForward& a) {
  check_arguments(a);
  dispatch_floating("nll_loss", a.log_probs.dtype, [&]<class T>(Type<T>) {
    Problem<T> p = problem_of<T>(a.log_probs, a.target, a.weight, a.ignore_index);
    p.row_loss = a.row_loss.as<Compute<T>>();
    p.row_weight = a.row_weight.as<Compute<T>>();
    start(p);
  });
}

void cuda::nll_loss_backward(const NllLossBackward& a) {
  check_arguments(a);
  kernels::fill({.y = a.dlog_probs, .value = 0});
  dispatch_floating("nll_loss", a.dlog_probs.dtype, [&]<class T>(Type<T>) {
    Problem<T> p = problem_of<T>(a.dlog_probs, a.target, a.weight, a.ignore_index);
    p.row_scale = a.row_scale.as<Compute<T>>();
    if (a.dlog_probs.numel > 0) {
      start(p);
    }
  });
}

}  // namespace binade::kernels
