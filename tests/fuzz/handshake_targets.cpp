// Both ends of the handshake, against a stranger who may know some of what a rank knows: the first
// byte of an input says which tags and proofs are made right, so that the bytes behind them are
// reached. With a right proof only may anybody be let in.
#include <binade/dist/transport/handshake_internal.h>
#include <sys/socket.h>

#include <cstring>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

using dist::Claim;
using dist::FrameType;
using dist::Nonce;

constexpr size_t kMost = dist::AuthenticatedListener::kStrangerBytes + 100;
constexpr size_t kPrefix = 12, kHello = sizeof(Claim) + sizeof(Nonce);  // before the tag
constexpr int kRank = 1;
enum Known : uint8_t { kTag = 1, kProof = 2, kInPieces = 4 };

const dist::Key& key() {
  static const dist::Key key = dist::derive_key("a secret of fuzzing", "test");
  return key;
}

Sha256Digest mac(std::string_view message) { return hmac_sha256(key(), bytes_in(message)); }

void put(std::string& bytes, size_t at, const Sha256Digest& digest) {
  if (bytes.size() >= at + sizeof digest) {
    std::memcpy(bytes.data() + at, digest.data(), sizeof digest);
  }
}

std::string proof_message(std::string_view end, std::string_view claim_and_nonce,
                          std::string_view challenge, std::string_view first = {}) {
  return text("binade ", end, "\n", claim_and_nonce, challenge.substr(0, sizeof(Nonce)), first);
}

// Sends all of it, in pieces if that is asked for; the other end advances in between.
template <class F>
void send(dist::Socket& socket, std::string_view bytes, bool in_pieces, F&& advance) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = in_pieces ? std::min<size_t>(13, bytes.size() - at) : bytes.size() - at;
    if (socket.send_some(bytes.data() + at, size) != static_cast<int64_t>(size)) {
      return;  // it has hung up
    }
    at += size;
    advance();
  }
}

}  // namespace

// A connecting end sends a byte, the first frame, then what follows the challenge.
void parse_listener(Bytes bytes) {
  if (bytes.empty() || bytes.size() > kMost) {
    return;
  }
  const uint8_t known = bytes[0];
  std::string sent(text_of(bytes.subspan(1)));
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "sockets can be made");
  dist::FrameSocket stranger(dist::Socket(ends[1]), kMost);
  dist::AuthenticatedListener listener({}, key(), dist::Purpose::data, kRank);
  listener.adopt(dist::Socket(ends[0]));

  const size_t first = std::min(sent.size(), kPrefix + kHello + sizeof(Sha256Digest));
  if ((known & kTag) != 0 && sent.size() >= kPrefix + kHello) {
    const std::string_view claim_and_nonce = std::string_view(sent).substr(kPrefix, kHello);
    put(sent, kPrefix + kHello, mac(text("binade hello\n", claim_and_nonce)));
  }
  std::vector<dist::Caller> callers;
  const auto advance = [&] {
    for (dist::Caller& caller : listener.advance()) {
      callers.push_back(std::move(caller));
    }
  };
  const bool in_pieces = (known & kInPieces) != 0;
  send(stranger.socket(), std::string_view(sent).substr(0, first), in_pieces, advance);
  dist::Frame challenge;
  std::string rest = sent.substr(first);
  try {
    if (stranger.read(challenge) && challenge.type == FrameType::challenge &&
        (known & kProof) != 0 && rest.size() >= kPrefix + sizeof(Sha256Digest)) {
      uint32_t size = 0;  // of the frame, after the magic number and the type
      std::memcpy(&size, rest.data() + 8, sizeof size);
      const size_t message = kPrefix + sizeof(Sha256Digest);
      const size_t end = std::clamp<size_t>(kPrefix + size_t{size}, message, rest.size());
      put(rest, kPrefix,
          mac(proof_message("connects", std::string_view(sent).substr(kPrefix, kHello),
                            challenge.bytes, rest.substr(message, end - message))));
    }
  } catch (const dist::SocketError&) {  // it has hung up
  }
  send(stranger.socket(), rest, in_pieces, advance);
  require(listener.strangers() + callers.size() <= 1, "one stranger, or one caller");
  require(callers.empty() || ((known & kTag) != 0 && (known & kProof) != 0),
          "nobody comes in without a proof");
  for (const dist::Caller& caller : callers) {
    require(caller.claim.purpose == dist::Purpose::data && caller.claim.to == kRank,
            "a caller is at the right port");
    require(caller.message.size() <= dist::AuthenticatedListener::kStrangerBytes,
            "a first message is short");
  }
  check(!callers.empty() || listener.strangers() > 0, "fuzz: the listener hung up");
}

// The bytes that an accepting end sends, at a port of this machine.
void parse_connector(Bytes bytes) {
  if (bytes.empty() || bytes.size() > kMost) {
    return;
  }
  const uint8_t known = bytes[0];
  std::string sent(text_of(bytes.subspan(1)));
  const dist::Socket listener = dist::listen_at("127.0.0.1", 0);
  const Claim claim{.purpose = dist::Purpose::data, .size = 3, .from = 2, .to = kRank, .group = 7};
  dist::Connector connector("127.0.0.1", listener.port(), key(), claim,
                            [](const std::string&) { return "first"; });
  int error = 0;
  dist::Socket accepted;
  for (int tries = 0; tries < 1000 && !accepted; ++tries) {
    connector.advance();
    accepted = dist::accept_from(listener, error);
  }
  require(static_cast<bool>(accepted), "it connects");
  // It ends with a reset, which leaves no port of this machine in use.
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(accepted.file(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  dist::FrameSocket other(std::move(accepted), kMost);
  dist::Frame hello;
  bool has_hello = false;
  for (int tries = 0; tries < 1000 && !has_hello; ++tries) {
    connector.advance();
    has_hello = other.read(hello);
  }
  require(has_hello && hello.type == FrameType::hello && hello.bytes.size() > kHello,
          "it says who it is");
  if ((known & kProof) != 0 && sent.size() >= kPrefix + sizeof(Nonce)) {
    put(sent, kPrefix + sizeof(Nonce),
        mac(proof_message("accepts", std::string_view(hello.bytes).substr(0, kHello),
                          std::string_view(sent).substr(kPrefix))));
  }
  bool connected = false;
  std::string refusal;
  send(other.socket(), sent, (known & kInPieces) != 0, [&] {
    try {
      connected = connected || (refusal.empty() && connector.advance());
    } catch (const dist::RefusedError& refused) {
      refusal = refused.what();
    }
  });
  require(!connected || (known & kProof) != 0, "it connects to nobody without a proof");
  check(refusal.empty(), refusal);
  check(connected || connector.reason() == "no answer yet", "fuzz: ", connector.reason());
}

}  // namespace binade::fuzz
