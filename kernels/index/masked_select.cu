// CUDA masked_select: a block takes a chunk of the mask, a thread kPerThread adjacent elements. A
// scan over the block gives their places.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/masked_select.h>
#include <binade/kernels/cuda/scan.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = static_cast<int>(kMaskChunk) / kThreads;

// The mask at this thread's elements, as bits.
template <int kOperands>
__device__ __forceinline__ unsigned chosen_bits(const StridedIndex<kOperands>& index,
                                                int64_t first) {
  unsigned bits = 0;
  for (int i = 0; i < kPerThread; ++i) {
    if (first + i < index.numel) {
      std::byte* at[kOperands];
      index.locate(first + i, at);
      bits |= static_cast<unsigned>(*reinterpret_cast<const uint8_t*>(at[0]) != 0) << i;
    }
  }
  return bits;
}

__device__ __forceinline__ int64_t first_element(int64_t chunk) {
  return chunk * kMaskChunk + int64_t{threadIdx.x} * kPerThread;
}

__global__ void __launch_bounds__(kThreads)
    mask_count_kernel(const __grid_constant__ StridedIndex<1> mask, int64_t* offsets,
                      int64_t chunks) {
  auto& memory = dev::shared_mem<dev::ScanMemory>();
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const unsigned bits = chosen_bits(mask, first_element(chunk));
    int64_t total;
    dev::block_exclusive_sum<kThreads>(__popc(bits), memory, total);
    if (threadIdx.x == 0) {
      offsets[chunk] = total;
      if (chunk == chunks - 1) {
        offsets[chunks] = 0;
      }
    }
  }
}

// y [n, rank] = the positions of the true elements. index.size has the innermost dimension first.
__global__ void __launch_bounds__(kThreads)
    mask_positions_kernel(const __grid_constant__ StridedIndex<1> index, const int64_t* offsets,
                          int64_t* y, int rank, int64_t chunks) {
  auto& memory = dev::shared_mem<dev::ScanMemory>();
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int64_t first = first_element(chunk);
    const unsigned bits = chosen_bits(index, first);
    int64_t total;
    int64_t k = offsets[chunk] + dev::block_exclusive_sum<kThreads>(__popc(bits), memory, total);
    for (int i = 0; i < kPerThread; ++i) {
      if (bits >> i & 1u) {
        int64_t rest = first + i;
        for (int d = 0; d < rank; ++d) {
          y[k * rank + rank - 1 - d] = rest % index.size[d];
          rest /= index.size[d];
        }
        ++k;
      }
    }
  }
}

// kSpread: copies from `chosen` to the places of the mask; else from there to `chosen`.
template <class W, bool kSpread>
__global__ void __launch_bounds__(kThreads)
    masked_move_kernel(const __grid_constant__ StridedIndex<2> index, const int64_t* offsets,
                       W* chosen, int64_t stride, int64_t chunks) {
  auto& memory = dev::shared_mem<dev::ScanMemory>();
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int64_t first = first_element(chunk);
    const unsigned bits = chosen_bits(index, first);
    int64_t total;
    int64_t k = offsets[chunk] + dev::block_exclusive_sum<kThreads>(__popc(bits), memory, total);
    for (int i = 0; i < kPerThread; ++i) {
      const bool keep = bits >> i & 1u;
      if (first + i < index.numel && (keep || kSpread)) {
        std::byte* at[2];
        index.locate(first + i, at);
        W* element = reinterpret_cast<W*>(at[1]);
        if constexpr (kSpread) {
          *element = keep ? chosen[k * stride] : W(0);
        } else {
          chosen[k * stride] = *element;
        }
        k += keep;
      }
    }
  }
}

// `whole` has the sizes of the mask.
template <bool kSpread>
void move(const View& whole, const View& mask, const View& offsets, const View& chosen) {
  if (mask.numel == 0) {
    return;
  }
  const int64_t chunks = offsets.numel - 1;
  dispatch_width(whole.dtype, [&]<class W>(Type<W>) {
    launch({"masked_move_kernel", grid_blocks(chunks, 1), kThreads, sizeof(dev::ScanMemory)},
           masked_move_kernel<W, kSpread>, StridedIndex<2>::row_major({&mask, &whole}),
           offsets.as<int64_t>(), chosen.as<W>(), chosen.strides[0], chunks);
  });
}

}  // namespace

namespace cuda {

void mask_count(const MaskCount& a) {
  check_arguments(a);
  const int64_t chunks = a.offsets.numel - 1;
  if (chunks == 0) {
    return fill({.y = a.offsets, .value = 0});
  }
  launch({"mask_count_kernel", grid_blocks(chunks, 1), kThreads, sizeof(dev::ScanMemory)},
         mask_count_kernel, StridedIndex<1>::row_major({&a.mask}), a.offsets.as<int64_t>(), chunks);
  exclusive_scan(a.offsets.as<int64_t>(), a.offsets.numel);
}

void masked_select(const MaskedSelect& a) {
  check_arguments(a);
  move<false>(a.x, a.mask, a.offsets, a.y);
}

void mask_positions(const MaskPositions& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const int64_t chunks = a.offsets.numel - 1;
  launch({"mask_positions_kernel", grid_blocks(chunks, 1), kThreads, sizeof(dev::ScanMemory)},
         mask_positions_kernel, StridedIndex<1>::row_major({&a.mask}), a.offsets.as<int64_t>(),
         a.y.as<int64_t>(), a.mask.dim(), chunks);
}

void masked_spread(const MaskedSpread& a) {
  check_arguments(a);
  move<true>(a.y, a.mask, a.offsets, a.x);
}

}  // namespace cuda
}  // namespace binade::kernels
