#include <binade/dist/parallel/overlap.h>

#include <algorithm>

namespace binade::dist {

Overlap overlap_of(std::span<const BucketTimes> buckets) {
  Overlap overlap;
  double last_gradient = 0, done = 0;
  for (const BucketTimes& bucket : buckets) {
    overlap.communication += bucket.end - bucket.begin;
    last_gradient = std::max(last_gradient, bucket.ready);
    done = std::max(done, bucket.end);
  }
  if (!buckets.empty()) {
    overlap.tail = last_gradient - buckets[0].ready;
    overlap.exposed = std::max(0.0, done - last_gradient);
  }
  return overlap;
}

std::vector<BucketTimes> modelled_reduction(std::span<const BucketTimes> buckets,
                                            const LinkDelay& link, int ranks) {
  std::vector<BucketTimes> out(buckets.begin(), buckets.end());
  double free = 0;  // when the link becomes free
  for (BucketTimes& bucket : out) {
    const double each = static_cast<double>(bucket.bytes) / ranks;
    const double step =
        link.latency + (link.bytes_per_second > 0 ? each / link.bytes_per_second : 0);
    bucket.begin = std::max(free, bucket.ready);
    free = bucket.end = bucket.begin + 2 * (ranks - 1) * step;
  }
  return out;
}

}  // namespace binade::dist
