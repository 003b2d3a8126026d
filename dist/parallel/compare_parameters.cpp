#include <binade/core/io/crc32c.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/parallel/compare_parameters_internal.h>

#include <algorithm>
#include <span>

namespace binade::dist {
namespace {

uint32_t checksum(const Tensor& x) {
  const Tensor host = x.detach().to(Device{}).contiguous();
  return crc32c(
      std::span(host.view().data, static_cast<size_t>(host.numel()) * size_of(host.dtype())));
}

uint32_t checksum(const std::string& text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

struct DifferingRank {
  int rank, like;  // the first that differs from most, and one of those; -1: none
};
DifferingRank differing_rank(const std::vector<int64_t>& sums) {
  const auto usual = std::max_element(sums.begin(), sums.end(), [&](int64_t a, int64_t b) {
    return std::count(sums.begin(), sums.end(), a) < std::count(sums.begin(), sums.end(), b);
  });
  const auto odd = std::find_if(sums.begin(), sums.end(), [&](int64_t a) { return a != *usual; });
  return odd == sums.end() ? DifferingRank{-1, -1}
                           : DifferingRank{static_cast<int>(odd - sums.begin()),
                                           static_cast<int>(usual - sums.begin())};
}

}  // namespace

// Compares two numbers per parameter: a checksum of its name, dtype, sizes and offset, and one of
// its values.
void compare_over_ranks(Communicator& group, const std::vector<Parameter>& parameters,
                        int64_t reductions) {
  const auto count = static_cast<int64_t>(parameters.size());
  const Tensor mine = empty({count, 2}, DType::i64);
  for (int64_t i = 0; i < count; ++i) {
    const Parameter& p = parameters[static_cast<size_t>(i)];
    mine.data<int64_t>()[2 * i] =
        checksum(text(p.name, " ", p.value.dtype(), " ", p.value.sizes(), " ", p.offset));
    mine.data<int64_t>()[2 * i + 1] = checksum(p.value);
  }
  const Tensor all = group.all_gather(mine);
  const auto at = [&](int rank, int64_t i) { return all.data<int64_t>()[2 * rank * count + i]; };
  for (int64_t i = 0; i < 2 * count; ++i) {
    std::vector<int64_t> sums;
    for (int rank = 0; rank < group.size(); ++rank) {
      sums.push_back(at(rank, i));
    }
    const auto [odd, like] = differing_rank(sums);
    const Parameter& p = parameters[static_cast<size_t>(i / 2)];
    check(odd < 0 || i % 2 != 0, "data parallel: parameter ", i / 2, " of rank ", odd,
          " is another one than on rank ", like, " (here ", p.name, " ", p.value.sizes(),
          "): build the same model on every rank");
    check(odd < 0, "data parallel: the values of ", p.name, " on rank ", odd, " differ from rank ",
          like,
          reductions == 0 ? "; give every rank the same seed or checkpoint"
                          : text(" after ", reductions,
                                 " reductions: that rank changed them by itself, or its memory is "
                                 "faulty"));
  }
}

}  // namespace binade::dist
