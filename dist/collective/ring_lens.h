// Ring lens: measures the rounding errors that each kind of all-reduce makes in a tensor. Every hop
// is computed in one process, with the kernel of the ring itself (kernels/copy/combine.h), and
// compared with the exact partial sum of the same ranks.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string>
#include <vector>

namespace binade::dist {

enum class Division : uint8_t { none, before, after };  // sum; the average, divided before or after
enum class ReductionOrder : uint8_t {
  ring,  // dist/collective/ring.h: segment j from rank j + 1 around to rank j
  tree,  // pairs, pairs of pairs, ...: recursive doubling, as libraries do for short messages
};

struct ReductionChoice {
  DType dtype = DType::f16;
  bool f32_carry = false;  // f16 and bf16 are sent as f32 and rounded at the end
  Division division = Division::none;
  ReductionOrder order = ReductionOrder::ring;
};
std::string to_string(const ReductionChoice& choice);  // "f16 carried in f32, average, ring"

// The errors of the partial results of one hop.
struct HopError {
  double relative = 0;   // sqrt(sum of squared errors / sum of squared exact values), finite only
  double ulps = 0;       // the largest error in units of the last place of the tensor's dtype
  int64_t infinite = 0;  // elements that are not finite although the exact value is
  int64_t lost = 0;      // elements that are 0 although the exact value is not
};

// The reduction of ranks[0], ranks[1], ...: contiguous f64 vectors of one length on the CPU, each
// first rounded to the dtype; the exact sum is over the rounded values. `hops`, if given, gets an
// entry per hop of the ring (n - 1), or per level of the tree; the last one is for the result.
Tensor reduce_as(const std::vector<Tensor>& ranks, const ReductionChoice& choice,
                 std::vector<HopError>* hops = nullptr);

struct RingLensRow {
  ReductionChoice choice;
  int ranks;
  std::vector<HopError> hops;
};

struct RingLensReport {
  std::string source;  // origin of the values
  int64_t elements = 0;
  std::vector<RingLensRow> rows;
};

struct RingLensOptions {
  static constexpr int kLeastRanks = 2, kMostRanks = 4096;
  std::vector<int> ranks = {2, 8, 64};
  std::vector<DType> dtypes = {DType::f16, DType::bf16, DType::f32};
  uint64_t seed = 0;
};

// Tries every choice for every number of ranks. Each rank holds the values of x in a different
// order, so that the terms of a sum are independent and have x's distribution.
RingLensReport ring_lens(const Tensor& x, const std::string& source,
                         const RingLensOptions& options = {});

std::string to_text(const RingLensReport& report);
std::string to_json(const RingLensReport& report);

}  // namespace binade::dist
