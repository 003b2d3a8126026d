// Compares attention with a plain f64 reference: every dtype, lengths and head sizes around the
// tiles, masks of both kinds, causal with different lengths, views in the memory order of models.
#include <tests/kernels/attention/attention_problem.h>

namespace binade::kernels::attention_test {
namespace {

TEST(Attention, MatchesReferenceForAllMasksAndOrders) {
  for (DType dtype : floating_dtypes()) {
    for (Mask mask : {Mask::none, Mask::keep, Mask::add}) {
      for (bool causal : {false, true}) {
        check_case({{2, 2, 5, 7, 8, 9}, mask, causal, mask != Mask::keep}, dtype);
        check_case({{1, 2, 9, 4, 5, 3}, mask, causal, mask == Mask::keep}, dtype);
      }
    }
  }
}

TEST(Attention, MatchesReferenceAroundTiles) {
  for (DType dtype : floating_dtypes()) {
    check_case({{1, 1, 1, 1, 1, 1}}, dtype);
    check_case({{1, 1, 33, 65, 16, 16}, Mask::none, true}, dtype);
    check_case({{1, 1, 67, 131, 24, 8}, Mask::add, false, true}, dtype);
    check_case({{1, 2, 65, 64, 8, 8}, Mask::none, true, true}, dtype);
    check_case({{1, 1, 3, 34, 66, 65}}, dtype);  // wider than one chunk of columns
    check_case({{1, 1, 2, 5, 130, 7}}, dtype);   // wider than tensor-core tiles allow
    check_case({{1, 1, 2, 3, 7, 140}}, dtype);
    check_case({{1, 1, 140, 3, 4, 4}, Mask::keep}, dtype);
  }
}

TEST(Attention, LongHeadsOnTheCpu) {
  if (!every_combination()) {
    GTEST_SKIP() << "too slow on a device that is executed on the host";
  }
  for (DType dtype : floating_dtypes()) {
    check_case({{1, 2, 150, 300, 64, 64}, Mask::none, true, true}, dtype);
    check_case({.n = {1, 1, 70, 130, 400, 33}, .scale = 0.05}, dtype);
  }
}

// The gradient of a mask that is broadcast over batch or heads is the sum over them.
TEST(Attention, SumsTheGradientOfARepeatedMask) {
  for (DType dtype : floating_dtypes()) {
    Problem run{{{2, 3, 5, 6, 4, 4}, Mask::add}, dtype};
    for (const Dims& own : {Dims{1, 1, 5, 6}, {2, 1, 5, 6}, {1, 3, 5, 6}}) {
      const Values one = random_values(count(own), 8);
      Values all;
      const auto at = [&](int64_t b, int64_t h) {
        return size_t(((own[0] == 1 ? 0 : b) * own[1] + (own[1] == 1 ? 0 : h)) * 30);
      };
      for (int64_t head = 0; head < 6; ++head) {
        const auto from = one.begin() + static_cast<std::ptrdiff_t>(at(head / 3, head % 3));
        all.insert(all.end(), from, from + 30);
      }
      assign(run.add, all);
      run.forward();
      StridedArray sums(dtype, own);
      run.backward(sums.view());
      const Values each = run.expected().dmask;
      Values expected(one.size());
      for (size_t i = 0; i < each.size(); ++i) {
        expected[at(int64_t(i) / 90, int64_t(i) / 30 % 3) + i % 30] += each[i];
      }
      run.expect(sums, expected, "sums of dmask");
    }
  }
}

TEST(Attention, EmptyOperands) {
  Problem no_keys{{{1, 2, 3, 0, 4, 5}}, DType::f32};
  no_keys.forward();
  EXPECT_EQ(values_of(no_keys.out), Values(30));
  no_keys.backward(kNoView);
  EXPECT_EQ(values_of(no_keys.dq), Values(24));
  Problem no_queries{{{1, 2, 0, 3, 4, 5}}, DType::f16};
  no_queries.forward();
  no_queries.backward(kNoView);
  EXPECT_EQ(values_of(no_queries.dk), Values(24));
  EXPECT_EQ(values_of(no_queries.dv), Values(30));
  Problem no_heads{{{2, 0, 3, 3, 4, 5}}, DType::f64};
  no_heads.forward();
  no_heads.backward(kNoView);
}

TEST(Attention, LargeScoresStayFiniteAndNaNSpreads) {
  for (DType dtype : {DType::f32, DType::f16}) {
    AttentionCase c{{1, 1, 2, 3, 1, 1}};
    c.scale = 100;
    Problem run{c, dtype};
    assign(run.q, {30, std::nan("")});
    assign(run.k, {2, 1, -3});
    assign(run.v, {5, 6, 7});
    run.forward();
    EXPECT_EQ(values_of(run.out)[0], 5);
    EXPECT_TRUE(std::isnan(values_of(run.out)[1]));
  }
}

TEST(Attention, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    Problem run{{.n = {2, 2, 70, 200, 16, 8}, .mask = Mask::add, .causal = true, .dropout = 0.2},
                DType::f32};
    run.forward();
    run.backward(run.dmask.view());
    std::vector<std::byte> all;
    for (const StridedArray* array : {&run.out, &run.lse, &run.dq, &run.dk, &run.dv, &run.dmask}) {
      append(all, *array);
    }
    return all;
  });
}

TEST(Attention, ErrorsNameTheProblem) {
  Problem run{{{1, 1, 2, 3, 4, 5}}, DType::f32};
  StridedArray wrong(DType::f32, {1, 1, 3, 5});
  EXPECT_EQ(error_of([&] {
              attention_forward({.q = run.q.view(),
                                 .k = wrong.view(),
                                 .v = run.v.view(),
                                 .out = run.out.view(),
                                 .lse = run.lse.view(),
                                 .scale = 1});
            }),
            "attention: got k f32 [1, 1, 3, 5], expected f32 [1, 1, 3, 4]");
}

TEST(Attention, PassesOnNarrowerIsas) {
  EXPECT_TRUE(passes_on_narrower_isas({"avx512", "avx2", "baseline"}));
}

}  // namespace
}  // namespace binade::kernels::attention_test
