// ctc_loss on CUDA. The recursions are sequential in time: one block per sample, threads across the
// states, one barrier per time step. Rows of alpha and beta go through memory; only their own block
// reads them back. The gradient needs no order: one block per (time, sample). There the thread of
// the first occurrence of a label follows the chain of the others and writes the gradient of its
// class. So there are no atomics, and results repeat bit for bit.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/loss/ctc_loss.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <algorithm>
#include <limits>

namespace binade::kernels {
namespace {

// With four blocks per multiprocessor instead of as many as fit, doubles stay in registers across
// calls of exp.
constexpr int kThreads = 128, kResident = 4;
constexpr int64_t kMostBlocks = 65536;

template <class C>
struct Problem {
  const C* log_probs;  // [times, samples, classes]
  int64_t times, samples, classes, most_labels;
  const int64_t* targets;
  int64_t target_stride[2];
  const int64_t *input_lengths, *target_lengths;
  int64_t input_stride, length_stride, blank;
  bool mean, zero_infinity;
  FaultSite input_site, target_site, label_site, blank_site;
  C* alpha;        // [samples, times, states]
  C* beta;         // the same
  int64_t* chain;  // [samples, most_labels]: the next equal label, or -1; -3 - next if not first
  C *nll, *loss;
  const C* dy;
  int64_t dy_stride;

  __device__ int64_t row_size() const { return 2 * most_labels + 1; }
  __device__ C* alpha_row(int64_t n, int64_t t) const {
    return alpha + (n * times + t) * row_size();
  }
  __device__ C* beta_row(int64_t n, int64_t t) const { return beta + (n * times + t) * row_size(); }
  __device__ int64_t label(int64_t n, int64_t i) const {
    return targets[n * target_stride[0] + i * target_stride[1]];
  }
  __device__ bool is_class(int64_t c) const { return c >= 0 && c < classes; }
};

template <class C>
inline constexpr C kNan = std::numeric_limits<C>::quiet_NaN();
template <class C>
inline constexpr C kMinusInfinity = -std::numeric_limits<C>::infinity();

// log(e^a + e^b + e^c); minus infinities are allowed.
template <class C>
__device__ __forceinline__ C log_sum(C a, C b, C c) {
  const C top = dev::Max::combine(dev::Max::combine(a, b), c);
  return top == kMinusInfinity<C>
             ? top
             : top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
}

// One sample. Lengths out of range make it invalid, and none of it is read.
template <class C>
struct Sample {
  const Problem<C>& p;
  int64_t n, times, labels;
  bool valid;

