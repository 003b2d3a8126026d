// Communicator: the collectives of a group of ranks, on tensors.
//
// All ranks of the group call the same collectives in the same order. Every call carries a sequence
// number and a signature (what, dtype, elements, operation), which neighbours compare before any
// data move: a call that differs, a rank that is dead, gone or late ends the job on every rank with
// a CollectiveError that shows who is where. After one, every further call throws it too.
// One thread at a time calls a communicator.
//
// Tensors on a device other than the CPU pass through host memory, unless connect_devices() has
// connected the devices of all ranks.
#pragma once
#include <binade/core/tensor/rank_group.h>
#include <binade/dist/collective/ring.h>
#include <binade/dist/job/health.h>
#include <binade/dist/transport/delayed_transport.h>

namespace binade::dist {

enum class Algorithm : uint8_t {
  ring,     // dist/collective/ring.h: the same on every transport, bit-identical everywhere
  library,  // the transport's own: MPI_Allreduce, ncclAllReduce
};

struct AllReduceOptions {
  Algorithm algorithm = Algorithm::ring;
  bool f32_carry = false;  // of the ring, for f16 and bf16
  int64_t piece_bytes = RingOptions{}.piece_bytes;
};

struct CommunicatorOptions {
  double timeout = 60;         // seconds in which a collective must make progress
  double first_timeout = 600;  // the same for the first one, as ranks start at different times
  // Of run_threads() and World: messages take as long as over such a link, to try that.
  LinkDelay link = {};
};

class Communicator : public RankGroup {
 public:
  // `name` is empty for the group of all ranks.
  Communicator(std::shared_ptr<Transport> transport, std::shared_ptr<Health> health,
               const CommunicatorOptions& options = {}, std::string name = {});

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  bool is_root() const { return rank() == 0; }

  // x = the reduction of every rank's x, in place. Floating dtypes, i64 and i32.
  void all_reduce(const Tensor& x, ReduceOp op = ReduceOp::sum,
                  const AllReduceOptions& options = {});
  // x = rank root's x. Any dtype.
  void broadcast(const Tensor& x, int root = 0);
  // [n, sizes of x...], by rank. Any dtype.
  Tensor all_gather(const Tensor& x);
  // part = this rank's of the n equal parts of rank root's `all`; and the way back: `all` of rank
  // root = the parts of all ranks. Elsewhere `all` is not looked at. Any dtype.
  void scatter(const Tensor& all, const Tensor& part, int root = 0);
  void gather(const Tensor& part, const Tensor& all, int root = 0);
  // x: [n, ...] to [...]: this rank's part of the reduction.
  Tensor reduce_scatter(const Tensor& x, ReduceOp op = ReduceOp::sum,
                        const AllReduceOptions& options = {});
  void barrier();
  // x [n] in place: elements [bounds[r], bounds[r + 1]) belong to rank r
  // (see RankGroup). This rank's become the reduction, the others stay as they are.
  void reduce_scatter_ranges(const Tensor& x, std::span<const int64_t> bounds, ReduceOp op,
                             const AllReduceOptions& options = {});
  void gather_ranges(const Tensor& x, std::span<const int64_t> bounds) override;
  void sum(const Tensor& x) override { all_reduce(x); }

  // The ranks that give the same color, ordered by key and rank. color -1: no group, an undefined
  // result (nullptr). Collective over this group.
  std::unique_ptr<Communicator> split(int color, int key = 0);

  // Tensors on `device`, one of this rank's, travel between devices from now on, over NCCL; groups
  // that are split off later do the same. Collective. Throws Error on every rank where one has no
  // NCCL.
  void connect_devices(Device device);
  bool has_devices() const { return device_transport_ != nullptr; }

  // Makes a collective under way, and those to come, throw: from any thread.
  void interrupt() noexcept;

  // The step of training, for the table of an error.
  void set_step(int64_t step) { health_->progress().set_step(step); }
  uint64_t bytes_sent() const;
  uint64_t bytes_received() const;
  uint64_t collectives() const { return sequence_; }
  Transport& transport() { return *transport_; }

 private:
  // The transport that reaches a tensor, or its copy on the CPU.
  Transport& carrier(const Tensor& x) const;
  template <class F>
  void run(const Signature& signature, F&& body);
  void compare_signatures(const Signature& signature);
  void move_parts(Collective collective, const Tensor& all, const Tensor& part, int root);
  [[noreturn]] void end(const std::string& cause);

  std::shared_ptr<Transport> transport_, device_transport_;
  std::shared_ptr<Health> health_;
  CommunicatorOptions options_;
  std::string name_;
  uint64_t sequence_ = 0;
};

}  // namespace binade::dist
