// RankGroup: the operations between ranks that layers below `dist` need. dist::Communicator
// implements it. All calls are collective: every rank makes the same ones in the same order.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <cstdint>
#include <span>

namespace binade {

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // x = the sum of every rank's x, in place, with the same bits on all.
  virtual void sum(const Tensor& x) = 0;
  // x [n]: every rank has elements [bounds[rank], bounds[rank + 1]) and receives the others.
  // bounds: size() + 1 non-decreasing numbers from 0 to n, the same on every rank.
  virtual void gather_ranges(const Tensor& x, std::span<const int64_t> bounds) = 0;

 protected:
  RankGroup() = default;
  RankGroup(const RankGroup&) = default;
  RankGroup& operator=(const RankGroup&) = default;
};

}  // namespace binade
