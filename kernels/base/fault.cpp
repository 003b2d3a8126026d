#include <binade/kernels/base/fault.h>

namespace binade::kernels {
namespace {

Dims position_of(int64_t i, const Dims& sizes) {
  Dims at = sizes;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    at[d] = i % sizes[d];
    i /= sizes[d];
  }
  return at;
}

// No branch per element, so that the compiler vectorises the loop.
bool all_inside(const int64_t* index, int64_t count, const IndexRange& range) {
  const auto bound = static_cast<uint64_t>(range.bound);
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) {
    outside |= static_cast<uint64_t>(index[i]) >= bound;
  }
  return !outside;
}

}  // namespace

void check_indices(const View& index, const IndexRange& range) {
  if (index.contiguous && all_inside(index.as<const int64_t>(), index.numel, range)) {
    return;
  }
  for (int64_t i = 0; i < index.numel; ++i) {
    int64_t offset = i;
    if (!index.contiguous) {
      const Dims at = position_of(i, index.sizes);
      offset = 0;
      for (int d = 0; d < at.size(); ++d) {
        offset += at[d] * index.strides[d];
      }
    }
    const int64_t value = index.as<const int64_t>()[offset];
    if (value < 0 || value >= range.bound) [[unlikely]] {
      const std::string text = binade::text(
          range.op, ": got ", range.what, " ", value, " at ", position_of(i, index.sizes),
          range.bound > 0 ? binade::text(", expected 0 to ", range.bound - 1)
                          : std::string(", expected none, since there is nothing to choose from"));
      throw IndexError(text, range.op, value);
    }
  }
}

}  // namespace binade::kernels