  __device__ Sample(const Problem<C>& problem, int64_t index)
      : p(problem),
        n(index),
        times(problem.input_lengths[index * problem.input_stride]),
        labels(problem.target_lengths[index * problem.length_stride]),
        valid(times >= 0 && times <= problem.times && labels >= 0 &&
              labels <= problem.most_labels) {}
  // Reports lengths and labels out of range. All threads of the block must call it.
  __device__ void check() const {
    if (threadIdx.x == 0) {
      dev::in_range(p.input_site, times, p.times + 1);
      dev::in_range(p.target_site, labels, p.most_labels + 1);
    }
    for (int64_t i = threadIdx.x; valid && i < labels; i += kThreads) {
      const int64_t label = p.label(n, i);
      if (label == p.blank) {
        dev::report_fault(p.blank_site, label, p.classes);
      } else {
        dev::in_range(p.label_site, label, p.classes);
      }
    }
  }
  __device__ int64_t states() const { return 2 * labels + 1; }
  __device__ int64_t state_class(int64_t s) const { return s % 2 ? p.label(n, s / 2) : p.blank; }
  __device__ C log_prob(int64_t t, int64_t s) const {
    const int64_t c = state_class(s);
    return p.is_class(c) ? p.log_probs[(t * p.samples + n) * p.classes + c] : kNan<C>;
  }
  // True if state s may follow s - 2: a label after a different label.
  __device__ bool skips(int64_t s) const {
    return s % 2 == 1 && s >= 2 && state_class(s) != state_class(s - 2);
  }
  __device__ C weight() const {
    const int64_t length = labels > 0 ? labels : 1;
    return p.mean ? C(1) / (C(length) * C(p.samples)) : C(1);
  }
};

template <class C>
__global__ void __launch_bounds__(kThreads, kResident)
    ctc_alpha_block_per_sample_kernel(Problem<C> p) {
  for (int64_t n = blockIdx.x; n < p.samples; n += gridDim.x) {
    const Sample<C> sample(p, n);
    sample.check();
    const int64_t states = sample.valid ? sample.states() : 0;
    const int64_t times = sample.valid ? sample.times : 0;
    for (int64_t t = 0; t < times; ++t) {
      C* now = p.alpha_row(n, t);
      const C* before = t > 0 ? p.alpha_row(n, t - 1) : nullptr;
      for (int64_t s = threadIdx.x; s < states; s += kThreads) {
        C reached = s < 2 ? C(0) : kMinusInfinity<C>;
        if (before) {
          const C from1 = s >= 1 ? before[s - 1] : kMinusInfinity<C>;
          const C from2 = sample.skips(s) ? before[s - 2] : kMinusInfinity<C>;
          reached = log_sum(before[s], from1, from2);
        }
        now[s] = reached + sample.log_prob(t, s);
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      C nll = sample.labels == 0 ? C(0) : -kMinusInfinity<C>;  // for an empty input
      if (times > 0) {
        const C* last = p.alpha_row(n, times - 1);
        const C but_one = states > 1 ? last[states - 2] : kMinusInfinity<C>;
        nll = -log_sum(last[states - 1], but_one, kMinusInfinity<C>);
      }
      nll = sample.valid ? nll : kNan<C>;
      p.nll[n] = nll;
      p.loss[n] = p.zero_infinity && nll == -kMinusInfinity<C> ? C(0) : nll * sample.weight();
    }
  }
}

// beta_t(s): the log-probability of everything after time t, from state s.
template <class C>
__global__ void __launch_bounds__(kThreads, kResident)
    ctc_beta_block_per_sample_kernel(Problem<C> p) {
  for (int64_t n = blockIdx.x; n < p.samples; n += gridDim.x) {
    const Sample<C> sample(p, n);
    const int64_t labels = sample.valid ? sample.labels : 0;
    const int64_t states = sample.valid ? sample.states() : 0;
    for (int64_t i = threadIdx.x; i < labels; i += kThreads) {
      const int64_t label = p.label(n, i);
      int64_t next = -1;
      bool first = true;
      for (int64_t j = 0; j < labels; ++j) {
        const bool equal = j != i && p.label(n, j) == label;
        first = first && !(equal && j < i);
        next = equal && j > i && next < 0 ? j : next;
      }
      p.chain[n * p.most_labels + i] = first ? next : -3 - next;
    }
    for (int64_t t = sample.valid ? sample.times - 1 : -1; t >= 0; --t) {
      C* now = p.beta_row(n, t);
      const C* after = t + 1 < sample.times ? p.beta_row(n, t + 1) : nullptr;
      for (int64_t s = threadIdx.x; s < states; s += kThreads) {
        C reached = s + 2 >= states ? C(0) : kMinusInfinity<C>;
        if (after) {
          const auto follow = [&](int64_t to, bool may) {
            return may ? after[to] + sample.log_prob(t + 1, to) : kMinusInfinity<C>;
          };
          reached = log_sum(follow(s, true), follow(s + 1, s + 1 < states),
                            follow(s + 2, s + 2 < states && sample.skips(s + 2)));
        }
        now[s] = reached;
      }
      __syncthreads();
    }
  }
}

template <class C>
struct GradientMemory {
  dev::BlockReduceMemory<C, kThreads> one;
  dev::BlockReduceMemory<dev::SumPair<C>, kThreads> two;
};

// One row of dlogits: scale (softmax - posterior of the classes).
template <class T, class C>
__device__ __forceinline__ void gradient_row(const Problem<C>& p, const Sample<C>& sample,
                                             int64_t t, T* row, int64_t stride,
                                             GradientMemory<C>& memory) {
  const C *alpha = p.alpha_row(sample.n, t), *beta = p.beta_row(sample.n, t);
  const C* log_probs = p.log_probs + (t * p.samples + sample.n) * p.classes;
  const int64_t states = sample.states();
  const C scale = p.dy[sample.n * p.dy_stride] * sample.weight();
  C top = kMinusInfinity<C>;
  for (int64_t s = threadIdx.x; s < states; s += kThreads) {
    top = dev::Max::combine(top, alpha[s] + beta[s]);
  }
  top = dev::block_max(top, memory.one);
  dev::SumPair<C> sums{};  // over all states, over the blanks
  for (int64_t s = threadIdx.x; s < states; s += kThreads) {
    const C e = std::exp(alpha[s] + beta[s] - top);
    sums = sums.merge({e, s % 2 ? C(0) : e});
  }
  sums = dev::block_reduce<dev::Merge>(sums, memory.two);
  for (int64_t c = threadIdx.x; c < p.classes; c += kThreads) {
    const C posterior = c == p.blank ? sums.second / sums.first : C(0);
    row[c * stride] = static_cast<T>(scale * (std::exp(log_probs[c]) - posterior));
  }
  __syncthreads();  // before the gradients of the labels' classes are overwritten
  for (int64_t i = threadIdx.x; i < sample.labels; i += kThreads) {
    const int64_t* chain = p.chain + sample.n * p.most_labels;
    const int64_t c = p.label(sample.n, i);
    if (chain[i] < -1 || !p.is_class(c)) {
      continue;
    }
    C posterior = 0;
    for (int64_t k = i; k >= 0; k = chain[k] < -1 ? -3 - chain[k] : chain[k]) {
      posterior += std::exp(alpha[2 * k + 1] + beta[2 * k + 1] - top);
    }
    row[c * stride] = static_cast<T>(scale * (std::exp(log_probs[c]) - posterior / sums.first));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    ctc_gradient_block_per_row_kernel(Problem<Compute<T>> p, T* dlogits, int64_t stride_t,
                                      int64_t stride_n, int64_t stride_c) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<GradientMemory<C>>();
  for (int64_t index = blockIdx.x; index < p.times * p.samples; index += gridDim.x) {
    const int64_t t = index / p.samples, n = index % p.samples;
    const Sample<C> sample(p, n);
    T* row = dlogits + t * stride_t + n * stride_n;
    const C nll = p.nll[n];
    const bool infinite = nll == -kMinusInfinity<C>, wrong = nll != nll;
    const bool beyond = sample.valid && t >= sample.times;
    if (beyond || infinite || wrong) {
      const bool zero = beyond || (infinite && p.zero_infinity);
      for (int64_t c = threadIdx.x; c < p.classes; c += kThreads) {
        row[c * stride_c] = static_cast<T>(zero ? C(0) : kNan<C>);
      }
    } else {
      gradient_row(p, sample, t, row, stride_c, memory);
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

template <class C>
Problem<C> problem_of(const CtcSequences& s, const View& alpha, const View& nll) {
  Problem<C> p{};
  p.log_probs = s.log_probs.as<C>();
  p.times = s.log_probs.size(0);
  p.samples = s.log_probs.size(1);
  p.classes = s.log_probs.size(2);
  p.most_labels = s.targets.size(1);
  p.targets = s.targets.as<int64_t>();
  p.target_stride[0] = s.targets.strides[0];
  p.target_stride[1] = s.targets.strides[1];
  p.input_lengths = s.input_lengths.as<int64_t>();
  p.input_stride = s.input_lengths.strides[0];
  p.target_lengths = s.target_lengths.as<int64_t>();
  p.length_stride = s.target_lengths.strides[0];
  p.blank = s.blank;
  p.mean = s.mean;
  p.zero_infinity = s.zero_infinity;
  p.alpha = alpha.as<C>();
  p.nll = nll.as<C>();
  return p;
}

unsigned blocks_for(int64_t work) { return static_cast<unsigned>(std::min(work, kMostBlocks)); }

}  // namespace

void cuda::ctc_loss_forward(const CtcLossForward& a) {
  check_arguments(a);
  if (a.loss.numel == 0) {
    return;
  }
  const auto run = [&]<class C>(Type<C>) {
    Problem<C> p = problem_of<C>(a.sequences, a.alpha, a.nll);
    p.loss = a.loss.as<C>();
    p.input_site = fault_site(a.loss.device, "ctc_loss", "input length");
    p.target_site = fault_site(a.loss.device, "ctc_loss", "target length");
    p.label_site = fault_site(a.loss.device, "ctc_loss", "label");
    p.blank_site = fault_site(a.loss.device, "ctc_loss", "label (that of the blank)");
    launch({"ctc_alpha_block_per_sample_kernel", blocks_for(p.samples), kThreads},
           ctc_alpha_block_per_sample_kernel<C>, p);
  };
  a.loss.dtype == DType::f64 ? run(Type<double>()) : run(Type<float>());
}

void cuda::ctc_loss_backward(const CtcLossBackward& a) {
  check_arguments(a);
  if (a.dlogits.numel == 0) {
    return;
  }
  dispatch_floating("ctc_loss", a.dlogits.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    Problem<C> p = problem_of<C>(a.sequences, a.alpha, a.nll);
    const Workspace beta(static_cast<size_t>(a.alpha.numel) * sizeof(C), a.dlogits.device);
    const Workspace chain(static_cast<size_t>(p.samples * p.most_labels) * sizeof(int64_t),
                          a.dlogits.device);
    p.beta = beta.as<C>();
    p.chain = chain.as<int64_t>();
    p.dy = a.dy.as<C>();
    p.dy_stride = a.dy.strides[0];
    launch({"ctc_beta_block_per_sample_kernel", blocks_for(p.samples), kThreads},
           ctc_beta_block_per_sample_kernel<C>, p);
    launch({"ctc_gradient_block_per_row_kernel", blocks_for(p.times * p.samples), kThreads,
            sizeof(GradientMemory<C>)},
           ctc_gradient_block_per_row_kernel<T>, p, a.dlogits.as<T>(), a.dlogits.strides[0],
           a.dlogits.strides[1], a.dlogits.strides[2]);
  });
}

}  // namespace binade::kernels
