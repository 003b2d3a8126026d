// What plain CUDA C++ takes from the toolkit, given to the executor (kernels/host): launches,
// shared memory, FP16, and tensor-core fragments. Sources that host_cuda.py wrote include it, and
// nothing else does: it puts CUDA's own names into the global namespace.
#pragma once
#include <binade/kernels/host/wmma.h>
#include <tests/host/host_launch.h>
#include <tests/ladders/step.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#define PLAIN_CUDA_UNSEEN __attribute__((no_sanitize("thread"), noinline))

// Launches
// -----------------------------------------------------------------------------------------
using cudaStream_t = void*;
inline void cudaMemsetAsync(void* block, int value, size_t bytes, cudaStream_t = nullptr) {
  std::memset(block, value, bytes);
}
inline void cudaMemset(void* block, int value, size_t bytes) { std::memset(block, value, bytes); }

namespace plain_cuda {

namespace host = ::binade::kernels::host;

// Static shared memory lies in the first part of the block's shared memory, dynamic after it.
inline constexpr size_t kStaticBytes = 48 * 1024;
struct SharedState {
  uint64_t launch = 0;  // its number
  size_t used = 0;      // bytes of static shared memory that declarations of this launch took
};
inline SharedState shared_state;

// The declaration with this number: it gets its place when a thread of the launch first runs it.
// What does not fit is an error of shared_base().
template <class T, int kNumber>
PLAIN_CUDA_UNSEEN T& shared(const char*) {
  static uint64_t launch = 0;
  static size_t offset = 0;
  if (launch != shared_state.launch) {
    launch = shared_state.launch;
    offset = shared_state.used;
    shared_state.used += (sizeof(T) + 127) / 128 * 128;
  }
  return *reinterpret_cast<T*>(static_cast<char*>(host::shared_base(offset + sizeof(T))) + offset);
}
template <class T>
PLAIN_CUDA_UNSEEN T* dynamic_shared() {
  return reinterpret_cast<T*>(static_cast<char*>(host::shared_base(kStaticBytes)) + kStaticBytes);
}

template <class... P>
struct Call {
  void (*kernel)(P...);
  std::tuple<P...> arguments;

  template <size_t... kIndex>
  PLAIN_CUDA_UNSEEN void run(std::index_sequence<kIndex...>) const {
    kernel(std::get<kIndex>(arguments)...);
  }
  PLAIN_CUDA_UNSEEN static void run_thread(void* call) {
    static_cast<const Call*>(call)->run(std::index_sequence_for<P...>{});
  }
};

template <class... P>
auto start(const char* name, void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic_bytes = 0,
           cudaStream_t = nullptr) {
  return [=](auto... arguments) {
    ++shared_state.launch;
    shared_state.used = 0;
    Call<P...> call{kernel, {static_cast<P>(arguments)...}};
    host::run_grid({name, grid, block, kStaticBytes + dynamic_bytes}, Call<P...>::run_thread,
                   &call);
  };
}

// Counts
// -------------------------------------------------------------------------------------------

PLAIN_CUDA_UNSEEN inline void count(uint64_t Counts::*what) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (thread % 32 == 0) {  // once a warp
    ++(executed().*what);
  }
}
PLAIN_CUDA_UNSEEN inline void count_lane(uint64_t Counts::*what) { ++(executed().*what); }
inline void sync_threads(BINADE_SITE) {
  count(&Counts::barriers);
  ::__syncthreads(site);
}
#define PLAIN_CUDA_SHUFFLE(name, of)                                             \
  template <class T>                                                             \
  inline T name(unsigned mask, T value, int lane, int width = 32, BINADE_SITE) { \
    count(&Counts::shuffles);                                                    \
    return ::of(mask, value, lane, width, site);                                 \
  }
PLAIN_CUDA_SHUFFLE(shuffle_index, __shfl_sync)
PLAIN_CUDA_SHUFFLE(shuffle_down, __shfl_down_sync)
PLAIN_CUDA_SHUFFLE(shuffle_up, __shfl_up_sync)
PLAIN_CUDA_SHUFFLE(shuffle_xor, __shfl_xor_sync)
#undef PLAIN_CUDA_SHUFFLE
template <class T>
inline T add_atomically(T* p, std::type_identity_t<T> value, BINADE_SITE) {
  count_lane(&Counts::atomics);
  return ::atomicAdd(p, value, site);
}

}  // namespace plain_cuda

#define __syncthreads() ::plain_cuda::sync_threads()
#define __shfl_sync(...) ::plain_cuda::shuffle_index(__VA_ARGS__)
#define __shfl_down_sync(...) ::plain_cuda::shuffle_down(__VA_ARGS__)
#define __shfl_up_sync(...) ::plain_cuda::shuffle_up(__VA_ARGS__)
#define __shfl_xor_sync(...) ::plain_cuda::shuffle_xor(__VA_ARGS__)
#define atomicAdd(...) ::plain_cuda::add_atomically(__VA_ARGS__)

// Numbers
// ------------------------------------------------------------------------------------------

inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }

using __half = plain_cuda::Half;
using half = __half;
inline float __half2float(__half value) { return value.value(); }
inline __half __float2half(float value) { return __half(value); }
inline __half __hadd(__half a, __half b) { return __half(a.value() + b.value()); }
inline __half __hmul(__half a, __half b) { return __half(a.value() * b.value()); }
// One rounding: the product of two halves is exact in float, and the sum in double.
inline __half __hfma(__half a, __half b, __half c) {
  return __half(static_cast<double>(a.value()) * b.value() + c.value());
}
inline __half operator+(__half a, __half b) { return __hadd(a, b); }
inline __half operator*(__half a, __half b) { return __hmul(a, b); }
inline __half& operator+=(__half& a, __half b) { return a = a + b; }

// Products on tensor cores, counted.
namespace nvcuda::wmma {
template <class D, class A, class B, class C>
void counted_mma_sync(D& d, const A& a, const B& b, const C& c, BINADE_SITE) {
  plain_cuda::count(&plain_cuda::Counts::products);
  mma_sync(d, a, b, c, site);
}
}  // namespace nvcuda::wmma
#define mma_sync(...) counted_mma_sync(__VA_ARGS__)
