#include <binade/core/io/sha256.h>
#include <binade/kernels/base/error.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace binade {
namespace {

constexpr size_t kBlock = 64;

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t read_big_endian(const std::byte* p) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word = word << 8 | std::to_integer<uint32_t>(p[i]);
  }
  return word;
}

void write_big_endian(std::byte* p, uint64_t value, int bytes) {
  for (int i = bytes; i-- > 0; value >>= 8) {
    p[i] = static_cast<std::byte>(value);
  }
}

}  // namespace

void Sha256::add_block(const std::byte* block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    w[i] = read_big_endian(block + 4 * i);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  std::array<uint32_t, 8> s = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum1 = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const uint32_t t1 = s[7] + sum1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const uint32_t sum0 = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const uint32_t t2 = sum0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < state_.size(); ++i) {
    state_[i] += s[i];
  }
}

void Sha256::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t filled = bytes_ % kBlock, part = std::min(kBlock - filled, bytes.size());
    std::memcpy(block_.data() + filled, bytes.data(), part);
    bytes = bytes.subspan(part);
    bytes_ += part;
    if (bytes_ % kBlock == 0) {
      add_block(block_.data());
    }
  }
}

Sha256Digest Sha256::finish() {
  const uint64_t bits = 8 * bytes_;
  constexpr size_t kLength = 8;
  constexpr std::byte kEnd{0x80}, kZero{0};
  add({&kEnd, 1});
  while (bytes_ % kBlock != kBlock - kLength) {
    add({&kZero, 1});
  }
  std::array<std::byte, kLength> length{};
  write_big_endian(length.data(), bits, kLength);
  add(length);
  Sha256Digest digest{};
  for (size_t i = 0; i < state_.size(); ++i) {
    write_big_endian(&digest[4 * i], state_[i], 4);
  }
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlock> padded{};
  const Sha256Digest short_key = key.size() > kBlock ? sha256(key) : Sha256Digest{};
  key = key.size() > kBlock ? std::span<const std::byte>(short_key) : key;
  std::copy(key.begin(), key.end(), padded.begin());
  const auto hash_of = [&padded](std::byte pad, std::span<const std::byte> rest) {
    auto block = padded;
    for (std::byte& byte : block) {
      byte ^= pad;
    }
    Sha256 hash;
    hash.add(block);
    hash.add(rest);
    return hash.finish();
  };
  return hash_of(std::byte{0x5c}, hash_of(std::byte{0x36}, message));
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  return text;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  volatile unsigned differs = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs = differs | std::to_integer<unsigned>(a[i] ^ b[i]);
  }
  return differs == 0;
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    check(got > 0 || errno == EINTR, "random bytes: getrandom: ", std::strerror(errno));
    bytes = bytes.subspan(got > 0 ? static_cast<size_t>(got) : 0);
  }
}

}  // namespace binade
