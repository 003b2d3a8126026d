// Host execution of CUDA's built-in functions and PTX: warp collectives, asynchronous copies,
// matrix loads, tensor-core products, atomics. Kernels get them from device.cuh.
#pragma once
#include <binade/kernels/base/half.h>
#include <binade/kernels/host/kernel_calls.h>

#include <cmath>
#include <cstring>
#include <type_traits>

inline constinit thread_local uint3 threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{1, 1, 1}, gridDim{1, 1, 1};
inline constexpr int warpSize = 32;

// The place of the call of a primitive: a default argument, so it is evaluated at the call.
#define BINADE_SITE ::binade::kernels::host::Site site = {__builtin_FILE(), __builtin_LINE()}

namespace binade::kernels::host {

enum class Shuffle : uint8_t { index, up, down, exclusive_or };
struct ShuffleLane {
  const void* value;
  void* result;
  int argument, width, size;
  Shuffle mode;
};
void shuffle_lanes(void* const* lanes, uint32_t mask);

template <class T>
T shuffle(uint32_t mask, T value, int argument, int width, Shuffle mode, const char* what,
          Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  T result;
  ShuffleLane lane{&value, &result, argument, width, static_cast<int>(sizeof(T)), mode};
  collective({mask, shuffle_lanes, what, options().shuffles_order_memory}, &lane, site);
  return result;
}

struct VoteLane {
  uint32_t value, result;
};
void ballot_lanes(void* const* lanes, uint32_t mask);
void no_exchange(void* const* lanes, uint32_t mask);

inline uint32_t ballot(uint32_t mask, bool vote, const char* what, Site site) {
  VoteLane lane{vote, 0};
  collective({mask, ballot_lanes, what, false}, &lane, site);
  return lane.result;
}

// Copies 16 bytes; the last 16 - source_bytes of them become zero.
void copy_async(void* shared, const void* global, int source_bytes, Site site);
void commit_async();
void wait_async(int pending_groups);

struct LoadMatrixLane {
  uint32_t* fragment;
  const void* row;
  bool transposed;
};
void load_matrix_lanes(void* const* lanes, uint32_t mask);

struct ProductLane {
  float* d;
  const uint32_t *a, *b;
};
void product_f16_lanes(void* const* lanes, uint32_t mask);   // m16n8k16
void product_bf16_lanes(void* const* lanes, uint32_t mask);  // m16n8k16

// Out of line, so that the race detector sees one atomic access and no plain ones.
float atomic_add(float* p, float value, Site site);
double atomic_add(double* p, double value, Site site);
int atomic_add(int* p, int value, Site site);
unsigned atomic_add(unsigned* p, unsigned value, Site site);
unsigned long long atomic_add(unsigned long long* p, unsigned long long value, Site site);
unsigned atomic_max(unsigned* p, unsigned value, Site site);
unsigned long long atomic_max(unsigned long long* p, unsigned long long value, Site site);
unsigned atomic_or(unsigned* p, unsigned value, Site site);
unsigned atomic_cas(unsigned* p, unsigned expected, unsigned value, Site site);
int atomic_cas(int* p, int expected, int value, Site site);
// __threadfence(): publishes the writes that this thread has made or seen to every thread that sees
// its later atomics and then calls a fence itself.
void thread_fence();

}  // namespace binade::kernels::host

inline void __syncthreads(BINADE_SITE) { binade::kernels::host::barrier(0, 0, site); }
inline void __syncwarp(unsigned mask = ~0u, BINADE_SITE) {
  binade::kernels::host::collective({mask, binade::kernels::host::no_exchange, "__syncwarp", true},
                                    nullptr, site);
}

