// grid_sample, affine_grid and embedding_bag beside values of PyTorch 2.15: positions far outside
// of the image, empty sizes, gradients of gradients. Runs on the device that BINADE_TEST_DEVICE
// names.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include <tests/support/error_of.h>

namespace binade::sampling_test {
namespace {

using Values = std::vector<double>;

Device device() {
  const char* name = std::getenv("BINADE_TEST_DEVICE");
  return name ? Device::parse(name) : Device{};
}

Tensor made(std::initializer_list<double> list, const Dims& sizes, DType dtype = DType::f64) {
  return from_values(list, sizes, dtype, device());
}
Tensor whole(std::initializer_list<double> list, const Dims& sizes) {
  return made(list, sizes, DType::i64);
}
Values values(const Tensor& x) { return cast(x, DType::f64).to(Device{}).to_vector<double>(); }

void expect_near(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-5) << "element " << i;
  }
}

// Where the remainder of PyTorch's CPU rounds (1e30 and 3e9 with align_corners), the exact one.
TEST(GridSampleValues, PositionsFarOutside) {
  const Tensor x = reshape(arange(1, 13, 1, DType::f32, device()), {1, 1, 3, 4});
  const Tensor columns = made({1e30, -1e30, -7.3, 2.5, 3e9, -1e5}, {6}, DType::f32);
  const Tensor rows = full({6}, .1, DType::f32, device());
  const auto check_case = [&](const GridSampleOptions& options, const Values& want,
                              const Values& slopes) {
    Tensor grid = reshape(stack({columns, rows}, 1), {1, 1, 6, 2}).detach();
    grid.require_grad();
    const Tensor y = grid_sample(x, grid, options);
    expect_near(values(y), want);
    sum(y).backward();
    expect_near(values(select(grid.grad(), 3, 0)), slopes);
  };
  const Values none(6);
  const GridPadding mirror = GridPadding::reflection;
  check_case({}, none, none);
  check_case({.padding = GridPadding::border}, {8.6, 5.6, 5.6, 8.6, 8.6, 5.6}, none);
  check_case({.padding = mirror}, {5.6, 5.6, 8.5, 6.1, 5.6, 7.1}, {0, 0, 2, -2, 0, 2});
  check_case({.padding = mirror, .align_corners = true}, {7.4, 7.4, 7.95, 6.15, 7.4, 6.9},
             {-1.5, 1.5, 1.5, -1.5, 1.5, 1.5});
  check_case({.mode = Interpolation::nearest, .padding = mirror}, {5, 5, 8, 5, 5, 7}, none);
}

TEST(GridSampleValues, APictureTurnedByAnAffineGrid) {
  const Tensor x = made({1, 2, 3, 4}, {1, 1, 2, 2}), turn = made({0, 1, 0, -1, 0, 0}, {1, 2, 3});
  const Tensor grid = affine_grid(turn, 2, 2);
  EXPECT_EQ(values(grid), (Values{-.5, .5, -.5, -.5, .5, .5, .5, -.5}));
  EXPECT_EQ(values(grid_sample(x, grid)), (Values{3, 1, 4, 2}));
}

TEST(EmbeddingBagValues, PaddingEmptyBagsAndEmptySizes) {
  const Tensor w = reshape(arange(12, DType::f64, device()), {4, 3});
  const Tensor matrix = whole({1, 1, 2, 1}, {2, 2}), none = whole({}, {0});
  const Tensor pair = whole({0, 2}, {2}), no_rows = narrow(w, 0, 0, 0),
               no_columns = narrow(w, 1, 0, 0);
  for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    const EmbeddingBagOptions options{.mode = mode};
    EXPECT_EQ(values(embedding_bag(w, matrix, {}, {}, {.mode = mode, .padding_idx = 1})),
              (Values{0, 0, 0, 6, 7, 8}));
    EXPECT_EQ(embedding_bag(w, none, none, {}, options).sizes(), (Dims{0, 3}));
    EXPECT_EQ(embedding_bag(w, whole({}, {0, 3}), {}, {}, options).sizes(), (Dims{0, 3}));
    EXPECT_EQ(values(embedding_bag(no_rows, none, whole({0, 0}, {2}), {}, options)), Values(6));
    EXPECT_EQ(embedding_bag(no_columns, pair, whole({0, 1}, {2}), {}, options).sizes(),
              (Dims{2, 0}));
  }
  EXPECT_EQ(
      values(embedding_bag(transpose(w, 0, 1), pair, whole({0}, {1}), {}, {.mode = BagMode::sum})),
      (Values{2, 8, 14, 20}));
  EXPECT_EQ(values(embedding_bag(w, pair, whole({0, 0, 2}, {3}), {}, {.mode = BagMode::max})),
            (Values{0, 0, 0, 6, 7, 8, 0, 0, 0}));
  EXPECT_EQ(error_of([&] { embedding_bag(w, matrix, {}, ones_like(w)); }),
            "embedding_bag: got per_sample_weights of a mean or maximum, expected them of a sum; "
            "choose BagMode::sum");
}

TEST(SecondDerivatives, OfAffineGridAndEmbeddingBag) {
  const auto check_twice = [](const std::function<Tensor(const Tensor&)>& f) {
    Tensor leaf = from_values({.5, 2, -1, 3.25, 1, -2}, {2, 3}, DType::f64);
    leaf.require_grad();
    EXPECT_NO_THROW(gradgradcheck([&](const auto& in) { return f(in[0]); }, {leaf}));
  };
  check_twice([](const Tensor& t) { return affine_grid(reshape(t, {1, 2, 3}), 2, 3); });
  const Tensor index = from_values({1, 0, 1, 1}, {2, 2}, DType::i64);
  for (const BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
    check_twice(
        [&](const Tensor& t) { return embedding_bag(square(t), index, {}, {}, {.mode = mode}); });
  }
}

}  // namespace
}  // namespace binade::sampling_test
