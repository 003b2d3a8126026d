// Compares dropout of attention weights with a reference that uses the same random numbers, and
// with the dropout kernel applied to the whole matrix.
#include <binade/kernels/random/random.h>
#include <tests/kernels/attention/attention_problem.h>

namespace binade::kernels::attention_dropout_test {
namespace {

TEST(AttentionDropout, MatchesReference) {
  for (DType dtype : floating_dtypes()) {
    for (Mask mask : {Mask::none, Mask::keep, Mask::add}) {
      for (bool causal : {false, true}) {
        check_case({.n = {2, 2, 5, 7, 8, 9}, .mask = mask, .causal = causal, .dropout = 0.3},
                   dtype);
      }
    }
    check_case({.n = {1, 2, 67, 130, 24, 8}, .causal = true, .dropout = 0.5}, dtype);
    check_case({.n = {1, 1, 65, 37, 8, 8}, .mask = Mask::add, .dropout = 0.9}, dtype);
    check_case({.n = {1, 1, 3, 34, 66, 130}, .dropout = 0.1}, dtype);
  }
}

// If the values are one-hot vectors, the output is the matrix of weights.
TEST(AttentionDropout, DropsWhatDropoutDrops) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t keys : {37, 64}) {
      Problem run{{.n = {2, 2, 70, keys, 4, keys}, .dropout = 0.4}, dtype};
      Values one_hot(size_t(4 * keys * keys));
      for (size_t i = 0; i < size_t(4 * keys); ++i) {
        one_hot[i * size_t(keys) + i % size_t(keys)] = 1;
      }
      assign(run.v, one_hot);
      run.forward();
      StridedArray whole = make_array(dtype, run.mask_sizes, Values(count(run.mask_sizes), 1)),
                   dropped(dtype, run.mask_sizes);
      kernels::dropout({.x = whole.view(),
                        .y = dropped.view(),
                        .p = run.c.dropout,
                        .seed = kSeed,
                        .offset = kOffset});
      const Values weights = values_of(run.out), kept = values_of(dropped);
      for (size_t i = 0; i < kept.size(); ++i) {
        ASSERT_EQ(weights[i] != 0, kept[i] != 0) << i;
      }
    }
  }
}

TEST(AttentionDropout, DropsAll) {
  for (DType dtype : floating_dtypes()) {
    Problem run{{.n = {1, 2, 5, 7, 8, 9}, .dropout = 1}, dtype};
    run.forward();
    EXPECT_EQ(values_of(run.out), Values(90));
    run.backward(kNoView);
    for (const StridedArray* gradient : {&run.dq, &run.dk, &run.dv}) {
      for (double value : values_of(*gradient)) {
        ASSERT_EQ(value, 0);
      }
    }
  }
}

// A device scalar shifts the random numbers, as a captured graph needs.
TEST(AttentionDropout, Advances) {
  Problem run{{.n = {1, 1, 6, 9, 4, 4}, .dropout = 0.5}, DType::f32};
  const auto forward = [&](uint64_t offset, const View& advance) {
    attention_forward({.q = run.q.view(),
                       .k = run.k.view(),
                       .v = run.v.view(),
                       .out = run.out.view(),
                       .lse = run.lse.view(),
                       .scale = 1,
                       .dropout = {0.5, kSeed, offset, advance}});
    return values_of(run.out);
  };
  std::vector<std::byte> sixteen(8);
  sixteen[0] = std::byte{16};
  DeviceBytes word{sixteen};
  const View advance = test_view(word.device(), DType::i64, {1});
  EXPECT_EQ(forward(8, advance), forward(24, kNoView));
  EXPECT_NE(forward(8, advance), forward(8, kNoView));
}

TEST(AttentionDropout, ErrorsNameTheProblem) {
  Problem run{{{1, 1, 2, 3, 4, 5}}, DType::f32};
  run.c.dropout = 1.5;
  EXPECT_EQ(error_of([&] { run.forward(); }), "attention: got a dropout of 1.5, expected 0 to 1");
}

TEST(AttentionDropout, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::attention_dropout_test
