#include <binade/dist/transport/handshake_internal.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace binade::dist {
namespace {

constexpr int kAcceptsAtOnce = 32;  // those who wait for data have their turn in between
constexpr double kAcceptPause = 0.05, kMostPause = 0.25, kMostAttempt = 16;
constexpr const char* kOtherSecret =
    "the secret is another one: this is not the job that listens there, or BINADE_SECRET or "
    "BINADE_SECRET_FILE differs between its ranks";

struct Hello {
  Claim claim;
  Nonce nonce;
  Sha256Digest tag;
};
struct Challenge {
  Nonce nonce;
  Sha256Digest proof;
};
static_assert(std::has_unique_object_representations_v<Claim> &&
              std::has_unique_object_representations_v<Hello>);

std::string_view text_of(const Sha256Digest& digest) { return bytes_of(digest); }

struct Transcript {
  const Claim& claim;
  const Nonce& connecting;
  const Nonce& accepting;
};

Sha256Digest tag_of(const Key& key, const Claim& claim, const Nonce& nonce) {
  const std::string message = text("binade hello\n", bytes_of(claim), text_of(nonce));
  return hmac_sha256(key, bytes_in(message));
}

Sha256Digest proof_of(const Key& key, std::string_view end, const Transcript& t,
                      std::string_view first = {}) {
  const std::string message = text("binade ", end, "\n", bytes_of(t.claim), text_of(t.connecting),
                                   text_of(t.accepting), first);
  return hmac_sha256(key, bytes_in(message));
}

Nonce new_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

}  // namespace

Key derive_key(std::string_view secret, std::string_view use) {
  return hmac_sha256(bytes_in(secret), bytes_in(text("binade key\n", use)));
}

void AuthenticatedListener::close() {
  listener_.close();
  strangers_.clear();
}

void AuthenticatedListener::add_files(std::vector<pollfd>& files) const {
  if (listener_ && monotonic_seconds() >= pause_until_) {
    files.push_back({listener_.file(), POLLIN, 0});
  }
  for (const Stranger& stranger : strangers_) {
    files.push_back({stranger.frames.socket().file(), POLLIN, 0});
  }
}

std::vector<Caller> AuthenticatedListener::advance() {
  std::vector<Caller> callers;
  const auto hear_all = [&](auto at) {
    while (at != strangers_.end()) {
      Caller caller;
      const Verdict verdict = hear(*at, caller);
      if (verdict == Verdict::admit) {
        callers.push_back(std::move(caller));
      }
      at = verdict == Verdict::wait ? std::next(at) : strangers_.erase(at);
    }
  };
  hear_all(strangers_.begin());
  const double now = monotonic_seconds();
  strangers_.remove_if([&](const Stranger& s) { return now - s.since > kStrangerSeconds; });
  for (int i = 0; i < kAcceptsAtOnce && listener_ && now >= pause_until_ && accept_one(); ++i) {
    hear_all(std::prev(strangers_.end()));
  }
  return callers;
}

bool AuthenticatedListener::accept_one() {
  int error = 0;
  Socket socket = accept_from(listener_, error);
  if (error != 0) {  // a stranger less is a file more
    make_room();
    pause_until_ = monotonic_seconds() + kAcceptPause;
  }
  if (!socket) {
    return false;
  }
  adopt(std::move(socket));
  return true;
}

void AuthenticatedListener::adopt(Socket socket) {
  if (strangers_.size() >= kMostStrangers) {
    make_room();
  }
  Stranger stranger{.frames = FrameSocket(std::move(socket), kStrangerBytes)};
  stranger.since = monotonic_seconds();
  strangers_.push_back(std::move(stranger));
}

void AuthenticatedListener::make_room() {
  const auto unknown = std::find_if(strangers_.begin(), strangers_.end(),
                                    [](const Stranger& stranger) { return !stranger.has_tag; });
  if (!strangers_.empty()) {
    strangers_.erase(unknown != strangers_.end() ? unknown : strangers_.begin());
  }
}

AuthenticatedListener::Verdict AuthenticatedListener::hear(Stranger& stranger, Caller& caller) {
  try {
    Frame frame;
    if (!stranger.frames.read(frame)) {
      return Verdict::wait;
    }
    return stranger.has_tag ? hear_proof(stranger, frame, caller) : hear_hello(stranger, frame);
  } catch (const SocketError&) {
    return Verdict::drop;
  }
}

