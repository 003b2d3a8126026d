// A 64-bit hash, to tell data apart; not for cryptography.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace binade {

// Mixes 8 bytes at a time (the finaliser of MurmurHash3 on a running state).
class Hash64 {
 public:
  void add(std::span<const std::byte> bytes) {
    size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + at, 8);
      mix(word);
    }
    uint64_t rest = 0;
    if (at < bytes.size()) {  // memcpy takes no null pointer, even of nothing
      std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
    }
    mix(rest);
    mix(bytes.size());
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  void add(uint64_t number) { mix(number); }

  uint64_t value() const { return state_; }
  std::string hex() const { return hex(state_); }
  static std::string hex(uint64_t value) {  // 16 digits
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) {
      out += "0123456789abcdef"[value >> shift & 15];
    }
    return out;
  }

 private:
  void mix(uint64_t word) {
    state_ = (state_ ^ word) * 0xff51afd7ed558ccdull;
    state_ = (state_ ^ state_ >> 33) * 0xc4ceb9fe1a85ec53ull;
    state_ ^= state_ >> 33;
  }
  uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace binade
