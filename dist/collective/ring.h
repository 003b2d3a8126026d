// Collectives over a ring, written once for every transport. Bandwidth-optimal: in an all-reduce
// each rank sends 2 (n - 1) / n of the data (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", 2009).
//
// The data are n segments. Reduce-scatter: segment j travels from rank j + 1 once around to rank j,
// each rank adding its own values, so the order of a sum is fixed by j and n. All-gather: the
// complete segments travel once around. Segments are cut into pieces; several are under way
// while others are added.
//
// All ranks call with the same sizes, dtypes and options (dist/collective/communicator.h checks
// that). Views are contiguous and lie where the transport's messages do: on the CPU or on its
// device, where sums are made by a kernel on the current stream while other pieces travel. Results
// are bit-identical on all ranks, on every transport and from run to run, and complete when the
// call returns.
#pragma once
#include <binade/dist/collective/reduce_op.h>
#include <binade/dist/transport/transport.h>
#include <binade/kernels/base/view.h>

#include <span>

namespace binade::dist {

struct RingOptions {
  // f16 and bf16 travel as f32 while they are added and are rounded once, at the end: twice the
  // bytes on the way for one rounding instead of n - 1.
  bool f32_carry = false;
  int64_t piece_bytes = int64_t(1) << 18;
  // n + 1 rising offsets from 0 to the number of elements, the same on all ranks: segment r is
  // [bounds[r], bounds[r + 1]). Empty: n nearly equal segments.
  std::span<const int64_t> bounds = {};
};

// x = the reduction of every rank's x. dtypes f64, f32, f16, bf16, i64, i32.
void ring_all_reduce(Transport& transport, const View& x, ReduceOp op,
                     const RingOptions& options = {});
// y = this rank's segment of the reduction. x: n times the elements of y.
void ring_reduce_scatter(Transport& transport, const View& x, const View& y, ReduceOp op,
                         const RingOptions& options = {});
// y = every rank's x, by rank. Any dtype.
void ring_all_gather(Transport& transport, const View& x, const View& y,
                     const RingOptions& options = {});
// The same in place, over the segments that options.bounds names: this rank's segment of x becomes
// the reduction and the others stay as they are; or every rank's segment of x comes to all.
void ring_reduce_scatter_ranges(Transport& transport, const View& x, ReduceOp op,
                                const RingOptions& options);
void ring_all_gather_ranges(Transport& transport, const View& x, const RingOptions& options);
// x = rank root's x, passed along the ring in pieces. Any dtype.
void ring_broadcast(Transport& transport, const View& x, int root, const RingOptions& options = {});

}  // namespace binade::dist
