// The only file with inline PTX. Each wrapper is one instruction (PTX ISA 8.x) with its operands in
// the order of the manual; host/primitives.h has the same functions for host execution.
#pragma once
#include <binade/kernels/base/half.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace binade::kernels::dev {

// The only way to shared memory: one struct per kernel, launched with its size.
template <class T>
__device__ __forceinline__ T& shared_mem() {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 1024);
  extern __shared__ __align__(1024) unsigned char binade_shared_memory[];
  return *reinterpret_cast<T*>(binade_shared_memory);
}

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Copies 16 bytes from global to shared memory. Only the first source_bytes are read; the rest
// becomes zero. Both addresses must be multiples of 16. Before sm_80 it is an ordinary copy.
__device__ __forceinline__ void cp_async16(void* shared, const void* global,
                                           int source_bytes = 16) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(source_bytes)
               : "memory");
#else
  uint4 value = make_uint4(0, 0, 0, 0);
  if (source_bytes == 16) {
    value = *static_cast<const uint4*>(global);
  } else {
    auto* bytes = reinterpret_cast<unsigned char*>(&value);
    for (int i = 0; i < source_bytes; ++i) {
      bytes[i] = static_cast<const unsigned char*>(global)[i];
    }
  }
  *static_cast<uint4*>(shared) = value;
#endif
}
__device__ __forceinline__ void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most kPending of this thread's committed groups are in flight. Other threads see
// the bytes after a barrier.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

// Four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// d += a b for one 16x8 tile with k = 16; a row-major, b column-major, f32 accumulators. sm_75 has
// only f16 with k = 8, so this takes two of them, and no bf16: never launch a bf16 kernel there.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>);
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
  if constexpr (std::is_same_v<T, half>) {
    for (int k = 0; k < 2; ++k) {
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
          "{%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
    }
  } else {
    __trap();
  }
#endif
}

// Barrier `id` (1 to 15) among `count` threads of the block, a multiple of 32.
__device__ __forceinline__ void named_barrier(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// In a kernel launched with Launch::overlaps_previous: waits until the kernel before it in the
// stream has ended and its writes can be seen. Without that launch, and before sm_90, it does
// nothing.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the kernel behind this one start, if it was launched so: when all blocks have called this or
// have ended.
__device__ __forceinline__ void start_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Approximate: errors of 2 ulp and more, no denormals. For f16 and bf16 results only.
__device__ __forceinline__ float fast_exp(float x) { return __expf(x); }
__device__ __forceinline__ float fast_log(float x) { return __logf(x); }
__device__ __forceinline__ float fast_divide(float a, float b) { return __fdividef(a, b); }

}  // namespace binade::kernels::dev
