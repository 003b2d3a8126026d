#include <binade/dist/job/control_frames_internal.h>
#include <binade/dist/job/control_internal.h>
#include <binade/dist/job/process_exit_internal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace binade::dist {
namespace {

constexpr double kVerdictSeconds = 2.5;  // the server needs at most one

std::string host_name() {
  char name[64] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

void put(char (&to)[64], const std::string& from) { std::strncpy(to, from.c_str(), sizeof to - 1); }

}  // namespace

struct ControlClient::State {
  void run(ControlClient& client);
  void watch_library_calls(ControlClient& client);
  void set_verdict(ControlClient& client, const std::string& text);

  FrameSocket frames;
  std::mutex write_mutex;
  int rank = 0;
  ControlOptions options;
  Roster roster;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string verdict;
  double failed_at = 0;
  std::atomic<bool> stop{false}, said_goodbye{false};
  std::thread thread;
};

ControlClient::ControlClient(const ControlAddress& server, int rank, int size, int data_port,
                             const ControlOptions& options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.rank = rank;
  s.options = options;
  JoinRequest request{rank, size, ::getpid(), data_port, "", ""};
  put(request.host, host_name());
  put(request.secret, server.secret);
  const double deadline = monotonic_seconds() + options.rendezvous_seconds;
  try {
    s.frames = FrameSocket(connect_to(server.host, server.port, deadline));
    s.frames.write(FrameType::hello, bytes_of(request));
    Frame frame = s.frames.read_until(deadline + 5);
    while (frame.type == FrameType::query) {
      frame = s.frames.read_until(deadline + 5);
    }
    if (frame.type != FrameType::roster) {
      throw CollectiveError(frame.bytes);
    }
    s.roster = parse_roster(frame.bytes, server.host, size);
  } catch (const SocketError& error) {
    fail("rendezvous: rank ", rank, " of ", size, " did not reach rank 0 at ", server.host,
         " port ", server.port, " in ", options.rendezvous_seconds, " s: ", error.what());
  }
  s.thread = std::thread([this] { state_->run(*this); });
}

ControlClient::~ControlClient() {
  state_->stop = true;
  state_->thread.join();
}

const Roster& ControlClient::roster() const { return state_->roster; }

std::string ControlClient::verdict() const {
  const std::lock_guard lock(state_->mutex);
  return state_->verdict;
}

std::string ControlClient::report(const std::string& cause) {
  State& s = *state_;
  if (verdict().empty()) {
    try {
      const std::lock_guard lock(s.write_mutex);
      s.frames.write(FrameType::failure, cause);
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
