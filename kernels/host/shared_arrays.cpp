// __shared__ arrays: each has a place in the arena of shared memory, with guards around it. The
// first thread of a launch that comes to a declaration gives it its place.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/named_ranges.h>
#include <binade/kernels/host/sanitizer.h>

#include <cstring>

namespace binade::kernels::host {
namespace {

constexpr size_t kLargestAlignment = 1024;  // of the arena
constexpr size_t kBankLine = 128;           // an array begins in bank 0
constexpr int kUninitialised = 0xff;        // NaN

}  // namespace

void forget_shared_arrays(Executor& x) {
  x.arrays.clear();
  x.arrays_bytes = 0;
  x.arrays_end = round_up(kMaxShared, kLargestAlignment) + kSharedGuard;
  x.dynamic_name = nullptr;
  x.dynamic_element_bytes = 0;
}

void fill_shared(Executor& x) {
  std::memset(x.shared, kUninitialised, x.grid.shared_bytes);
  for (const SharedArray& array : x.arrays) {
    std::memset(x.shared + array.offset, kUninitialised, array.bytes);
  }
}

void* shared_variable(const void* key, const char* name, size_t bytes, size_t alignment,
                      size_t element_bytes) {
  Executor& x = executor();
  for (const SharedArray& array : x.arrays) {
    if (array.key == key && array.bytes == bytes) {
      return x.shared + array.offset;
    }
  }
  if (alignment > kLargestAlignment) {
    fail_thread({FindingKind::bad_argument}, "__shared__ ", name, " has an alignment of ",
                alignment, "; the largest is ", kLargestAlignment);
  }
  x.arrays_bytes += bytes;
  if (x.arrays_bytes > kMaxStatic) {
    fail_thread({FindingKind::bad_argument}, "__shared__ arrays of ", x.arrays_bytes,
                " bytes up to ", name, "; a kernel declares at most ", kMaxStatic,
                " (more as extern __shared__)");
  }
  if (x.arrays_bytes + x.grid.shared_bytes > kMaxShared) {
    fail_thread({FindingKind::bad_argument}, "__shared__ arrays of ", x.arrays_bytes, " bytes and ",
                x.grid.shared_bytes, " of the launch; a block has at most ", kMaxShared);
  }
  const size_t offset = round_up(x.arrays_end, std::max(alignment, kBankLine));
  if (offset + bytes + kSharedGuard > kSharedArena) {
    fail_thread({FindingKind::bad_argument}, "too many __shared__ arrays, ", x.arrays.size());
  }
  x.arrays.push_back({key, name, offset, bytes, element_bytes});
  x.arrays_end = offset + bytes + kSharedGuard;
  unpoison(x.shared + offset, bytes);
  std::memset(x.shared + offset, kUninitialised, bytes);
  return x.shared + offset;
}

void* dynamic_shared(const char* name, size_t alignment, size_t element_bytes) {
  Executor& x = executor();
  if (alignment > kLargestAlignment) {
    fail_thread({FindingKind::bad_argument}, "extern __shared__ ", name, " has an alignment of ",
                alignment, "; the largest is ", kLargestAlignment);
  }
  x.dynamic_name = name;
  x.dynamic_element_bytes = element_bytes;
  return x.shared;
}

}  // namespace binade::kernels::host
