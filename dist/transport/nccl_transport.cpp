// A non-blocking communicator of NCCL: calls return at once, and the transport polls their
// completion. So a waiting rank can check the timeout and interrupts at any time.
#include <binade/core/device/stream.h>
#include <binade/core/tensor/tensor.h>
#include <binade/dist/collective/ring.h>
#include <binade/dist/transport/nccl_api_internal.h>
#include <binade/dist/transport/nccl_transport.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace binade::dist {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kAbortSeconds = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

nccl::DataType nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return nccl::kFloat64;
    case DType::f32: return nccl::kFloat32;
    case DType::f16: return nccl::kFloat16;
    case DType::bf16: return nccl::kBfloat16;
    case DType::i64: return nccl::kInt64;
    case DType::i32: return nccl::kInt32;
    default: fail("all_reduce: NCCL sums f64, f32, f16, bf16, i64 and i32, got ", dtype);
  }
}

nccl::RedOp nccl_op(ReduceOp op) {
  constexpr nccl::RedOp kOp[] = {nccl::kSum, nccl::kAvg, nccl::kMax, nccl::kMin};
  return kOp[static_cast<int>(op)];
}

// Runs a call that may never return on a separate thread and waits at most some seconds for it.
template <class F>
void run_bounded(double seconds, F call) noexcept {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  try {
    const auto shared = std::make_shared<Shared>();
    std::thread([shared, call] {
      call();
      const std::lock_guard lock(shared->mutex);
      shared->done = true;
      shared->changed.notify_all();
    }).detach();
    std::unique_lock lock(shared->mutex);
    shared->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return shared->done; });
  } catch (const std::exception&) {  // no thread available: the communicator leaks
  }
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(std::shared_ptr<Transport> meeting, Device device)
      : Transport(meeting->rank(), meeting->size()),
        api_(nccl::api()),
        meeting_(std::move(meeting)),
        device_(device),
        stream_(device, Stream::high) {
    set_timeout(meeting_->timeout());
    guarded([&] { connect(); });
  }

  ~NcclTransport() override {
    if (comm_) {
      run_bounded(kAbortSeconds, [&api = api_, comm = comm_] { api.CommDestroy(comm); });
    }
  }

  const char* name() const override { return "nccl"; }
  Device device() const override { return device_; }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    return std::make_unique<NcclTransport>(meeting_->split(members), device_);
  }

  void order(uint64_t ticket) override {
    if (ticket > finished_) {
      Stream::current(device_).wait(groups_[static_cast<size_t>(ticket - finished_ - 1)]);
    }
  }

  void library_all_reduce(const View& x, ReduceOp op) override {
    guarded([&] {
      const DeviceGuard guard(device_);
      follow_current_stream();
      call("ncclAllReduce",
           api_.AllReduce(x.data, x.data, static_cast<size_t>(x.numel), nccl_type(x.dtype),
                          nccl_op(op), comm_, stream_.handle()));
      Event done(device_);
      done.record(stream_);
      until([&] {
        check_health();
        return done.done();
      });
    });
  }

  std::byte* workspace(size_t bytes) override {
    if (!workspace_.defined() || static_cast<size_t>(workspace_.numel()) < bytes) {
      workspace_ = {};
      workspace_ = empty({static_cast<int64_t>(bytes)}, DType::u8, device_);
    }
    return workspace_.view().data;
  }

 protected:
  void post(const std::vector<Message>& group) override {
    guarded([&] {
      const DeviceGuard guard(device_);
      follow_current_stream();
      if (!group.empty()) {
        call("ncclGroupStart", api_.GroupStart());
        for (const Message& m : group) {
          m.is_send
              ? call("ncclSend",
                     api_.Send(m.data, m.bytes, nccl::kUint8, m.peer, comm_, stream_.handle()))
              : call("ncclRecv",
                     api_.Recv(m.data, m.bytes, nccl::kUint8, m.peer, comm_, stream_.handle()));
        }
        call("ncclGroupEnd", api_.GroupEnd());
      }
      groups_.emplace_back(device_).record(stream_);
    });
  }

  uint64_t progress() override {
    bool any = false;
    while (!groups_.empty() && groups_.front().done()) {
      groups_.pop_front();
      ++finished_;
      any = true;
    }
    if (!any && !groups_.empty()) {
      check_health();
      pause();
    }
    idle_ = any ? 0 : idle_;
    return finished_;
  }

  // NCCL's kernels wait on the device for a rank that is gone; only an abort ends them.
  void abandon() noexcept override {
    if (comm_) {
      run_bounded(kAbortSeconds, [&api = api_, comm = comm_] { api.CommAbort(comm); });
      comm_ = nullptr;
    }
    groups_.clear();
  }

 private:
  void connect() {
    nccl::UniqueId id{};
    if (rank() == 0) {
      call("ncclGetUniqueId", api_.GetUniqueId(&id));
    }
    ring_broadcast(*meeting_, view_of(&id, DType::u8, {static_cast<int64_t>(sizeof id)}), 0);
    const DeviceGuard guard(device_);
    nccl::Config config;
    const nccl::Result result = api_.CommInitRankConfig(&comm_, size(), id, rank(), &config);
    call("ncclCommInitRankConfig", result);
  }

  // Runs `body`; after an error it aborts all work of the transport.
  template <class F>
  void guarded(F&& body) {
    try {
      body();
    } catch (...) {
      interrupt();
      abandon();
      throw;
    }
  }

  // Messages posted from now on run after the work that the calling thread has queued so far.
  void follow_current_stream() {
    Event queued(device_);
    queued.record();
    stream_.wait(queued);
  }

  // Returns when the call has completed; throws if it failed.
  void call(const char* what, nccl::Result result) {
    until([&] {
      if (result == nccl::kInProgress && comm_) {
        check_result("ncclCommGetAsyncError", api_.CommGetAsyncError(comm_, &result));
      }
      return result != nccl::kInProgress;
    });
    check_result(what, result);
  }

  void check_health() {
    nccl::Result state = nccl::kSuccess;
    check_result("ncclCommGetAsyncError", api_.CommGetAsyncError(comm_, &state));
    if (state != nccl::kInProgress) {
      check_result("nccl", state);
    }
  }

  void check_result(const char* what, nccl::Result result) const {
    if (result != nccl::kSuccess) {
      const char* detail = api_.GetLastError(comm_);
      throw TransportError(text(what, ": ", api_.GetErrorString(result),
                                detail && *detail ? text(" (", detail, ")") : std::string()));
    }
  }

  template <class F>
  void until(F&& done) {
    const auto start = Clock::now();
    for (idle_ = 0; !done(); pause()) {
      if (is_interrupted() || meeting_->is_interrupted()) {  // health does not watch this one yet
        throw TransportError("the transport was interrupted");
      }
      if (seconds_since(start) > timeout()) {
        throw TransportError(text("no answer in ", timeout(), " s"));
      }
    }
  }

  // Short at first: most collectives take less than a millisecond.
  void pause() {
    constexpr int kEager = 200;
    if (++idle_ < kEager) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const nccl::Api& api_;
  std::shared_ptr<Transport> meeting_;
  const Device device_;
  Stream stream_;
  nccl::Comm comm_ = nullptr;
  std::deque<Event> groups_;  // end of each unfinished group
  uint64_t finished_ = 0;
  int idle_ = 0;
  Tensor workspace_;
};

}  // namespace

std::string nccl_missing() { return nccl::missing(); }
std::string nccl_path() { return nccl::path(); }

std::unique_ptr<Transport> make_nccl_transport(std::shared_ptr<Transport> meeting, Device device) {
  check(!device.is_cpu(), "nccl: got the cpu, expected a cuda device");
  return std::make_unique<NcclTransport>(std::move(meeting), device);
}

}  // namespace binade::dist
