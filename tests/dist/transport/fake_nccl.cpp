// A fake libnccl.so.2 for threads or processes of one machine, using named pipes and the memory of
// the emulated device. Like the real library it does not block: a call is in progress until its
// messages have arrived. Work queued on a stream runs before its messages are sent. nccl_fault.h
// plants faults.
#include <binade/dist/transport/nccl_api_internal.h>
#include <binade/kernels/base/half.h>
#include <binade/kernels/host/cuda_runtime.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tests/dist/transport/nccl_fault.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace binade::dist::nccl;

constexpr Result kInternalError{3}, kRemoteError{6};

struct Message {
  bool is_send;
  int peer;
  char* data;
  size_t bytes;
};

struct Reduction {
  const void* from;
  void* to;
  size_t count;
  DataType type;
  RedOp op;
};

struct Job {
  std::vector<Message> messages;
  Reduction reduce{};  // used if `to` is not null
};

size_t width_of(DataType type) {
  switch (type) {
    case kInt64:
    case kFloat64: return 8;
    case kInt32:
    case kFloat32: return 4;
    case kFloat16:
    case kBfloat16: return 2;
    default: return 1;
  }
}

template <class T, class Wide>
void reduce_values(const Reduction& r, const std::vector<std::vector<char>>& ranks) {
  for (size_t i = 0; i < r.count; ++i) {
    Wide result{};
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const Wide value = static_cast<Wide>(reinterpret_cast<const T*>(ranks[rank].data())[i]);
      result = rank == 0      ? value
               : r.op == kMax ? std::max(result, value)
               : r.op == kMin ? std::min(result, value)
                              : result + value;
    }
    if (r.op == kAvg) {
      result = result / static_cast<Wide>(ranks.size());
    }
    static_cast<T*>(r.to)[i] = static_cast<T>(result);
  }
}

void reduce_values(const Reduction& r, const std::vector<std::vector<char>>& ranks) {
  switch (r.type) {
    case kFloat64: return reduce_values<double, double>(r, ranks);
    case kFloat32: return reduce_values<float, double>(r, ranks);
    case kInt64: return reduce_values<int64_t, int64_t>(r, ranks);
    case kInt32: return reduce_values<int32_t, int64_t>(r, ranks);
    case kFloat16: return reduce_values<binade::half, float>(r, ranks);
    case kBfloat16: return reduce_values<binade::bfloat16, float>(r, ranks);
    default: return reduce_values<uint8_t, int64_t>(r, ranks);
  }
}

class Communicator {
 public:
  Communicator(std::string folder, int rank, int size)
      : folder_(std::move(folder)),
        rank_(rank),
        size_(size),
        in_(static_cast<size_t>(size), -1),
        out_(static_cast<size_t>(size), -1),
        thread_([this] { run(); }) {}

  ~Communicator() {
    stop_ = true;
    thread_.join();
    for (int peer = 0; peer < size_; ++peer) {
      ::close(in_[static_cast<size_t>(peer)]);
      ::close(out_[static_cast<size_t>(peer)]);
      ::unlink(pipe(peer, rank_).c_str());
    }
    ::rmdir(folder_.c_str());  // succeeds for the last rank
  }

  int rank() const { return rank_; }
  Result state() const { return stalled_ ? kInProgress : static_cast<Result>(state_.load()); }
  void fail() { state_ = kRemoteError; }
  void stall() { stalled_ = true; }

  void add(Job job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    int ready = kSuccess;
    state_.compare_exchange_strong(ready, kInProgress);
  }

 private:
  std::string pipe(int from, int to) const {
    return folder_ + "/" + std::to_string(from) + "-" + std::to_string(to);
  }

