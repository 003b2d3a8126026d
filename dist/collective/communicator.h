// Communicator: the collectives of a group of ranks, on tensors.
//
// All ranks of the group must call the same collectives in the same order. Every call carries a
// sequence number and a signature (what, dtype, elements, operation), which neighbours compare
// before data move. If a call differs, or a rank is dead, gone or late, the job ends on every rank
// with a CollectiveError that shows where each rank is. Every further call throws it too. Only one
// thread at a time may call a communicator.
//
// Tensors on a device other than the CPU go through host memory, unless connect_devices() has
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
  bool f32_carry = false;  // for the ring, with f16 and bf16
  int64_t piece_bytes = RingOptions{}.piece_bytes;
};

struct CommunicatorOptions {
  double timeout = 60;         // seconds in which a collective must make progress
  double first_timeout = 600;  // the same for the first one, since ranks start at different times
  // For run_threads() and World: messages are delayed as over such a link, for experiments.
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
  // Returns [n, sizes of x...], ordered by rank. Any dtype.
  Tensor all_gather(const Tensor& x);
  // scatter: part = this rank's part of rank root's `all`, which has n equal parts. gather: rank
  // root's `all` = the parts of all ranks. On other ranks `all` is ignored. Any dtype.
  void scatter(const Tensor& all, const Tensor& part, int root = 0);
  void gather(const Tensor& part, const Tensor& all, int root = 0);
  // From x [n, ...] to [...]: this rank's part of the reduction.
  Tensor reduce_scatter(const Tensor& x, ReduceOp op = ReduceOp::sum,
                        const AllReduceOptions& options = {});
  void barrier();
  // x [n] in place: elements [bounds[r], bounds[r + 1]) belong to rank r (see RankGroup). This
  // rank's elements become the reduction, the others stay unchanged.
  void reduce_scatter_ranges(const Tensor& x, std::span<const int64_t> bounds, ReduceOp op,
                             const AllReduceOptions& options = {});
  void gather_ranges(const Tensor& x, std::span<const int64_t> bounds) override;
  void sum(const Tensor& x) override { all_reduce(x); }

  // Groups the ranks that pass the same color, ordered by key and rank. color -1: no group, returns
  // nullptr. Collective over this group.
  std::unique_ptr<Communicator> split(int color, int key = 0);

  // From now on tensors on `device`, a device of this rank, are transferred between devices by
  // NCCL; groups split off later do the same. Collective. Throws Error on every rank if one has no
  // NCCL.
  void connect_devices(Device device);
  bool has_devices() const { return device_transport_ != nullptr; }

  // Makes the current collective and all later ones throw. May be called from any thread.
  void interrupt() noexcept;

  // The training step, for the table in an error.
  void set_step(int64_t step) { health_->progress().set_step(step); }
  uint64_t bytes_sent() const;
  uint64_t bytes_received() const;
  uint64_t collectives() const { return sequence_; }
  Transport& transport() { return *transport_; }

 private:
  // The transport that can access a tensor, or else its copy on the CPU.
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
