#include <binade/dist/transport/mpi_transport.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/copy/combine.h>

#include <deque>

#ifdef BINADE_WITH_MPI
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#endif

namespace binade::dist {

#ifdef BINADE_WITH_MPI
namespace {

void check_mpi(int status, const char* call) {
  if (status != MPI_SUCCESS) {
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(status, reason, &length);
    throw TransportError(text(call, ": ", static_cast<const char*>(reason)));
  }
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int ranks_of(MPI_Comm comm) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

bool is_crowded(MPI_Comm comm) {
  MPI_Comm machine;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  const int ranks = ranks_of(machine);
  MPI_Comm_free(&machine);
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return ranks > kernels::cpu_limit().of(cores);
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::max: return MPI_MAX;
    case ReduceOp::min: return MPI_MIN;
    default: return MPI_SUM;
  }
}

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return MPI_DOUBLE;
    case DType::f32: return MPI_FLOAT;
    case DType::i64: return MPI_INT64_T;
    case DType::i32: return MPI_INT32_T;
    default:
      fail("all_reduce: MPI has no ", dtype, ", expected f64, f32, i64 or i32; use the ring");
  }
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm comm)
      : Transport(rank_in(comm), ranks_of(comm)), comm_(comm), crowded_(is_crowded(comm)) {}

  // Messages in flight would make MPI_Comm_free wait, so a failed transport does not call it.
  ~MpiTransport() override {
    int finished = 0;
    MPI_Finalized(&finished);
    if (!finished && groups_.empty() && !is_interrupted()) {
      MPI_Comm_free(&comm_);
    }
  }

  const char* name() const override { return "mpi"; }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    MPI_Group all, some;
    check_mpi(MPI_Comm_group(comm_, &all), "MPI_Comm_group");
    check_mpi(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some),
              "MPI_Group_incl");
    MPI_Comm part;
    check_mpi(MPI_Comm_create_group(comm_, some, 0, &part), "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN);
    return std::make_unique<MpiTransport>(part);
  }

  void library_all_reduce(const View& x, ReduceOp op) override {
    const MPI_Datatype type = mpi_type(x.dtype);
    const auto width = static_cast<int64_t>(size_of(x.dtype));
    constexpr int64_t kMost = int64_t(1) << 28;  // elements per call
    for (int64_t begin = 0; begin < x.numel; begin += kMost) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, x.data + begin * width,
                              static_cast<int>(std::min(kMost, x.numel - begin)), type, mpi_op(op),
                              comm_),
                "MPI_Allreduce");
    }
    if (op == ReduceOp::avg && x.numel > 0) {
      kernels::cpu::combine({.op = kernels::CombineOp::sum,
                             .received = kNoView,
                             .x = x,
                             .y = x,
                             .after = static_cast<double>(size())});
    }
  }

 protected:
  void post(const std::vector<Message>& group) override {
    auto& requests = groups_.emplace_back();
    for (const Message& message : group) {
      for (size_t begin = 0; begin < message.bytes; begin += kPart) {
        const int bytes = static_cast<int>(std::min(kPart, message.bytes - begin));
        std::byte* data = message.data + begin;
        MPI_Request& request = requests.emplace_back();
        check_mpi(message.is_send
                      ? MPI_Isend(data, bytes, MPI_BYTE, message.peer, kTag, comm_, &request)
                      : MPI_Irecv(data, bytes, MPI_BYTE, message.peer, kTag, comm_, &request),
                  message.is_send ? "MPI_Isend" : "MPI_Irecv");
      }
    }
  }

  uint64_t progress() override {
    for (int spin = 0; spin < kSpins && !groups_.empty(); ++spin) {
      auto& requests = groups_.front();
      int done = 0;
      check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                            MPI_STATUSES_IGNORE),
                "MPI_Testall");
      if (done) {
        groups_.pop_front();
        ++finished_;
        spin = -1;
        idle_ = 0;
      }
    }
    if (!groups_.empty() && (crowded_ || ++idle_ > kPatience)) {
      sched_yield();
    }
    return finished_;
  }

 private:
  static constexpr size_t kPart = size_t(1) << 30;
  static constexpr int kTag = 0, kSpins = 1000, kPatience = 20;

  MPI_Comm comm_;
  std::deque<std::vector<MPI_Request>> groups_;  // not done yet
  uint64_t finished_ = 0;
  int idle_ = 0;        // consecutive calls of progress() without any
  const bool crowded_;  // more ranks than cores on this machine: waiting must not spin
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<Transport> make_mpi_transport() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) {
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  }
  int provided = 0;
  check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  check(provided == MPI_THREAD_MULTIPLE,
        "mpi: this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE)");
  MPI_Comm comm;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::make_unique<MpiTransport>(comm);
}

void finish_mpi() {
  int initialized = 0, finished = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finished);
  if (initialized && !finished) {
    MPI_Finalize();
  }
}

#else

bool has_mpi() { return false; }

std::unique_ptr<Transport> make_mpi_transport() {
  fail("mpi: this build has no MPI; install libopenmpi-dev and configure with -DBINADE_MPI=ON");
}

void finish_mpi() {}

#endif

}  // namespace binade::dist
