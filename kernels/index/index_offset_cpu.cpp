#include <binade/kernels/base/strided.h>
#include <binade/kernels/index/index_offset.h>

namespace binade::kernels::cpu {
namespace {

[[noreturn]] void refuse(const IndexOffset& a, int64_t index) {
  const std::string expected =
      a.bound > 0 ? text(", expected ", -a.bound, " to ", a.bound - 1)
                  : std::string(", expected none, since there is nothing to choose from");
  throw IndexError(text(a.op, ": got index ", index, expected), a.op, index);
}

}  // namespace

void index_offset(const IndexOffset& a) {
  check_arguments(a);
  StridedLoop(a.op, {&a.y, &a.index}).run([&](const StridedTile& tile) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      std::byte* y = tile.data[0] + row * tile.outer[0];
      const std::byte* index = tile.data[1] + row * tile.outer[1];
      for (int64_t i = 0; i < tile.n; ++i, y += tile.inner[0], index += tile.inner[1]) {
        const int64_t given = *reinterpret_cast<const int64_t*>(index);
        const int64_t k = given < 0 ? given + a.bound : given;
        if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(a.bound)) [[unlikely]] {
          refuse(a, given);
        }
        auto* offset = reinterpret_cast<int64_t*>(y);
        *offset = (a.accumulate ? *offset : 0) + k * a.step;
      }
    }
  });
}

}  // namespace binade::kernels::cpu
