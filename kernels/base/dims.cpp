#include <binade/kernels/base/dims.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace binade {

std::string to_string(const Dims& dims) {
  std::string out = "[";
  for (int i = 0; i < dims.size(); ++i) {
    out += (i ? ", " : "") + std::to_string(dims[i]);
  }
  return out + "]";
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << to_string(dims); }

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void refuse_sizes(const char* op, const Dims& sizes,
                                                         int64_t size) {
  fail(op, ": got sizes ", sizes, ", expected ",
       size < 0 ? "no negative size" : "at most 2^59 elements");
}
}  // namespace

int64_t element_count(const Dims& sizes, const char* op) {
  constexpr int64_t kLimit = int64_t(1) << 59;
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : sizes) {
    empty |= size == 0;
    const bool wraps = __builtin_mul_overflow(count, size == 0 ? 1 : size, &count);
    if (size < 0 || wraps || count > kLimit) [[unlikely]] {
      refuse_sizes(op, sizes, size);
    }
  }
  return empty ? 0 : count;
}

Dims row_major_strides(const Dims& sizes) {
  Dims strides = Dims::of(sizes.size());
  int64_t stride = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Dims channels_last_strides(const Dims& sizes) {
  if (sizes.size() < 3) {
    return row_major_strides(sizes);
  }
  Dims strides = Dims::of(sizes.size());
  strides[1] = 1;
  int64_t stride = std::max<int64_t>(sizes[1], 1);
  for (int i = sizes.size() - 1; i >= 2; --i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  strides[0] = stride;
  return strides;
}

bool is_row_major(const Dims& sizes, const Dims& strides) {
  int64_t expected = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] != 1 && strides[i] != expected) {
      return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    }
    expected *= sizes[i];
  }
  return true;
}

bool is_dense(const Dims& sizes, const Dims& strides) {
  int order[kMaxDims];
  int count = 0;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      return true;
    }
    if (sizes[i] > 1) {  // insertion sort by ascending stride
      int at = count++;
      for (; at > 0 && strides[order[at - 1]] > strides[i]; --at) {
        order[at] = order[at - 1];
      }
      order[at] = i;
    }
  }
  int64_t expected = 1;
  for (int i = 0; i < count; ++i) {
    if (strides[order[i]] != expected) {
      return false;
    }
    expected *= sizes[order[i]];
  }
  return true;
}

bool can_broadcast(const Dims& a, const Dims& b) {
  for (int i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t da = a[a.size() - i], db = b[b.size() - i];
    if (da != db && da != 1 && db != 1) {
      return false;
    }
  }
  return true;
}

Dims broadcast_sizes(const char* op, const Dims& a, const Dims& b) {
  check(can_broadcast(a, b), op, ": got shapes ", a, " and ", b,
        ", expected shapes that broadcast (equal sizes or 1, aligned at the last dimension); "
        "reshape() or unsqueeze() one");
  Dims out = Dims::of(std::max(a.size(), b.size()));
  for (int i = 1; i <= out.size(); ++i) {
    const int64_t da = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t db = i <= b.size() ? b[b.size() - i] : 1;
    out[out.size() - i] = da == 1 ? db : da;
  }
  return out;
}

}  // namespace binade
