// Each connection carries bytes in each direction in the order of the messages; both ends know the
// sizes.
#include <binade/core/io/sha256.h>
#include <binade/dist/transport/tcp_transport_internal.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <span>

namespace binade::dist {
namespace {

// Shared by the transports of a process: the roster, and connections that one group accepted but
// that belong to another group.
struct Node {
  int rank = 0;
  Roster roster;
  Key key{};
  std::mutex mutex;
  AuthenticatedListener listener;
  std::map<std::pair<uint64_t, int>, Socket> arrived;  // by group and rank in the roster
  int expecting = 0;                                   // transports that wait for callers

  std::unique_ptr<Connector> connect(int peer, uint64_t group) const {
    const Peer& there = roster[static_cast<size_t>(peer)];
    const Claim claim{.purpose = Purpose::data,
                      .size = static_cast<int>(roster.size()),
                      .from = rank,
                      .to = peer,
                      .group = group};
    return std::make_unique<Connector>(there.address, there.port, key, claim);
  }

  // A transport starts or stops waiting for callers. When the last one stops, unauthenticated
  // connections are dropped, since nobody would check their time limits any more.
  void expect_callers(bool begins) {
    expecting += begins ? 1 : -1;
    if (expecting == 0) {
      listener.drop_strangers();
    }
  }

  // Accepts ranks that have come, without waiting for more.
  void accept_all() {
    for (Caller& caller : listener.advance()) {
      const Claim& claim = caller.claim;
      const int size = static_cast<int>(roster.size());
      if (claim.size == size && claim.from > rank && claim.from < size) {
        arrived[{claim.group, claim.from}] = std::move(caller.frames.socket());
      }
    }
  }
};

// A hash of a group's ranks and of the number of earlier splits with them, equal on all members.
uint64_t group_of(uint64_t parent, const std::vector<int>& members, int nth) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(&parent, 1)));
  hash.add(std::as_bytes(std::span(members)));
  hash.add(std::as_bytes(std::span(&nth, 1)));
  const Sha256Digest digest = hash.finish();
  uint64_t group = 0;
  std::memcpy(&group, digest.data(), sizeof group);
  return group;
}

class TcpTransport final : public Transport {
 public:
  // members: ranks of the roster.
  TcpTransport(std::shared_ptr<Node> node, std::vector<int> members, int rank, uint64_t group)
      : Transport(rank, static_cast<int>(members.size())),
        node_(std::move(node)),
        members_(std::move(members)),
        group_(group),
        links_(members_.size()) {}

  ~TcpTransport() override { expect_callers(false); }

