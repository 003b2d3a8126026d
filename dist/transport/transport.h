// Transport: bytes between the ranks of a group, point to point.
//
// Operations come in groups, as in NCCL: all sends and receives between group_start() and
// group_end() are posted together, so that a ring in which every rank sends cannot deadlock.
// group_end() returns at once with a ticket; wait(ticket) returns when that group and all groups
// before it are done. Until then the memory belongs to the transport. Messages from one rank to
// another arrive in the order in which they were posted, and both ends must pass the same size.
// Connections and messages make progress while a thread is in group_end() or wait() of their
// transport; waiting for one group on two transports in different orders is a deadlock.
//
// Only one thread at a time may use a transport; interrupt() may be called from any thread.
#pragma once
#include <binade/dist/collective/reduce_op.h>
#include <binade/kernels/base/view.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace binade::dist {

// A message that cannot arrive: the peer is gone, late, or the transport was interrupted.
class TransportError : public Error {
 public:
  using Error::Error;
};

struct Message {
  bool is_send;
  int peer;
  std::byte* data;
  size_t bytes;
};

class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const = 0;  // "threads", "mpi", "tcp", "nccl"
  // Where the memory of messages must be: on the CPU, or on the one device of this transport.
  virtual Device device() const { return {}; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Call these between group_start() and group_end(). Empty messages are skipped on both sides.
  // Throw Error for a rank that does not exist, or this rank itself.
  void send(int peer, const void* data, size_t bytes);
  void receive(int peer, void* data, size_t bytes);
  void group_start();
  uint64_t group_end();
  // Throws TransportError if the group is not done after timeout() seconds, or at once if a peer is
  // gone or the transport was interrupted. After an error nothing can be posted any more.
  void wait(uint64_t ticket);
  // The calling thread's later accesses to the memory come after that group: on the CPU this call
  // waits, on a device only the thread's current stream waits.
  virtual void order(uint64_t ticket) { wait(ticket); }

  double timeout() const { return timeout_; }
  void set_timeout(double seconds) { timeout_ = seconds; }

  // Makes current and later waits throw. May be called from any thread; does not wait.
  void interrupt() noexcept;
  bool is_interrupted() const { return interrupted_.load(std::memory_order_acquire); }

  // A transport for some of the ranks, in this order: its rank i is members[i] here. All members
  // must call it with the same list, and in the same order as their other splits.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members) = 0;

  // The all-reduce of the library behind this transport: contiguous memory of device(), in place.
  // Throws Error if there is none. MPI's cannot be interrupted.
  virtual void library_all_reduce(const View& x, ReduceOp op);

  // At least `bytes` bytes of memory of device() for a collective, 64-byte aligned. It is kept for
  // the next one, because fresh pages cost more than the sums computed in them. Invalidates the
  // memory returned before.
  virtual std::byte* workspace(size_t bytes);

  // Payload passed to send() and receive() so far.
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

 protected:
  Transport(int rank, int size) : rank_(rank), size_(size) {}

  // Starts the messages of the next group. Groups are numbered 1, 2, ...
  virtual void post(const std::vector<Message>& group) = 0;
  // Makes progress with messages; waits at most some milliseconds if there is nothing to do.
  // Returns the number of the last group that is done together with all groups before it.
  virtual uint64_t progress() = 0;
  // Says which connection is missing and why, for the error of a timeout; empty: none is missing.
  virtual std::string missing() const { return {}; }
  virtual void wake() noexcept {}  // ends the waiting of progress(), from any thread
  // After an error: stops using the memory of messages in flight.
  virtual void abandon() noexcept {}

 private:
  void wait_until(uint64_t ticket);
  void add(bool is_send, int peer, std::byte* data, size_t bytes);

  int rank_, size_;
  double timeout_ = 60;
  std::vector<Message> group_;
  std::vector<std::byte> workspace_;
  bool in_group_ = false;
  uint64_t posted_ = 0, done_ = 0, bytes_sent_ = 0, bytes_received_ = 0;
  std::atomic<bool> interrupted_{false};
};

}  // namespace binade::dist