AuthenticatedListener::Verdict AuthenticatedListener::hear_hello(Stranger& stranger,
                                                                 const Frame& frame) {
  Hello hello;
  if (frame.type != FrameType::hello || frame.bytes.size() != sizeof hello) {
    return Verdict::drop;
  }
  std::memcpy(&hello, frame.bytes.data(), sizeof hello);
  if (!equal_in_constant_time(hello.tag, tag_of(key_, hello.claim, hello.nonce))) {
    stranger.frames.write_now(FrameType::refused);
    return Verdict::drop;
  }
  if (hello.claim.purpose != purpose_ || hello.claim.to != rank_) {
    return Verdict::drop;
  }
  stranger.has_tag = true;
  stranger.claim = hello.claim;
  stranger.theirs = hello.nonce;
  stranger.ours = new_nonce();
  const Transcript transcript{stranger.claim, stranger.theirs, stranger.ours};
  const Challenge challenge{stranger.ours, proof_of(key_, "accepts", transcript)};
  stranger.frames.write_now(FrameType::challenge, bytes_of(challenge));
  return Verdict::wait;
}

AuthenticatedListener::Verdict AuthenticatedListener::hear_proof(Stranger& stranger, Frame& frame,
                                                                 Caller& caller) {
  Sha256Digest proof;
  if (frame.type != FrameType::proof || frame.bytes.size() < sizeof proof) {
    return Verdict::drop;
  }
  std::memcpy(&proof, frame.bytes.data(), sizeof proof);
  frame.bytes.erase(0, sizeof proof);
  const Transcript transcript{stranger.claim, stranger.theirs, stranger.ours};
  if (!equal_in_constant_time(proof, proof_of(key_, "connects", transcript, frame.bytes))) {
    return Verdict::drop;
  }
  stranger.frames.write_now(FrameType::welcome);
  caller = {std::move(stranger.frames), stranger.claim, std::move(frame.bytes)};
  return Verdict::admit;
}

// Connector -------------------------------------------------------------------------------------

Connector::Connector(std::string host, int port, const Key& key, const Claim& claim,
                     FirstMessage first)
    : host_(std::move(host)), port_(port), key_(key), claim_(claim), first_(std::move(first)) {}

pollfd Connector::file() const {
  const bool connecting = stage_ == Stage::connecting;
  return {frames_.socket().file(), static_cast<short>(connecting ? POLLOUT : POLLIN), 0};
}

bool Connector::advance() {
  try {
    step();
    // The peer does not count this end as connected before it has sent its proof.
    if ((stage_ == Stage::connecting || stage_ == Stage::greeted) && monotonic_seconds() > next_) {
      attempt_seconds_ = std::min(2 * attempt_seconds_, kMostAttempt);
      try_later("no answer");
    }
  } catch (const SocketError& error) {
    try_later(error.what());
  }
  return stage_ == Stage::done;
}

void Connector::step() {
  if (stage_ == Stage::pause && monotonic_seconds() >= next_) {
    lookup_.emplace(host_);
    stage_ = Stage::looking_up;
  }
  if (stage_ == Stage::looking_up) {
    const std::string address = lookup_->address();
    if (address.empty()) {
      reason_ = text("the address of '", host_, "': no answer yet");
      return;
    }
    lookup_.reset();
    frames_ = FrameSocket(begin_connect(address, port_), AuthenticatedListener::kStrangerBytes);
    next_ = monotonic_seconds() + attempt_seconds_;
    stage_ = Stage::connecting;
  }
  if (stage_ == Stage::connecting && is_connected(frames_.socket())) {
    send_hello();
    stage_ = Stage::greeted;
  }
  Frame frame;
  while ((stage_ == Stage::greeted || stage_ == Stage::proved) && frames_.read(frame)) {
    answer(frame);
  }
}

void Connector::send_hello() {
  ours_ = new_nonce();
  const Hello hello{claim_, ours_, tag_of(key_, claim_, ours_)};
  frames_.write_now(FrameType::hello, bytes_of(hello));
}

void Connector::answer(const Frame& frame) {
  Challenge challenge;
  if (stage_ == Stage::proved && frame.type == FrameType::welcome) {
    stage_ = Stage::done;
  } else if (stage_ == Stage::greeted && frame.type == FrameType::refused) {
    throw RefusedError(kOtherSecret);
  } else if (stage_ == Stage::greeted && frame.type == FrameType::challenge &&
             frame.bytes.size() == sizeof challenge) {
    std::memcpy(&challenge, frame.bytes.data(), sizeof challenge);
    const Transcript transcript{claim_, ours_, challenge.nonce};
    if (!equal_in_constant_time(challenge.proof, proof_of(key_, "accepts", transcript))) {
      throw RefusedError(kOtherSecret);
    }
    const std::string first = first_ ? first_(frames_.socket().address()) : std::string();
    const Sha256Digest proof = proof_of(key_, "connects", transcript, first);
    frames_.write_now(FrameType::proof, text(text_of(proof), first));
    stage_ = Stage::proved;
  } else {
    throw SocketError("the other end does not speak this protocol");
  }
}

void Connector::try_later(const std::string& reason) {
  frames_ = {};
  reason_ = reason;
  stage_ = Stage::pause;
  next_ = monotonic_seconds() + pause_;
  pause_ = std::min(2 * pause_, kMostPause);
}

}  // namespace binade::dist
