// Exponent counts on the CPU. Threads get chunks of fixed size and own tables; sums of integers do
// not depend on the order.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/exponents/exponent_keys.h>
#include <binade/kernels/exponents/exponents.h>
#include <binade/kernels/exponents/exponents_isa_internal.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace binade::kernels {
namespace {

constexpr int64_t kChunk = int64_t(1) << 18;
constexpr int64_t kChunksPerTable = int64_t(1) << 13;  // 2^31 elements, whose counts fit 32 bits

}  // namespace

void cpu::count_exponents(const CountExponents& a) {
  check_arguments(a);
  auto* result = a.result.as<int64_t>();
  std::mutex mutex;
  parallel_for((a.x.numel + kChunk - 1) / kChunk, 1, [&](int64_t begin, int64_t end) {
    const Workspace memory(kExponentTables * sizeof(ExponentTable));
    auto* tables = memory.as<ExponentTable>();
    for (int64_t last = 0; begin < end; begin = last) {
      last = std::min(end, begin + kChunksPerTable);
      std::memset(tables, 0, kExponentTables * sizeof(ExponentTable));
      const int64_t first = begin * kChunk;
      ExponentRange range{.dtype = a.x.dtype,
                          .x = a.x.data + first * static_cast<int64_t>(size_of(a.x.dtype)),
                          .count = std::min(last * kChunk, a.x.numel) - first,
                          .tables = tables};
      count_exponents_range_best(range);
      const std::lock_guard lock(mutex);
      for (int table = 0; table < kExponentTables; ++table) {
        for (int64_t key = 0; key < kExponentKeys; ++key) {
          result[key] += tables[table][key];
        }
      }
      int64_t* extremes = result + kExponentKeys;
      extremes[0] = std::max<int64_t>(extremes[0], range.largest);
      extremes[1] = std::max<int64_t>(extremes[1], range.smallest);
    }
  });
}

void cpu::count_lost_updates(const CountLostUpdates& a) {
  check_arguments(a);
  const auto* before = a.before.as<float>();
  const auto* after = a.after.as<float>();
  auto* result = a.result.as<int64_t>();
  std::mutex mutex;
  parallel_for(a.before.numel, kChunk / 16, [&](int64_t begin, int64_t end) {
    LostUpdates lost{.before = before + begin, .after = after + begin, .count = end - begin};
    count_lost_updates_range_best(lost);
    const std::lock_guard lock(mutex);
    result[0] += lost.changed;
    result[1] += lost.in_half;
    result[2] += lost.in_bfloat16;
  });
}

}  // namespace binade::kernels
