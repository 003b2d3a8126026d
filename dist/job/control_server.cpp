#include <binade/dist/job/control_frames_internal.h>
#include <binade/dist/job/control_internal.h>
#include <poll.h>
#include <pthread.h>

#include <thread>
#include <vector>

namespace binade::dist {
namespace {

constexpr double kRankAnswerSeconds = 1;  // a living rank answers a query within this time
constexpr double kDrainSeconds = 1;       // ranks must read the verdict within this time
constexpr double kOwnRankSeconds = 10;    // rank 0, in the same process, must join within this time
constexpr size_t kMostBytes = 1 << 16;    // of a message of a rank: its state, or a text

struct Member {
  FrameSocket frames;
  Peer peer;
  RankProgress where;
  bool joined = false, answered = false;
  std::string state;  // "left", "dead"; empty: alive
  bool alive() const { return joined && state.empty(); }
};

}  // namespace

struct ControlServer::State {
  State(Socket socket, int size, const Key& key, const ControlOptions& o)
      : own_port(socket.port()), listener(std::move(socket), key, Purpose::control, 0), options(o) {
    members.resize(static_cast<size_t>(size));
    fill_random(job_number);
    start = monotonic_seconds();
  }

  void serve();
  void wait_for_messages() const;
  void watch_clock();
  void join(Caller caller);
  void send_roster();
  void hear(size_t rank);
  void lose(size_t rank);
  void collect_answers();
  void fail(const std::string& cause);
  void send(size_t rank, FrameType type, std::string_view bytes);
  template <class F>
  std::string ranks_where(F&& wanted) const;
  bool all_gone() const;

