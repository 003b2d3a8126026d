#include <binade/dist/job/control_frames_internal.h>
#include <binade/dist/job/control_internal.h>
#include <binade/dist/job/process_exit_internal.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace binade::dist {
namespace {

constexpr double kVerdictSeconds = 2;       // the server needs at most one
constexpr double kServerAnswerSeconds = 2;  // for the server to say that the rendezvous has failed
constexpr size_t kMostCause = 60'000;       // bytes of a failure's text

}  // namespace

struct ControlClient::State {
  void join(const ControlAddress& server, int size, const ListenForData& listen);
  void read_roster(const ControlAddress& server, int size, double deadline);
  void run(ControlClient& client);
  void watch_library_calls(ControlClient& client);
  void set_verdict(ControlClient& client, const std::string& text);

  FrameSocket frames;
  std::mutex write_mutex;
  int rank = 0;
  ControlOptions options;
  Roster roster;
  Key data_key{};

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string verdict;
  double failed_at = 0;
  std::atomic<bool> stop{false}, said_goodbye{false};
  std::thread thread;
};

ControlClient::ControlClient(const ControlAddress& server, int rank, int size,
                             const ListenForData& listen, const ControlOptions& options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.rank = rank;
  s.options = options;
  try {
    s.join(server, size, listen);
  } catch (const RefusedError& error) {
    fail("rendezvous: ", error.what());
  } catch (const SocketError& error) {
    fail("rendezvous: rank ", rank, " of ", size, " did not reach rank 0 at ", server.host,
         " port ", server.port, " in ", options.rendezvous_seconds, " s: ", error.what());
  }
  s.thread = std::thread([this] { state_->run(*this); });
}

void ControlClient::State::join(const ControlAddress& server, int size,
                                const ListenForData& listen) {
  const double deadline = monotonic_seconds() + options.rendezvous_seconds;
  JoinRequest request{.pid = ::getpid()};
  put_text(request.host, host_name());
  const auto first = [&](const std::string& own_address) {
    const DataAddress data = listen ? listen(own_address) : DataAddress();
    request.data_port = data.port;
    put_text(request.address, data.address);
    return std::string(bytes_of(request));
  };
  const Claim claim{.purpose = Purpose::control, .size = size, .from = rank};
  Connector connector(server.host, server.port, server.key, claim, first);
  while (!connector.advance()) {
    if (monotonic_seconds() > deadline) {
      throw SocketError(connector.reason());
    }
    pollfd file = connector.file();
    ::poll(&file, 1, 5);
  }
  frames = connector.take();
  read_roster(server, size, deadline);
}

void ControlClient::State::read_roster(const ControlAddress& server, int size, double deadline) {
  // A roster and a verdict have a line for each rank.
  constexpr size_t kMostText = 1 << 17, kMostLine = 512;
  frames.set_most(kMostText + kMostLine * static_cast<size_t>(size));
  Frame frame = frames.read_until(deadline + kServerAnswerSeconds);
  while (frame.type == FrameType::query) {
    frame = frames.read_until(deadline + kServerAnswerSeconds);
  }
  if (frame.type != FrameType::roster) {
    throw CollectiveError(frame.bytes);
  }
  // The number of this job, then the lines.
  const size_t number = std::min(frame.bytes.size(), sizeof(Nonce));
  roster = parse_roster(std::string_view(frame.bytes).substr(number), size);
  const std::string_view key{reinterpret_cast<const char*>(server.key.data()), server.key.size()};
  data_key = derive_key(key, text("data ", frame.bytes.substr(0, number)));
}

ControlClient::~ControlClient() {
  state_->stop = true;
  state_->thread.join();
}

const Roster& ControlClient::roster() const { return state_->roster; }
const Key& ControlClient::data_key() const { return state_->data_key; }

std::string ControlClient::verdict() const {
  const std::lock_guard lock(state_->mutex);
  return state_->verdict;
}

std::string ControlClient::report(const std::string& cause) {
  State& s = *state_;
  if (verdict().empty()) {
    try {
      const std::lock_guard lock(s.write_mutex);
      s.frames.write(FrameType::failure, std::string_view(cause).substr(0, kMostCause));
    } catch (const SocketError&) {  // the thread notices it too
    }
  }
  {
    std::unique_lock lock(s.mutex);
    if (s.changed.wait_for(lock, std::chrono::duration<double>(kVerdictSeconds),
                           [&] { return !s.verdict.empty(); })) {
      return s.verdict;
    }
  }
  s.set_verdict(*this, rank_table(cause + "; rank 0, which knows where the others are, is silent",
                                  {{s.rank, progress().now(), "", ""}}));
  return verdict();
}

void ControlClient::say_goodbye() {
  State& s = *state_;
  s.said_goodbye = true;
  try {
    const std::lock_guard lock(s.write_mutex);
    s.frames.write(FrameType::goodbye);
  } catch (const SocketError&) {  // rank 0 has ended already and needs no goodbye
  }
}

void ControlClient::State::set_verdict(ControlClient& client, const std::string& text) {
  {
    const std::lock_guard lock(mutex);
    if (!verdict.empty()) {
      return;
    }
    verdict = text;
    failed_at = monotonic_seconds();
  }
  changed.notify_all();
  client.interrupt_transports();
}

// A waiting transport checks the timeout itself; MPI_Allreduce does not.
void ControlClient::State::watch_library_calls(ControlClient& client) {
  const RankProgress where = client.progress().now();
  if (where.inside && (where.signature.variant & 2) && where.seconds > options.late_seconds) {
    const std::lock_guard lock(write_mutex);
    frames.write(FrameType::failure,
                 text("rank ", rank, " could not finish #", where.sequence, " ",
                      to_string(where.signature), ": no answer in ", options.late_seconds, " s"));
  }
}

void ControlClient::State::run(ControlClient& client) {
  ::pthread_setname_np(::pthread_self(), kControlThread);
  RankProgress told;
  bool connected = true;
  // The interval of reports to rank 0, which can handle some thousand messages a second.
  const double tick = 0.01 * static_cast<double>(std::max<size_t>(1, roster.size() / 16));
  while (!stop) {
    if (!connected) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } else {
      try {
        bool asked = false;
        frames.socket().wait_readable(tick);
        Frame frame;
        while (frames.read(frame)) {
          asked |= frame.type == FrameType::query;
          if (frame.type == FrameType::verdict) {
            set_verdict(client, frame.bytes);
          }
        }
        const RankProgress now = client.progress().now();
        if (asked || now.sequence != told.sequence || now.inside != told.inside ||
            now.step != told.step) {
          const std::lock_guard lock(write_mutex);
          frames.write(FrameType::state, bytes_of(now));
          told = now;
        }
        if (client.verdict().empty()) {
          watch_library_calls(client);
        }
      } catch (const SocketError&) {
        connected = false;
        if (!said_goodbye) {
          set_verdict(client, rank_table("rank 0, which keeps the table of the others, has died",
                                         {{rank, client.progress().now(), "", ""}}));
        }
      }
    }
    const std::lock_guard lock(mutex);
    if (!verdict.empty() && monotonic_seconds() - failed_at > options.grace_seconds) {
      end_process(kJobFailed, text("binade: error: ", verdict, "\nbinade: rank ", rank,
                                   " did not end by itself in ", options.grace_seconds, " s\n"));
    }
  }
}

}  // namespace binade::dist
