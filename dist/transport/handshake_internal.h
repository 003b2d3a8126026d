// The handshake that begins every connection of a job: both ends prove that they know its secret.
// Nothing that a stranger sends is used before that, and no stranger makes a rank wait.
//
//   connecting end                               accepting end
//   hello: claim, nonce, tag          ->
//                                     <-         challenge: nonce, proof
//   proof: proof, first message       ->
//                                     <-         welcome
//
// A tag or proof is HMAC-SHA-256, under the key, of its own label, the claim (what the connection
// is for, the ranks of both ends, the number of ranks, the group), the nonces so far and the first
// message. So no proof is good for another connection, the other direction, the other kind of port,
// another rank, or another job. The tag shows a rank among strangers; it can be replayed, a proof
// cannot.
#pragma once
#include <binade/core/io/sha256.h>
#include <binade/dist/transport/frames_internal.h>
#include <poll.h>

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace binade::dist {

using Key = Sha256Digest;
using Nonce = Sha256Digest;

// A key for one use of the secret, or of another key.
Key derive_key(std::string_view secret, std::string_view use);

enum class Purpose : uint32_t { control = 1, data = 2 };

// Sent as raw bytes.
struct Claim {
  Purpose purpose{};
  int32_t size = 0;  // ranks of the job
  int32_t from = 0, to = 0;
  uint64_t group = 0;  // data only
};

// The other end does not know the secret, or says that this end does not.
class RefusedError : public Error {
 public:
  using Error::Error;
};

// A connection whose other end has proved its claim.
struct Caller {
  FrameSocket frames;
  Claim claim;
  std::string message;  // the first one
};

// Accepts connections of one kind for one rank. Strangers are at most kMostStrangers at a time,
// each for kStrangerSeconds and with kStrangerBytes. If another one comes, the oldest is closed,
// first those without a tag of this job, so that a flood of strangers does not displace a rank.
// No call waits.
class AuthenticatedListener {
 public:
  static constexpr size_t kMostStrangers = 64, kStrangerBytes = 512;
  static constexpr double kStrangerSeconds = 0.9;

  AuthenticatedListener() = default;
  AuthenticatedListener(Socket listener, const Key& key, Purpose purpose, int rank)
      : listener_(std::move(listener)), key_(key), purpose_(purpose), rank_(rank) {}

  const Socket& socket() const { return listener_; }
  size_t strangers() const { return strangers_.size(); }
  // Stops accepting, and closes the connections that are not authenticated.
  void close();
  // Takes a connection that somebody else accepted.
  void adopt(Socket stranger);
  // Closes the connections that are not authenticated. A rank among them tries again.
  void drop_strangers() { strangers_.clear(); }
  void add_files(std::vector<pollfd>& files) const;  // what advance() waits for
  std::vector<Caller> advance();

 private:
  struct Stranger {
    FrameSocket frames;
    double since = 0;
    bool has_tag = false;
    Claim claim{};
    Nonce theirs{}, ours{};
  };
  enum class Verdict { wait, drop, admit };

  Verdict hear(Stranger& stranger, Caller& caller);
  Verdict hear_hello(Stranger& stranger, const Frame& frame);
  Verdict hear_proof(Stranger& stranger, Frame& frame, Caller& caller);
  bool accept_one();
  void make_room();

  Socket listener_;
  Key key_{};
  Purpose purpose_{};
  int rank_ = 0;
  std::list<Stranger> strangers_;  // the oldest first
  double pause_until_ = 0;         // the system had no file for a connection
};

// Connects to a rank and tries again, with growing pauses, until the other end has proved that it
// knows the key. No call waits, not even for the address of a host name.
class Connector {
 public:
  // Returns what to send first, given the address of this end.
  using FirstMessage = std::function<std::string(const std::string& own_address)>;

  Connector(std::string host, int port, const Key& key, const Claim& claim,
            FirstMessage first = {});

  // True when the connection is there. Throws RefusedError.
  bool advance();
  FrameSocket take() { return std::move(frames_); }
  pollfd file() const;  // what advance() waits for; its file is -1 during a pause
  // Why the connection is not there yet.
  const std::string& reason() const { return reason_; }

 private:
  enum class Stage { pause, looking_up, connecting, greeted, proved, done };

  void step();
  void send_hello();
  void answer(const Frame& frame);
  void try_later(const std::string& reason);

  std::string host_;
  int port_;
  Key key_;
  Claim claim_;
  FirstMessage first_;
  std::optional<AddressLookup> lookup_;  // while looking up
  FrameSocket frames_;
  Stage stage_ = Stage::pause;
  Nonce ours_{};
  double next_ = 0, pause_ = 0.005, attempt_seconds_ = 1;
  std::string reason_ = "no answer yet";
};

}  // namespace binade::dist
