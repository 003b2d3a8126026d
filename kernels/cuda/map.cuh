// map(): y = f(x1, ...) element by element, for operands of any strides: every pointwise kernel.
// One kernel per f has two parts. If each operand's innermost dimension is contiguous (or one
// repeated element, for inputs) and aligned, a thread processes vectors of kVector elements. All
// other elements and layouts go element by element, kUnroll of them per thread so that enough loads
// are in flight (1 for rare variants of much code). Every thread reads its elements before it
// writes them, so y may be the same memory as an input of the same layout.
#pragma once
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {

inline constexpr int kMapThreads = 256;

// The work of a map kernel: `vectors` vectors, then `singles` elements. In one dimension vector i
// starts at element head + i * step; in more dimensions head is 0 and the index counts vectors, or
// there are none.
template <int kOperands>
struct MapPlan {
  StridedIndex<kOperands> index;
  int64_t vectors = 0, singles = 0, head = 0;
  int32_t step = 1;
  uint32_t repeated = 0;  // bit k: operand k is one element, repeated along the vector
};

namespace detail {

// Elements of every input in registers; the first input may have another type.
template <class First, class In, int kInputs, int kCount>
struct Elements {
  First first[kCount];
  In others[kInputs > 1 ? kInputs - 1 : 1][kCount];

  // f of element j of each input.
  template <class F>
  __device__ __forceinline__ auto apply(const F& f, int j) const {
    if constexpr (kInputs == 1) {
      return f(first[j]);
    } else if constexpr (kInputs == 2) {
      return f(first[j], others[0][j]);
    } else {
      return f(first[j], others[0][j], others[1][j]);
    }
  }
};

template <class T, int kVector>
__device__ __forceinline__ void load_input(const std::byte* at, bool repeated, T (&x)[kVector]) {
  const auto* from = reinterpret_cast<const T*>(at);
  if (repeated) {
    const T value = *from;
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      x[j] = value;
    }
  } else {
    dev::load_as(from, x);
  }
}

template <class Out, class First, class In, int kInputs, int kVector, int kUnroll, class F>
__global__ void __launch_bounds__(kMapThreads)
    map_kernel(const __grid_constant__ MapPlan<kInputs + 1> plan, const F f) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kMapThreads;
  std::byte* at[kInputs + 1];
  // kVector = 1 means no vectors: the condition removes this code at compile time.
  for (int64_t i = thread; kVector > 1 && i < plan.vectors; i += threads) {
    plan.index.locate(plan.head + i * plan.step, at);
    Elements<First, In, kInputs, kVector> x;
    load_input(at[1], plan.repeated >> 1 & 1u, x.first);
#pragma unroll
    for (int k = 1; k < kInputs; ++k) {
      load_input(at[k + 1], plan.repeated >> (k + 1) & 1u, x.others[k - 1]);
    }
    Out y[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      y[j] = x.apply(f, j);
    }
    dev::store_from(reinterpret_cast<Out*>(at[0]), y);
  }
  for (int64_t i = thread; i < plan.singles; i += threads * kUnroll) {
    Elements<First, In, kInputs, kUnroll> x;
    Out* y[kUnroll];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      const int64_t single = i + j * threads < plan.singles ? i + j * threads : i;
      plan.index.locate(single < plan.head ? single : single + plan.vectors * kVector, at);
      y[j] = reinterpret_cast<Out*>(at[0]);
      x.first[j] = *reinterpret_cast<const First*>(at[1]);
#pragma unroll
      for (int k = 1; k < kInputs; ++k) {
        x.others[k - 1][j] = *reinterpret_cast<const In*>(at[k + 1]);
      }
    }
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      if (i + j * threads < plan.singles) {
        *y[j] = x.apply(f, j);
      }
    }
  }
}

// True if rows of operand `k` are whole aligned vectors, or one repeated element.
template <class T, int kVector>
bool vectorizable(const StridedLoop& loop, int k) {
  constexpr auto kAlignment = static_cast<int64_t>(alignof(dev::Vector<T, kVector>));
  if (k > 0 && loop.stride(k, 0) == 0) {
    return true;
  }
  bool aligned = loop.stride(k, 0) == static_cast<int64_t>(sizeof(T)) &&
                 reinterpret_cast<uintptr_t>(loop.data(k)) % kAlignment == 0;
  for (int d = 1; d < loop.dims(); ++d) {
    aligned = aligned && loop.stride(k, d) % kAlignment == 0;
  }
  return aligned;
}

// A pointer to the contiguous row of operand k; null, which counts as aligned, if it has none.
template <class T>
const T* row_of(const StridedLoop& loop, int inputs, int k) {
  return k > inputs || loop.stride(k, 0) == 0 ? nullptr : reinterpret_cast<const T*>(loop.data(k));
}

template <class Out, class First, class In, int kInputs, int kVector>
MapPlan<kInputs + 1> map_plan(const StridedLoop& loop) {
  MapPlan<kInputs + 1> plan = {.index = StridedIndex<kInputs + 1>(loop)};
  plan.singles = loop.numel();
  bool rows = loop.stride(0, 0) == static_cast<int64_t>(sizeof(Out));
  for (int k = 1; k <= kInputs; ++k) {
    const int64_t stride = loop.stride(k, 0), width = k == 1 ? sizeof(First) : sizeof(In);
    rows = rows && (stride == 0 || stride == width);
    plan.repeated |= static_cast<uint32_t>(stride == 0) << k;
  }
  if (!rows || kVector == 1) {
    return plan;
  }
  if (loop.dims() == 1) {
    const dev::VectorSpan span = dev::vector_span<kVector>(
        loop.numel(), reinterpret_cast<const Out*>(loop.data(0)), row_of<First>(loop, kInputs, 1),
        row_of<In>(loop, kInputs, 2), row_of<In>(loop, kInputs, 3));
    plan.vectors = span.vectors;
    plan.head = span.head;
    plan.singles = span.n - span.vectors * kVector;
    plan.step = kVector;
    return plan;
  }
  bool whole = loop.size(0) % kVector == 0 && vectorizable<Out, kVector>(loop, 0) &&
               vectorizable<First, kVector>(loop, 1);
  for (int k = 2; k <= kInputs; ++k) {
    whole = whole && vectorizable<In, kVector>(loop, k);
  }
  if (whole) {
    plan.vectors = loop.numel() / kVector;
    plan.singles = 0;
    plan.index.set_size(0, loop.size(0) / kVector);
    for (int k = 0; k <= kInputs; ++k) {
      plan.index.stride[k][0] *= kVector;
    }
  }
  return plan;
}

}  // namespace detail

// Runs f over the operands of the loop: operand 0 (type Out) = f(operand 1 (type First), operands 2
// .. kInputs (type In)), with at most 3 inputs. `name` is the name of the launch.
template <class Out, class In, int kInputs, int kVector, int kUnroll = 4, class First = In, class F>
void map(const char* name, const StridedLoop& loop, const F& f) {
  static_assert(kInputs >= 1 && kInputs <= 3);
  if (loop.numel() == 0) {
    return;
  }
  const auto plan = detail::map_plan<Out, First, In, kInputs, kVector>(loop);
  const int64_t groups = ceil_div(plan.singles, kUnroll);
  const int64_t work = plan.vectors > groups ? plan.vectors : groups;
  launch({name, grid_blocks(work, kMapThreads), kMapThreads},
         detail::map_kernel<Out, First, In, kInputs, kVector, kUnroll, F>, plan, f);
}

}  // namespace binade::kernels
