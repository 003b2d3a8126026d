#include <binade/dist/job/control_frames_internal.h>
#include <binade/dist/job/control_internal.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace binade::dist {
namespace {

constexpr double kAnswerSeconds = 1;    // a living rank answers a query within this time
constexpr double kStrangerSeconds = 5;  // a connection must identify itself within this time
constexpr double kDrainSeconds = 1;     // ranks must read the verdict within this time
constexpr double kOwnRankSeconds = 10;  // rank 0, in the same process, must join within this time

std::string text_of(const char* chars, size_t most) {
  return std::string(chars, strnlen(chars, most));
}

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
  State(Socket socket, int size, std::string word, const ControlOptions& o)
      : listener(std::move(socket)), secret(std::move(word)), options(o) {
    members.resize(static_cast<size_t>(size));
    start = monotonic_seconds();
  }

  void serve();
  void accept_one();
  void hear_strangers();
  bool join(FrameSocket& frames, const JoinRequest& request);
  void send_roster();
  void hear(size_t rank);
  void lose(size_t rank);
  void collect_answers();
  void fail(const std::string& cause);
  void send(size_t rank, FrameType type, std::string_view bytes);
  std::string missing_ranks() const;
  bool all_gone() const;

  struct Stranger {
    FrameSocket frames;
    double since;
  };

  Socket listener;
  std::string secret;
  ControlOptions options;
  std::vector<Member> members;
  std::list<Stranger> strangers;
  size_t joined = 0;
  bool heard_own_rank = false;
  double start, failed_at = 0;
  std::string verdict, pending;  // pending: the cause of a failure not yet announced
  std::thread thread;
};

ControlServer::ControlServer(Socket listener, int size, std::string secret,
                             const ControlOptions& options)
    : state_(std::make_shared<State>(std::move(listener), size, std::move(secret), options)) {
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
}

ControlServer::~ControlServer() { state_->thread.join(); }

int ControlServer::port() const { return state_->listener.port(); }

void ControlServer::State::serve() {
  for (;;) {
    std::vector<pollfd> files = {{listener.file(), POLLIN, 0}};
    for (Member& member : members) {
      if (member.frames.socket()) {
        files.push_back({member.frames.socket().file(), POLLIN, 0});
      }
    }
    for (Stranger& stranger : strangers) {
      files.push_back({stranger.frames.socket().file(), POLLIN, 0});
    }
    ::poll(files.data(), files.size(), 100);
    accept_one();
    hear_strangers();
    for (size_t rank = 0; rank < members.size(); ++rank) {
      hear(rank);
    }
    const double now = monotonic_seconds();
    if (joined < members.size() && verdict.empty() && pending.empty() &&
        now - start > options.rendezvous_seconds) {
      pending = text("rendezvous: ", missing_ranks(), " of ", members.size(), " did not come in ",
                     options.rendezvous_seconds, " s");
    }
    if (!pending.empty() && verdict.empty()) {
      fail(pending);
    }
    const double wait = heard_own_rank ? kDrainSeconds : kOwnRankSeconds;
    if ((joined == members.size() && all_gone()) || (!verdict.empty() && now - failed_at > wait)) {
      return;
    }
  }
}

void ControlServer::State::accept_one() {
  Socket socket = accept_from(listener, 0);
  if (socket) {
    strangers.push_back({FrameSocket(std::move(socket)), monotonic_seconds()});
  }
}

void ControlServer::State::hear_strangers() {
  for (auto at = strangers.begin(); at != strangers.end();) {
    bool known = monotonic_seconds() - at->since > kStrangerSeconds;
    try {
      Frame frame;
      if (at->frames.read(frame)) {
        known = true;
        if (frame.type == FrameType::hello) {
          join(at->frames, value_of<JoinRequest>(frame.bytes));
        }
      }
    } catch (const SocketError&) {
      known = true;  // it is not a rank of this job
    }
    at = known ? strangers.erase(at) : std::next(at);
  }
}

bool ControlServer::State::join(FrameSocket& frames, const JoinRequest& request) {
  const auto refuse = [&](const std::string& reason) {
    frames.write(FrameType::refused, reason);
    return false;
  };
  const int size = static_cast<int>(members.size());
  if (text_of(request.secret, sizeof request.secret) != secret) {
    return refuse("rendezvous: the secret is another one: this is not the job that listens there");
  }
  heard_own_rank |= request.rank == 0;
  if (!verdict.empty()) {
    return refuse(verdict);
  }
  if (request.size != size || request.rank < 0 || request.rank >= size) {
    pending = text("rendezvous: got rank ", request.rank, " of ", request.size,
                   ", expected ranks of ", size);
    return refuse(pending);
  }
  Member& member = members[static_cast<size_t>(request.rank)];
  if (member.joined) {
    pending = text("rendezvous: rank ", request.rank, " came twice: pid ", member.peer.pid, " and ",
                   request.pid);
    return refuse(pending);
  }
  member.peer = {text_of(request.host, sizeof request.host), frames.socket().peer(),
                 request.data_port, request.pid};
  member.frames = std::move(frames);
  member.joined = true;
  if (++joined == members.size()) {
    send_roster();
  }
  return true;
}

void ControlServer::State::send_roster() {
  Roster roster;
  for (const Member& member : members) {
    roster.push_back(member.peer);
    // Rank 0 connected from this machine; the others know it by the address they used.
    if (member.peer.address == members[0].peer.address) {
      roster.back().address = "-";
    }
  }
  const std::string lines = roster_text(roster);
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
  const double deadline = monotonic_seconds() + kAnswerSeconds;
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

std::string ControlServer::State::missing_ranks() const {
  std::string ranks;
  size_t count = 0;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (!members[rank].joined && ++count <= 16) {
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
