// Computes how much of a data-parallel step's communication is hidden behind its backward, from the
// times at which each bucket of gradients was complete, and its reduction began and ended.
#pragma once
#include <binade/dist/transport/delayed_transport.h>

#include <cstdint>
#include <span>
#include <vector>

namespace binade::dist {

// Seconds since the first gradient of the backward was final; negative: not yet.
struct BucketTimes {
  int64_t bytes = 0;
  double ready = -1, begin = -1, end = -1;
};

struct Overlap {
  double communication = 0;  // T: the reductions of all buckets
  double tail = 0;           // of backward: from the first complete bucket to the last gradient
  double exposed = 0;        // communication after the last gradient
  double hidden() const { return communication - exposed; }
  // The best possible exposed time with a small last bucket, max(0, T - tail), plus a tenth of T.
  double bound() const {
    return (communication > tail ? communication - tail : 0) + communication / 10;
  }
};

// REQUIRES: all reductions are done. Buckets in launch order.
Overlap overlap_of(std::span<const BucketTimes> buckets);

// Models the reductions of the same buckets over a link, one after another. `ready` is kept;
// `begin` and `end` become the times of a ring all-reduce over `ranks`, with 2 (ranks - 1) steps
// that each send bytes / ranks (dist/collective/ring.h).
std::vector<BucketTimes> modelled_reduction(std::span<const BucketTimes> buckets,
                                            const LinkDelay& link, int ranks);

}  // namespace binade::dist