  // All pipes must exist before any can be written.
  void connect() {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) {
        ::mkfifo(pipe(peer, rank_).c_str(), 0600);
        in_[static_cast<size_t>(peer)] =
            ::open(pipe(peer, rank_).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
      }
    }
    for (int peer = 0; peer < size_; ++peer) {
      int& file = out_[static_cast<size_t>(peer)];
      while (peer != rank_ && file < 0 && !stop_) {
        file = ::open(pipe(rank_, peer).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        pause();
      }
    }
  }

  // A rank is connected when all ranks have opened its pipes, so none can leave before that.
  void greet() {
    std::vector<char> bytes(2 * static_cast<size_t>(size_));
    std::vector<Message> messages;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) {
        messages.push_back({true, peer, &bytes[2 * static_cast<size_t>(peer)], 1});
        messages.push_back({false, peer, &bytes[2 * static_cast<size_t>(peer) + 1], 1});
      }
    }
    move(std::move(messages));
  }

  void run() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    connect();
    greet();
    while (!stop_) {
      Job job;
      {
        const std::lock_guard lock(mutex_);
        if (jobs_.empty()) {
          int busy = kInProgress;
          state_.compare_exchange_strong(busy, kSuccess);
        } else {
          job = std::move(jobs_.front());
          jobs_.pop_front();
        }
      }
      if (job.messages.empty() && !job.reduce.to) {
        pause();
      } else if (job.reduce.to) {
        all_reduce(job.reduce);
      } else {
        move(std::move(job.messages));
      }
    }
  }

  void all_reduce(const Reduction& r) {
    const size_t bytes = r.count * width_of(r.type);
    std::vector<std::vector<char>> ranks(static_cast<size_t>(size_), std::vector<char>(bytes));
    std::vector<char> mine(bytes);
    std::memcpy(mine.data(), r.from, bytes);
    std::vector<Message> messages;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) {
        messages.push_back({true, peer, mine.data(), bytes});
        messages.push_back({false, peer, ranks[static_cast<size_t>(peer)].data(), bytes});
      }
    }
    move(std::move(messages));
    ranks[static_cast<size_t>(rank_)] = mine;
    if (!stop_) {
      reduce_values(r, ranks);
    }
  }

  // Moves all messages at once; messages to one peer, and from one peer, stay in order.
  void move(std::vector<Message> messages) {
    size_t left = messages.size();
    while (left > 0 && !stop_) {
      bool any = false;
      std::vector<bool> blocked(2 * static_cast<size_t>(size_));
      for (Message& m : messages) {
        const size_t line = 2 * static_cast<size_t>(m.peer) + m.is_send;
        if (m.bytes == 0 || blocked[line]) {
          continue;
        }
        const int file = (m.is_send ? out_ : in_)[static_cast<size_t>(m.peer)];
        const auto moved =
            m.is_send ? ::write(file, m.data, m.bytes) : ::read(file, m.data, m.bytes);
        if (moved < 0 && errno == EPIPE) {
          fail();
          return;
        }
        if (moved > 0) {
          any = true;
          m.data += moved;
          m.bytes -= static_cast<size_t>(moved);
          left -= m.bytes == 0;
        }
        blocked[line] = m.bytes > 0;
      }
      if (!any) {
        pause();
      }
    }
  }

  static void pause() { ::usleep(50); }

  const std::string folder_;
  const int rank_, size_;
  std::vector<int> in_, out_;
  std::atomic<int> state_{kInProgress};
  std::atomic<bool> stop_{false}, stalled_{false};
  std::mutex mutex_;
  std::deque<Job> jobs_;
  std::thread thread_;
};

Communicator& of(Comm comm) { return *static_cast<Communicator*>(comm); }

// The calls of a thread between GroupStart and GroupEnd.
struct Group {
  int depth = 0;
  std::map<Communicator*, std::pair<Job, Stream>> jobs;
};
thread_local Group group;
thread_local int rank_of_thread = -1, calls_of_thread = 0;
thread_local Communicator* known = nullptr;

