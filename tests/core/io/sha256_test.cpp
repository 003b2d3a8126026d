#include <binade/core/io/sha256.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace binade::sha256_test {
namespace {

std::string hash_of(std::string_view text) { return hex(sha256(bytes_in(text))); }

// Examples from FIPS 180 (NIST, "SHA256.pdf", "SHA2_Additional.pdf").
TEST(Sha256, HasTheDigestsOfTheStandard) {
  EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmno"
                    "pqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hash_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Lengths around the end of a block, from SHA2_Additional.pdf: 55, 56, 57 and 64 zero bytes.
  EXPECT_EQ(hash_of(std::string(55, 0)),
            "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
  EXPECT_EQ(hash_of(std::string(56, 0)),
            "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb");
  EXPECT_EQ(hash_of(std::string(57, 0)),
            "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785");
  EXPECT_EQ(hash_of(std::string(64, 0)),
            "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
}

TEST(Sha256, DoesNotDependOnTheParts) {
  const std::string whole(1000, 'x');
  for (const size_t part : {1, 63, 64, 65, 300}) {
    Sha256 hash;
    for (size_t at = 0; at < whole.size(); at += part) {
      hash.add(bytes_in(std::string_view(whole).substr(at, part)));
    }
    EXPECT_EQ(hex(hash.finish()), hash_of(whole)) << part;
  }
}

// Examples from RFC 4231, section 4; test case 5 shows 128 bits.
TEST(HmacSha256, HasTheDigestsOfTheStandard) {
  const auto hmac = [](const std::string& key, const std::string& message) {
    return hex(hmac_sha256(bytes_in(key), bytes_in(message)));
  };
  std::string counting;
  for (char c = 1; c <= 25; ++c) {
    counting += c;
  }
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hmac(counting, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(hmac(std::string(20, '\x0c'), "Test With Truncation").substr(0, 32),
            "a3b6167473100ee06e0c796c2955552b");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(std::string(131, '\xaa'),
                 "This is a test using a larger than block-size key and a larger than block-size "
                 "data. The key needs to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(EqualInConstantTime, ComparesEveryByte) {
  const Sha256Digest digest = sha256({});
  for (size_t i = 0; i < digest.size(); ++i) {
    Sha256Digest other = digest;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(equal_in_constant_time(digest, other)) << i;
  }
  EXPECT_TRUE(equal_in_constant_time(digest, sha256({})));
  EXPECT_FALSE(equal_in_constant_time(digest, std::span(digest).first(31)));
}

TEST(FillRandom, FillsAllOfIt) {
  std::vector<std::byte> first(1000), second(1000);
  fill_random(first);
  fill_random(second);
  int equal = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    equal += first[i] == second[i];
  }
  EXPECT_LT(equal, 40);  // 4 are expected; the probability of 40 is 10^-30
}

}  // namespace
}  // namespace binade::sha256_test