#define BINADE_SHUFFLE(name, mode)                                                            \
  template <class T>                                                                          \
  inline T name(unsigned mask, T value, int argument, int width = 32, BINADE_SITE) {          \
    return binade::kernels::host::shuffle(mask, value, argument, width,                       \
                                          binade::kernels::host::Shuffle::mode, #name, site); \
  }
BINADE_SHUFFLE(__shfl_sync, index)
BINADE_SHUFFLE(__shfl_up_sync, up)
BINADE_SHUFFLE(__shfl_down_sync, down)
BINADE_SHUFFLE(__shfl_xor_sync, exclusive_or)
#undef BINADE_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate, BINADE_SITE) {
  return binade::kernels::host::ballot(mask, predicate != 0, "__ballot_sync", site);
}
inline int __any_sync(unsigned mask, int predicate, BINADE_SITE) {
  return binade::kernels::host::ballot(mask, predicate != 0, "__any_sync", site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, BINADE_SITE) {
  return binade::kernels::host::ballot(mask, predicate == 0, "__all_sync", site) == 0;
}

template <class T>
inline T atomicAdd(T* p, std::type_identity_t<T> value, BINADE_SITE) {
  return binade::kernels::host::atomic_add(p, value, site);
}
template <class T>
inline T atomicMax(T* p, std::type_identity_t<T> value, BINADE_SITE) {
  return binade::kernels::host::atomic_max(p, value, site);
}
inline unsigned atomicOr(unsigned* p, unsigned value, BINADE_SITE) {
  return binade::kernels::host::atomic_or(p, value, site);
}
template <class T>
inline T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> value,
                   BINADE_SITE) {
  return binade::kernels::host::atomic_cas(p, expected, value, site);
}
inline void __threadfence() { binade::kernels::host::thread_fence(); }

template <class T>
inline T __ldg(const T* p) {
  return *p;
}
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __clz(int value) { return value ? __builtin_clz(static_cast<unsigned>(value)) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

namespace binade::kernels::dev {

// The only way to shared memory: one struct per kernel, launched with its size.
template <class T>
inline T& shared_mem() {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 1024);
  return *static_cast<T*>(host::shared_base(sizeof(T)));
}

inline void cp_async16(void* shared, const void* global, int source_bytes = 16, BINADE_SITE) {
  host::copy_async(shared, global, source_bytes, site);
}
inline void cp_async_commit() { host::commit_async(); }
template <int kPending>
inline void cp_async_wait() {
  host::wait_async(kPending);
}

inline void ldmatrix_x4(uint32_t (&fragment)[4], const void* row, BINADE_SITE) {
  host::LoadMatrixLane lane{fragment, row, false};
  host::collective({~0u, host::load_matrix_lanes, "ldmatrix", false}, &lane, site);
}
inline void ldmatrix_x4_trans(uint32_t (&fragment)[4], const void* row, BINADE_SITE) {
  host::LoadMatrixLane lane{fragment, row, true};
  host::collective({~0u, host::load_matrix_lanes, "ldmatrix.trans", false}, &lane, site);
}

template <class T>
inline void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         BINADE_SITE) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>);
  host::ProductLane lane{d, a, b};
  constexpr auto kExchange =
      std::is_same_v<T, half> ? host::product_f16_lanes : host::product_bf16_lanes;
  host::collective({~0u, kExchange, "mma.sync", false}, &lane, site);
}

inline void named_barrier(int id, int count, BINADE_SITE) { host::barrier(id, count, site); }

inline void wait_for_previous_kernel() {}  // kernels never overlap here
inline void start_next_kernel() {}

#ifdef BINADE_DEVICE_NUMERICS
BINADE_HD inline float fast_exp(float x) { return host::approximate_exp(x); }
BINADE_HD inline float fast_log(float x) { return host::approximate_log(x); }
BINADE_HD inline float fast_divide(float a, float b) { return host::approximate_quotient(a, b); }
#else
inline float fast_exp(float x) { return std::exp(x); }
inline float fast_log(float x) { return std::log(x); }
inline float fast_divide(float a, float b) { return a / b; }
#endif

}  // namespace binade::kernels::dev
