// Transport: bytes between the ranks of a group, point to point.
//
// Operations come in groups, as with NCCL: the sends and receives between group_start() and
// group_end() are posted together, so that a ring in which everyone sends cannot lock up.
// group_end() returns at once with a ticket; wait(ticket) returns when that group and all before it
// are done. Until then the memory belongs to the transport. Messages from one rank to another
// arrive in the order in which they were posted, and both ends name the same size.
//
// One thread at a time uses a transport, but interrupt() may come from any.
#pragma once
#include <binade/dist/collective/reduce_op.h>
#include <binade/kernels/base/view.h>

#include <atomic>
#include <cstddef>
#include <memory>
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
  // Where the memory of messages is: the CPU, or the one device that this transport serves.
  virtual Device device() const { return {}; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Between group_start() and group_end(). Empty messages are left out on both sides. Throws Error
  // for a rank that there is not, or this rank itself.
  void send(int peer, const void* data, size_t bytes);
  void receive(int peer, void* data, size_t bytes);
  void group_start();
  uint64_t group_end();
  // Throws TransportError after timeout() seconds in which the group was not done, at once when a
  // peer is gone or the transport was interrupted. After an error nothing can be posted any more.
  void wait(uint64_t ticket);
  // What the calling thread does with the memory from now on comes after that group: on the CPU
  // this waits, on a device only the thread's current stream does.
  virtual void order(uint64_t ticket) { wait(ticket); }

  double timeout() const { return timeout_; }
  void set_timeout(double seconds) { timeout_ = seconds; }

  // Makes waits under way and to come throw: from any thread, without waiting for anything.
  void interrupt() noexcept;
  bool is_interrupted() const { return interrupted_.load(std::memory_order_acquire); }

  // A transport for some of the ranks, in this order: rank i of it is members[i] here. Called by
  // all members with the same list, in the same order beside their other splits.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members) = 0;

  // The all-reduce of the library behind this transport: contiguous memory of device(), in place.
  // Throws Error where there is none. MPI's may not be interrupted.
  virtual void library_all_reduce(const View& x, ReduceOp op);

  // At least this much memory of device() for a collective, 64-byte aligned. It is kept for the
  // next one, because fresh pages cost more than the sums that are made in them. Invalidates what
  // it returned before.
  virtual std::byte* workspace(size_t bytes);

  // Payload handed to send() and receive() so far.
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

 protected:
  Transport(int rank, int size) : rank_(rank), size_(size) {}

  // Starts the messages of the next group. Groups are numbered 1, 2, ...
  virtual void post(const std::vector<Message>& group) = 0;
  // Moves messages along, waiting some milliseconds at most while there is nothing to do. Returns
  // the number of the last group of which, and of all before, every message is done.
  virtual uint64_t progress() = 0;
  virtual void wake() noexcept {}  // ends the waiting of progress(), from any thread
  // After an error: lets go of the memory of messages under way.
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
