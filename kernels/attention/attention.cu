// Attention on the device: turns views into a problem with plain strides and picks the kernels or
// the library (attention_provider.h). f16 and bf16 with head sizes up to 128 run on tensor cores
// (attention_tensor.cu), all else on CUDA cores (attention_simt.cu).
#include <binade/kernels/attention/cudnn_attention_internal.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/attention/attention.cuh>

namespace binade::kernels {
namespace {

constexpr int64_t kTensorColumns = 128;
constexpr int kDeltaThreads = 128;

// Computes delta = sum(dout out) for each query, one warp per query.
template <class T>
__global__ void __launch_bounds__(kDeltaThreads)
    attention_delta_kernel(const __grid_constant__ AttentionProblem<T> p, int64_t rows) {
  using C = Compute<T>;
  const int64_t warps = int64_t{gridDim.x} * (kDeltaThreads / 32);
  const int64_t warp = (int64_t{blockIdx.x} * kDeltaThreads + threadIdx.x) / 32;
  for (int64_t row = warp; row < rows; row += warps) {
    const int64_t query = row % p.queries(), head = row / p.queries();
    const T* out = p.out.head(head / p.heads, head % p.heads);
    const T* dout = p.dout.head(head / p.heads, head % p.heads);
    C sum = 0;
    for (int d = static_cast<int>(threadIdx.x) % 32; d < p.out.columns; d += 32) {
      sum += static_cast<C>(out[p.out.offset(query, d)]) *
             static_cast<C>(dout[p.dout.offset(query, d)]);
    }
    sum = dev::warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
      p.delta[row] = sum;
    }
  }
}

template <class T>
bool use_tensor(const AttentionSizes& n, const View& q) {
  return sizeof(T) == 2 && std::max(n.size, n.value_size) <= kTensorColumns &&
         device_facts(q.device).tensor_cores(q.dtype);
}

template <class T>
void forward(const AttentionForward& a, const AttentionSizes& n) {
  AttentionProblem<T> p;
  p.q = head_array<const T>(a.q);
  p.k = head_array<const T>(a.k);
  p.v = head_array<const T>(a.v);
  p.result = head_array<T>(a.out);
  p.lse = a.lse.as<Compute<T>>();
  p.scale = static_cast<Compute<T>>(a.scale);
  p.heads = n.heads;
  set_visible(p, a.visible);
  set_dropout(p, a.dropout);
  if constexpr (sizeof(T) == 2) {
    if (use_tensor<T>(n, a.q)) {
      return launch_attention_tensor(p, n);
    }
  }
  launch_attention_simt(p, n);
}

template <class T>
void backward(const AttentionBackward& a, const AttentionSizes& n) {
  using C = Compute<T>;
  const int64_t rows = n.batch * n.heads * n.queries;
  const Workspace delta(static_cast<size_t>(rows) * sizeof(C), a.q.device);
  AttentionProblem<T> p;
  p.q = head_array<const T>(a.q);
  p.k = head_array<const T>(a.k);
  p.v = head_array<const T>(a.v);
  p.out = head_array<const T>(a.out);
  p.dout = head_array<const T>(a.dout);
  p.dq = head_array<T>(a.dq);
  p.dk = head_array<T>(a.dk);
  p.dv = head_array<T>(a.dv);
  p.dmask = head_array<T>(a.dmask);
  p.lse = a.lse.as<C>();
  p.delta = delta.as<C>();
  p.scale = static_cast<C>(a.scale);
  p.heads = n.heads;
  set_visible(p, a.visible);
  set_dropout(p, a.dropout);
  if (rows > 0) {
    launch({"attention_delta_kernel", grid_blocks(rows * 32, kDeltaThreads), kDeltaThreads},
           attention_delta_kernel<T>, p, rows);
  }
  if (a.dmask && a.dmask.numel > 0) {
    p.dmask.batch_stride = a.dmask.size(0) == 1 ? 0 : p.dmask.batch_stride;
    p.dmask.head_stride = a.dmask.size(1) == 1 ? 0 : p.dmask.head_stride;
    launch_attention_mask_gradient(p, n);
  }
  if constexpr (sizeof(T) == 2) {
    if (use_tensor<T>(n, a.q)) {
      return launch_attention_tensor_backward(p, n);
    }
  }
  launch_attention_simt_backward(p, n);
}

}  // namespace

unsigned attention_blocks(const AttentionSizes& n, int64_t length, int rows) {
  const int64_t blocks = n.batch * n.heads * ceil_div(length, rows);
  check(blocks < (int64_t{1} << 31), "attention: got ", n.batch, " x ", n.heads, " heads of ",
        length, ", expected fewer than 2^31 blocks of ", rows);
  return static_cast<unsigned>(blocks);
}

void cuda::attention_forward(const AttentionForward& a) {
  const AttentionSizes n = checked_sizes(a);
  if (a.out.numel > 0 || a.lse.numel > 0) {
    run_attention(a, n, [&] {
      dispatch_floating("attention", a.q.dtype, [&]<class T>(Type<T>) { forward<T>(a, n); });
    });
  }
}

void cuda::attention_backward(const AttentionBackward& a) {
  const AttentionSizes n = checked_sizes(a);
  if (n.batch * n.heads > 0) {
    run_attention(a, n, [&] {
      dispatch_floating("attention backward", a.q.dtype,
                        [&]<class T>(Type<T>) { backward<T>(a, n); });
    });
  }
}

}  // namespace binade::kernels