// Counts a call and returns its result.
Result count_call() {
  const testing::NcclFault& fault = testing::nccl_fault();
  if (fault.kind.empty() || fault.rank != rank_of_thread || ++calls_of_thread < fault.call) {
    return kSuccess;
  }
  const bool first = calls_of_thread == fault.call;
  if (fault.kind == "hang" && first) {
    testing::hang();
  }
  testing::set_abort_hangs(fault.kind == "abort");
  if ((fault.kind == "async" || fault.kind == "abort") && known) {
    known->fail();
    return kSuccess;
  }
  if (fault.kind == "progress") {
    known ? known->stall() : static_cast<void>(0);
    return kInProgress;
  }
  return first ? kInternalError : kSuccess;
}

Result add(Comm comm, Stream stream, const Message* message, const Reduction* reduction) {
  if (const Result planted = count_call(); planted != kSuccess) {
    return planted;
  }
  Job single;
  Job& job = group.depth > 0 ? group.jobs[&of(comm)].first : single;
  if (message) {
    job.messages.push_back(*message);
  } else {
    job.reduce = *reduction;
  }
  if (group.depth > 0) {
    group.jobs[&of(comm)].second = stream;
    return kSuccess;
  }
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  of(comm).add(std::move(single));
  return kInProgress;
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

Result ncclGetUniqueId(UniqueId* id) {
  rank_of_thread = 0;
  if (const Result planted = count_call(); planted != kSuccess) {
    return planted;
  }
  const char* folder = std::getenv("TMPDIR");
  std::snprintf(id->bytes, sizeof id->bytes, "%s/fake-nccl-XXXXXX", folder ? folder : "/tmp");
  return ::mkdtemp(id->bytes) ? kSuccess : kInternalError;
}

Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  rank_of_thread = rank;
  if (const Result planted = count_call(); planted != kSuccess) {
    return planted;
  }
  if (config->magic != 0xcafebeef || config->size < sizeof(Config) || config->blocking != 0) {
    return Result{4};
  }
  *comm = known = new Communicator(id.bytes, rank, ranks);
  return kInProgress;
}

Result ncclCommFinalize(Comm) { return kSuccess; }

Result ncclCommDestroy(Comm comm) {
  testing::hang_in_abort();
  delete &of(comm);
  return kSuccess;
}

Result ncclCommAbort(Comm comm) { return ncclCommDestroy(comm); }

Result ncclCommGetAsyncError(Comm comm, Result* error) {
  *error = of(comm).state();
  return kSuccess;
}

const char* ncclGetErrorString(Result result) {
  return result == kSuccess       ? "no error"
         : result == kRemoteError ? "remote process exited or there was a network error"
                                  : "internal error";
}

const char* ncclGetLastError(Comm) { return ""; }

Result ncclGroupStart() {
  ++group.depth;
  return count_call();
}

Result ncclGroupEnd() {
  const Result planted = count_call();
  if (planted != kSuccess || --group.depth > 0) {
    return planted;
  }
  for (auto& entry : group.jobs) {
    cudaStreamSynchronize(static_cast<cudaStream_t>(entry.second.second));
    entry.first->add(std::move(entry.second.first));
  }
  group.jobs.clear();
  return kInProgress;
}

Result ncclSend(const void* data, size_t count, DataType type, int peer, Comm comm, Stream stream) {
  const Message message{true, peer, static_cast<char*>(const_cast<void*>(data)),
                        count * width_of(type)};
  return add(comm, stream, &message, nullptr);
}

Result ncclRecv(void* data, size_t count, DataType type, int peer, Comm comm, Stream stream) {
  const Message message{false, peer, static_cast<char*>(data), count * width_of(type)};
  return add(comm, stream, &message, nullptr);
}

Result ncclAllReduce(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm,
                     Stream stream) {
  const Reduction reduction{from, to, count, type, op};
  return add(comm, stream, nullptr, &reduction);
}

}  // extern "C"
