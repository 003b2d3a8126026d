// BINADE_FORCE_ISA can narrow the instruction set but not widen it.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/forced_isa_internal.h>
#include <gtest/gtest.h>

#include <string>

namespace binade::kernels::isa_test {
namespace {

TEST(Isa, ForcedSetsAreNoWiderThanTheMachine) {
  EXPECT_EQ(narrowed(Isa::avx512, nullptr), Isa::avx512);
  EXPECT_EQ(narrowed(Isa::avx2, ""), Isa::avx2);
  EXPECT_EQ(narrowed(Isa::avx512, "avx2"), Isa::avx2);
  EXPECT_EQ(narrowed(Isa::avx512, "baseline"), Isa::baseline);
  EXPECT_EQ(narrowed(Isa::baseline, "avx2"), Isa::baseline);
  EXPECT_EQ(narrowed(Isa::avx2, "avx512"), Isa::avx2);
  EXPECT_EQ(narrowed(Isa::avx512_bf16, nullptr), Isa::avx512_bf16);
  EXPECT_EQ(narrowed(Isa::avx512_bf16, "avx512"), Isa::avx512);
  EXPECT_EQ(narrowed(Isa::avx512, "avx512_bf16"), Isa::avx512);
  EXPECT_EQ(narrowed(Isa::amx_bf16, ""), Isa::amx_bf16);
  EXPECT_EQ(narrowed(Isa::amx_bf16, "avx512_bf16"), Isa::avx512_bf16);
  EXPECT_EQ(narrowed(Isa::avx512_bf16, "amx_bf16"), Isa::avx512_bf16);
}

TEST(Isa, UnknownNamesAreAnError) {
  try {
    narrowed(Isa::avx2, "sse9");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("BINADE_FORCE_ISA: got 'sse9', expected baseline"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace binade::kernels::isa_test
