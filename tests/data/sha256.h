// SHA-256 (FIPS 180-4), for comparing pixels with a manifest.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace binade::data::test {

class Sha256 {
 public:
  // The digest in lower-case hexadecimal.
  static std::string of(std::vector<uint8_t> bytes) {
    const uint64_t bits = 8 * static_cast<uint64_t>(bytes.size());
    bytes.push_back(0x80);
    while (bytes.size() % 64 != 56) {
      bytes.push_back(0);
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<uint8_t>(bits >> shift));
    }
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += 64) {
      hash.block(&bytes[at]);
    }
    std::string text;
    for (uint32_t word : hash.state_) {
      for (int shift = 28; shift >= 0; shift -= 4) {
        text.push_back("0123456789abcdef"[word >> shift & 15]);
      }
    }
    return text;
  }

 private:
  // The first 32 bits of the fraction of a root of the i-th prime, by integer search.
  static uint32_t root_fraction(uint64_t prime, int power) {
    uint64_t low = 0, high = uint64_t(1) << 37;  // root * 2^32
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      const long double value = static_cast<long double>(middle) * 0x1p-32L;
      const long double raised = power == 2 ? value * value : value * value * value;
      (raised <= static_cast<long double>(prime) ? low : high) = middle;
    }
    return static_cast<uint32_t>(low);
  }
  static std::array<uint32_t, 64> primes() {
    std::array<uint32_t, 64> out{};
    size_t count = 0;
    for (uint32_t n = 2; count < out.size(); ++n) {
      bool prime = true;
      for (uint32_t d = 2; d * d <= n; ++d) {
        prime = prime && n % d != 0;
      }
      if (prime) {
        out[count++] = n;
      }
    }
    return out;
  }
  static const std::array<uint32_t, 64>& constants() {
    static const std::array<uint32_t, 64> kConstants = [] {
      std::array<uint32_t, 64> out{};
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = root_fraction(primes()[i], 3);
      }
      return out;
    }();
    return kConstants;
  }

  Sha256() {
    static const std::array<uint32_t, 64> kPrimes = primes();
    for (size_t i = 0; i < state_.size(); ++i) {
      state_[i] = root_fraction(kPrimes[i], 2);
    }
  }

  void block(const uint8_t* p) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 16; ++i) {
      w[i] = uint32_t(p[4 * i]) << 24 | uint32_t(p[4 * i + 1]) << 16 | uint32_t(p[4 * i + 2]) << 8 |
             p[4 * i + 3];
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    std::array<uint32_t, 8> s = state_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t sum1 = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
      const uint32_t t1 = s[7] + sum1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants()[i] + w[i];
      const uint32_t sum0 = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
      const uint32_t t2 = sum0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i) {
      state_[i] += s[i];
    }
  }

  std::array<uint32_t, 8> state_{};
};

}  // namespace binade::data::test