  const char* name() const override { return "tcp"; }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    std::vector<int> chosen;
    int rank = 0;
    for (const int member : members) {
      rank = member == this->rank() ? static_cast<int>(chosen.size()) : rank;
      chosen.push_back(members_[static_cast<size_t>(member)]);
    }
    const int nth = splits_[chosen]++;
    const uint64_t group = group_of(group_, chosen, nth);
    return std::make_unique<TcpTransport>(node_, std::move(chosen), rank, group);
  }

 protected:
  void post(const std::vector<Message>& group) override {
    left_.push_back(group.size());
    for (const Message& message : group) {
      Link& link = links_[static_cast<size_t>(message.peer)];
      (message.is_send ? link.sends : link.receives)
          .push_back({message.data, message.bytes, first_ + left_.size() - 1});
    }
    move_all();
    expect_callers(lacks_callers());
  }

  uint64_t progress() override {
    if (!move_all() && !left_.empty() && left_.front() != 0) {
      wait_for_sockets();
      move_all();
    }
    expect_callers(lacks_callers());
    while (!left_.empty() && left_.front() == 0) {
      left_.pop_front();
      ++first_;
    }
    return first_ - 1;
  }

  std::string missing() const override {
    for (size_t peer = 0; peer < links_.size(); ++peer) {
      const Link& link = links_[peer];
      if (link.connector) {
        const Peer& there = node_->roster[static_cast<size_t>(members_[peer])];
        return text("no connection to rank ", peer, " at ", there.address, " port ", there.port,
                    ": ", link.connector->reason());
      }
    }
    return {};
  }

  void abandon() noexcept override {
    for (Link& link : links_) {  // the connections stay open: this rank has not left
      link.sends.clear();
      link.receives.clear();
    }
    left_.clear();
    expect_callers(false);
  }

 private:
  struct Piece {
    std::byte* data;
    size_t bytes;
    uint64_t group;
  };
  struct Link {
    Socket socket;
    std::unique_ptr<Connector> connector;  // until it is connected
    std::deque<Piece> sends, receives;
    bool busy() const { return !sends.empty() || !receives.empty(); }
  };

  // Returns true if a byte was transferred.
  bool move_all() {
    bool any = false;
    for (size_t peer = 0; peer < links_.size(); ++peer) {
      Link& link = links_[peer];
      if (link.busy() && (link.socket || open(link, static_cast<int>(peer)))) {
        any |= move(link, link.sends, true, peer);
        any |= move(link, link.receives, false, peer);
      }
    }
    return any;
  }

  bool move(Link& link, std::deque<Piece>& pieces, bool is_send, size_t peer) {
    bool any = false;
    while (!pieces.empty()) {
      Piece& piece = pieces.front();
      const int64_t moved = is_send ? link.socket.send_some(piece.data, piece.bytes)
                                    : link.socket.receive_some(piece.data, piece.bytes);
      if (moved < 0) {
        throw TransportError(text("rank ", peer, " has left"));
      }
      if (moved == 0) {
        break;
      }
      any = true;
      piece.data += moved;
      piece.bytes -= static_cast<size_t>(moved);
      if (piece.bytes == 0) {
        --left_[piece.group - first_];
        pieces.pop_front();
      }
    }
    return any;
  }

  // Goes on connecting, or takes the connection if it has arrived. Does not wait.
  bool open(Link& link, int peer) {
    const int there = members_[static_cast<size_t>(peer)];
    if (there < node_->rank) {
      if (!link.connector) {
        link.connector = node_->connect(there, group_);
      }
      if (!advance(*link.connector, peer)) {
        return false;
      }
      link.socket = std::move(link.connector->take().socket());
      link.connector.reset();
      return true;
    }
    const std::lock_guard lock(node_->mutex);
    node_->accept_all();
    const auto found = node_->arrived.find({group_, there});
    if (found == node_->arrived.end()) {
      return false;
    }
    link.socket = std::move(found->second);
    node_->arrived.erase(found);
    return true;
  }

  static bool advance(Connector& connector, int peer) {
    try {
      return connector.advance();
    } catch (const RefusedError& error) {
      throw TransportError(text("rank ", peer, ": ", error.what()));
    }
  }

  bool lacks_callers() const {
    return std::any_of(links_.begin(), links_.end(), [](const Link& link) {
      return link.busy() && !link.socket && !link.connector;
    });
  }

  void expect_callers(bool expects) {
    if (expects != expects_callers_) {
      const std::lock_guard lock(node_->mutex);
      node_->expect_callers(expects);
      expects_callers_ = expects;
    }
  }

  void wait_for_sockets() const {
    std::vector<pollfd> files;
    for (const Link& link : links_) {
      const auto events = static_cast<short>((link.sends.empty() ? 0 : POLLOUT) |
                                             (link.receives.empty() ? 0 : POLLIN));
      if (link.socket && events) {
        files.push_back({link.socket.file(), events, 0});
      } else if (link.connector) {
        files.push_back(link.connector->file());
      }
    }
    if (lacks_callers()) {
      const std::lock_guard lock(node_->mutex);
      node_->listener.add_files(files);
    }
    ::poll(files.data(), files.size(), 10);
  }

  std::shared_ptr<Node> node_;
  std::vector<int> members_;
  uint64_t group_;
  std::vector<Link> links_;
  std::deque<size_t> left_;  // unfinished messages, by group
  uint64_t first_ = 1;       // number of the group at the front
  std::map<std::vector<int>, int> splits_;
  bool expects_callers_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(int rank, Roster roster, Socket listener,
                                              const Key& key) {
  const int size = static_cast<int>(roster.size());
  check(rank >= 0 && rank < size, "tcp transport: got rank ", rank, " of a roster of ", size);
  std::vector<int> members(roster.size());
  for (size_t i = 0; i < members.size(); ++i) {
    members[i] = static_cast<int>(i);
  }
  auto node = std::make_shared<Node>();
  node->rank = rank;
  node->roster = std::move(roster);
  node->key = key;
  node->listener = AuthenticatedListener(std::move(listener), key, Purpose::data, rank);
  if (rank == size - 1) {
    node->listener.close();  // only higher ranks connect
  }
  return std::make_unique<TcpTransport>(std::move(node), std::move(members), rank, 0);
}

}  // namespace binade::dist