  const int own_port;
  AuthenticatedListener listener;
  Nonce job_number{};
  ControlOptions options;
  std::vector<Member> members;
  size_t joined = 0;
  bool heard_own_rank = false;
  double start, failed_at = 0, rank_zero_left_at = 0;
  std::string verdict, pending;  // pending: the cause of a failure not yet announced
  std::thread thread;
};

ControlServer::ControlServer(Socket listener, int size, const Key& key,
                             const ControlOptions& options)
    : state_(std::make_shared<State>(std::move(listener), size, key, options)) {
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
}

ControlServer::~ControlServer() { wait(); }

std::string ControlServer::wait() {
  if (state_->thread.joinable()) {
    state_->thread.join();
  }
  return state_->verdict;
}

int ControlServer::port() const { return state_->own_port; }

void ControlServer::State::serve() {
  ::pthread_setname_np(::pthread_self(), kControlThread);
  for (;;) {
    wait_for_messages();
    for (Caller& caller : listener.advance()) {
      try {
        join(std::move(caller));
      } catch (const SocketError&) {  // it is gone, or no rank
      }
    }
    for (size_t rank = 0; rank < members.size(); ++rank) {
      hear(rank);
    }
    watch_clock();
    if (!pending.empty() && verdict.empty()) {
      fail(pending);
    }
    const double wait = heard_own_rank ? kDrainSeconds : kOwnRankSeconds;
    if ((joined == members.size() && all_gone()) ||
        (!verdict.empty() && monotonic_seconds() - failed_at > wait)) {
      return;
    }
  }
}

void ControlServer::State::wait_for_messages() const {
  constexpr int kMilliseconds = 50;
  std::vector<pollfd> files;
  for (const Member& member : members) {
    if (member.frames.socket()) {
      files.push_back({member.frames.socket().file(), POLLIN, 0});
    }
  }
  listener.add_files(files);
  ::poll(files.data(), files.size(), kMilliseconds);
}

void ControlServer::State::watch_clock() {
  if (!verdict.empty() || !pending.empty()) {
    return;
  }
  const double now = monotonic_seconds();
  if (joined < members.size()) {
    if (now - start > options.rendezvous_seconds) {
      pending = text("rendezvous: ", ranks_where([](const Member& m) { return !m.joined; }), " of ",
                     members.size(), " did not come in ", options.rendezvous_seconds, " s");
    }
  } else if (members[0].state == "left") {
    rank_zero_left_at = rank_zero_left_at > 0 ? rank_zero_left_at : now;
    if (now - rank_zero_left_at > options.late_seconds) {
      pending =
          text("rank 0 has ended, but ", ranks_where([](const Member& m) { return m.alive(); }),
               " did not in the ", options.late_seconds, " s since");
    }
  }
}

void ControlServer::State::join(Caller caller) {
  FrameSocket& frames = caller.frames;
  const auto refuse = [&](const std::string& reason) { frames.write(FrameType::refused, reason); };
  const auto request = value_of<JoinRequest>(caller.message);
  const auto [purpose, got_size, rank, to, group] = caller.claim;
  const int size = static_cast<int>(members.size());
  heard_own_rank |= rank == 0;
  if (!verdict.empty()) {
    return refuse(verdict);
  }
  if (got_size != size || rank < 0 || rank >= size) {
    pending = text("rendezvous: got rank ", rank, " of ", got_size, ", expected ranks of ", size);
    return refuse(pending);
  }
  Member& member = members[static_cast<size_t>(rank)];
  if (member.joined) {
    pending =
        text("rendezvous: rank ", rank, " came twice: pid ", member.peer.pid, " and ", request.pid);
    return refuse(pending);
  }
  frames.set_most(kMostBytes);
  member.peer = {request.host, request.address, request.data_port, request.pid};
  member.frames = std::move(frames);
  member.joined = true;
  if (++joined == members.size()) {
    listener.close();
    send_roster();
  }
}

void ControlServer::State::send_roster() {
  Roster roster;
  for (const Member& member : members) {
    roster.push_back(member.peer);
  }
  const std::string lines = text(bytes_of(job_number), roster_text(roster));
  for (size_t rank = 0; rank < members.size(); ++rank) {
    send(rank, FrameType::roster, lines);
  }
}

void ControlServer::State::send(size_t rank, FrameType type, std::string_view bytes) {
  if (!members[rank].frames.socket()) {
    return;
  }
  try {
    members[rank].frames.write(type, bytes);
  } catch (const SocketError&) {
    lose(rank);
  }
}

void ControlServer::State::hear(size_t rank) {
  Member& member = members[rank];
  try {
    Frame frame;
    while (member.frames.socket() && member.frames.read(frame)) {
      if (frame.type == FrameType::state) {
        member.where = value_of<RankProgress>(frame.bytes);
        member.answered = true;
      } else if (frame.type == FrameType::failure && pending.empty()) {
        pending = frame.bytes;
      } else if (frame.type == FrameType::goodbye) {
        member.state = "left";
      }
    }
  } catch (const SocketError&) {
    lose(rank);
  }
}

void ControlServer::State::lose(size_t rank) {
  Member& member = members[rank];
  member.frames.socket().close();
  if (member.alive()) {
    member.state = "dead";
    if (pending.empty()) {
      const RankProgress& where = member.where;
      pending = text("rank ", rank, " (pid ", member.peer.pid, " on ", member.peer.host,
                     ") has died ", where.inside ? "in" : "after", " #", where.sequence, " ",
                     to_string(where.signature));
      if (where.sequence == 0) {
        pending = text("rank ", rank, " (pid ", member.peer.pid, " on ", member.peer.host,
                       ") has died before its first collective");
      }
    }
  }
}

void ControlServer::State::collect_answers() {
  for (size_t rank = 0; rank < members.size(); ++rank) {
    members[rank].answered = false;
    send(rank, FrameType::query, {});
  }
  const double deadline = monotonic_seconds() + kRankAnswerSeconds;
  for (bool waiting = true; waiting && monotonic_seconds() < deadline;) {
    waiting = false;
    std::vector<pollfd> files;
    for (size_t rank = 0; rank < members.size(); ++rank) {
      hear(rank);
      if (members[rank].alive() && !members[rank].answered) {
        waiting = true;
        files.push_back({members[rank].frames.socket().file(), POLLIN, 0});
      }
    }
    ::poll(files.data(), files.size(), waiting ? 20 : 0);
  }
}

void ControlServer::State::fail(const std::string& cause) {
  if (joined == members.size()) {
    collect_answers();
  }
  std::vector<RankReport> reports;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const Member& member = members[rank];
    const std::string process =
        member.joined ? text("pid ", member.peer.pid, " on ", member.peer.host) : std::string();
    // For a rank that is gone this is its last report.
    reports.push_back({static_cast<int>(rank), member.where,
                       !member.joined                       ? "missing"
                       : joined < members.size()            ? "here"
                       : member.alive() && !member.answered ? "no answer"
                                                            : member.state,
                       process});
  }
  verdict = rank_table(cause, reports);
  failed_at = monotonic_seconds();
  for (size_t rank = members.size(); rank-- > 0;) {  // this process last
    send(rank, FrameType::verdict, verdict);
  }
}

template <class F>
std::string ControlServer::State::ranks_where(F&& wanted) const {
  std::string ranks;
  size_t count = 0;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (wanted(members[rank]) && ++count <= 16) {
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  return text(count == 1 ? "rank " : "ranks ", ranks, count > 16 ? ", ..." : "");
}

bool ControlServer::State::all_gone() const {
  for (const Member& member : members) {
    if (member.alive()) {
      return false;
    }
  }
  return true;
}

}  // namespace binade::dist
