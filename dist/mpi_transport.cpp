#include <binade/dist/mpi_transport.h>

#include <deque>

#ifdef BINADE_WITH_MPI
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <climits>
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

int size_of(MPI_Comm comm) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm comm) : Transport(rank_in(comm), size_of(comm)), comm_(comm) {}

  // Messages under way would make MPI_Comm_free wait; a transport that failed leaves it out.
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
      } else if (spin % 16 == 15) {
        sched_yield();  // there may be more ranks than cores
      }
    }
    return finished_;
  }

 private:
  static constexpr size_t kPart = size_t(1) << 30;
  static constexpr int kTag = 0, kSpins = 1000;

  MPI_Comm comm_;
  std::deque<std::vector<MPI_Request>> groups_;  // not done yet
  uint64_t finished_ = 0;
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
