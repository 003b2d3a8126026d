// Each connection carries bytes in each direction in the order of the messages; both ends know the
// sizes.
#include <binade/core/io/crc32c.h>
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

constexpr double kHelloSeconds = 5;

// The first bytes of a connection.
struct Hello {
  uint64_t magic = 0x3145444e4942;  // "BINDE1"
  uint32_t group = 0;
  int32_t rank = 0;  // of the connecting end, in the roster
  char secret[64] = "";
};

// Shared by the transports of a process: the roster, and connections that arrived for another group
// than the one that accepted them.
struct Node {
  int rank;
  Roster roster;
  Socket listener;
  std::string secret;
  std::mutex mutex;
  std::map<std::pair<uint32_t, int>, Socket> arrived;  // by group and rank in the roster

  Hello hello(uint32_t group) const {
    Hello h;
    h.group = group;
    h.rank = rank;
    std::strncpy(h.secret, secret.c_str(), sizeof h.secret - 1);
    return h;
  }

  Socket connect(int peer, uint32_t group, double timeout) const {
    const Peer& there = roster[static_cast<size_t>(peer)];
    const double deadline = monotonic_seconds() + timeout;
    Socket socket = connect_to(there.address, there.port, deadline);
    const Hello h = hello(group);
    socket.send_all(&h, sizeof h, deadline);
    return socket;
  }

  // Accepts pending connections without waiting for more.
  void accept_all() {
    while (Socket socket = accept_from(listener, 0)) {
      Hello theirs;
      try {
        socket.receive_all(&theirs, sizeof theirs, monotonic_seconds() + kHelloSeconds);
      } catch (const SocketError&) {
        continue;
      }
      const Hello mine = hello(theirs.group);
      const bool known = theirs.magic == mine.magic && theirs.rank > rank &&
                         theirs.rank < static_cast<int>(roster.size()) &&
                         std::memcmp(theirs.secret, mine.secret, sizeof mine.secret) == 0;
      if (known) {
        arrived[{theirs.group, theirs.rank}] = std::move(socket);
      }
    }
  }
};

class TcpTransport final : public Transport {
 public:
  // members: ranks of the roster.
  TcpTransport(std::shared_ptr<Node> node, std::vector<int> members, int rank, uint32_t group)
      : Transport(rank, static_cast<int>(members.size())),
        node_(std::move(node)),
        members_(std::move(members)),
        group_(group),
        links_(members_.size()) {}

  const char* name() const override { return "tcp"; }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    std::vector<int> chosen;
    int rank = 0;
    for (const int member : members) {
      rank = member == this->rank() ? static_cast<int>(chosen.size()) : rank;
      chosen.push_back(members_[static_cast<size_t>(member)]);
    }
    const int nth = splits_[chosen]++;
    uint32_t group = crc32c(std::as_bytes(std::span(chosen)), group_ + 1);
    group = crc32c(std::as_bytes(std::span(&nth, 1)), group);
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
  }

  uint64_t progress() override {
    if (!move_all() && !left_.empty() && left_.front() != 0) {
      wait_for_sockets();
      move_all();
    }
    while (!left_.empty() && left_.front() == 0) {
      left_.pop_front();
      ++first_;
    }
    return first_ - 1;
  }

  void abandon() noexcept override {
    for (Link& link : links_) {  // the connections stay open: this rank has not left
      link.sends.clear();
      link.receives.clear();
    }
    left_.clear();
  }

 private:
  struct Piece {
    std::byte* data;
    size_t bytes;
    uint64_t group;
  };
  struct Link {
    Socket socket;
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

  // Connects, or takes the connection if it has arrived.
  bool open(Link& link, int peer) {
    const int there = members_[static_cast<size_t>(peer)];
    try {
      if (there < node_->rank) {
        link.socket = node_->connect(there, group_, timeout());
        return true;
      }
    } catch (const SocketError& error) {
      throw TransportError(text("rank ", peer, ": ", error.what()));
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

  void wait_for_sockets() const {
    std::vector<pollfd> files;
    bool missing = false;
    for (const Link& link : links_) {
      const auto events = static_cast<short>((link.sends.empty() ? 0 : POLLOUT) |
                                             (link.receives.empty() ? 0 : POLLIN));
      if (link.socket && events) {
        files.push_back({link.socket.file(), events, 0});
      }
      missing |= link.busy() && !link.socket;
    }
    if (missing) {
      files.push_back({node_->listener.file(), POLLIN, 0});
    }
    ::poll(files.data(), files.size(), 10);
  }

  std::shared_ptr<Node> node_;
  std::vector<int> members_;
  uint32_t group_;
  std::vector<Link> links_;
  std::deque<size_t> left_;  // unfinished messages, by group
  uint64_t first_ = 1;       // number of the group at the front
  std::map<std::vector<int>, int> splits_;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(int rank, Roster roster, Socket listener,
                                              const std::string& secret) {
  std::vector<int> members(roster.size());
  for (size_t i = 0; i < members.size(); ++i) {
    members[i] = static_cast<int>(i);
  }
  auto node = std::make_shared<Node>();
  node->rank = rank;
  node->roster = std::move(roster);
  node->listener = std::move(listener);
  node->secret = secret;
  return std::make_unique<TcpTransport>(std::move(node), std::move(members), rank, 0);
}

}  // namespace binade::dist
