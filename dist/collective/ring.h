// Collectives over a ring, written once for every transport. Bandwidth-optimal: in an all-reduce
// each rank sends 2 (n - 1) / n of the data (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", 2009).
//
// The data are n segments. Reduce-scatter: segment j travels once around, from rank j + 1 to rank
// j, and each rank adds its own values, so the order of a sum depends on j and n only. All-gather:
// the complete segments travel once around. Segments are split into pieces; some are in flight
// while others are added.
//
// All ranks must call with the same sizes, dtypes and options (dist/collective/communicator.h
// checks this). Views are contiguous, in memory that the transport can access: on the CPU or on its
// device, where a kernel on the current stream adds while other pieces are in flight. Results are
// bit-identical on all ranks, on every transport and from run to run, and complete when the call
// returns.
#pragma once
#include <binade/dist/collective/reduce_op.h>
#include <binade/dist/transport/transport.h>
#include <binade/kernels/base/view.h>

#include <span>

namespace binade::dist {

struct RingOptions {
  // f16 and bf16 are sent as f32 while they are added, and rounded once, at the end: twice the
  // bytes, but one rounding instead of n - 1.
  bool f32_carry = false;
  int64_t piece_bytes = int64_t(1) << 18;
  // n + 1 non-decreasing offsets from 0 to the number of elements, the same on all ranks: segment r
  // is [bounds[r], bounds[r + 1]). Empty: n nearly equal segments.
  std::span<const int64_t> bounds = {};
};

// x = the reduction of every rank's x. dtypes f64, f32, f16, bf16, i64, i32.
void ring_all_reduce(Transport& transport, const View& x, ReduceOp op,
                     const RingOptions& options = {});
// y = this rank's segment of the reduction. x: n times the elements of y.
void ring_reduce_scatter(Transport& transport, const View& x, const View& y, ReduceOp op,
                         const RingOptions& options = {});
// y = every rank's x, ordered by rank. Any dtype.
void ring_all_gather(Transport& transport, const View& x, const View& y,
                     const RingOptions& options = {});
// In place, over the segments in options.bounds: this rank's segment of x becomes the reduction and
// the others stay unchanged; or all ranks get every rank's segment of x.
void ring_reduce_scatter_ranges(Transport& transport, const View& x, ReduceOp op,
                                const RingOptions& options);
void ring_all_gather_ranges(Transport& transport, const View& x, const RingOptions& options);
// x = rank root's x, passed along the ring in pieces. Any dtype.
void ring_broadcast(Transport& transport, const View& x, int root, const RingOptions& options = {});

}  // namespace binade::dist
