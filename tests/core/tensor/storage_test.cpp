// Tests how long the memory of a storage lives, and what replaces a storage.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/parameter.h>
#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <utility>

#include <tests/core/autograd/autograd_testing.h>

namespace binade::storage_test {
namespace {

// A storage and the first tensor on it share one block, which is free after the last view only.
TEST(Storage, OutlivesItsFirstTensor) {
  const Tensor other = Tensor::from({5.0f, 6.0f, 7.0f, 8.0f});
  Tensor x = Tensor::from({1.0f, 2.0f, 3.0f, 4.0f}), y = x.reshape({2, 2});
  x = Tensor();
  const Tensor view = other.reshape({2, 2});  // would get the first tensor's place if it was free
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  y = Tensor();
  const Tensor next = full({4}, 9);  // gets the block
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_EQ(next.to_vector<float>(), (std::vector<float>{9, 9, 9, 9}));
}

// A tensor in the block of its storage must keep that storage: only a function can change it.
static_assert(
    !std::is_assignable_v<decltype((std::declval<TensorData&>().storage)), const Ref<Storage>&>);

TEST(Storage, OfARangeIsReplacedWhileHandlesAndViewsLive) {
  Tensor half_values = Tensor::from({half(1.0f), half(2.0f), half(3.0f), half(4.0f)});
  Tensor values = Tensor::from({10.0f, 20.0f, 30.0f, 40.0f});
  const Tensor range = make_range(half_values, {2}, {1}, 1), handle = range;
  Tensor before = range.reshape({2, 1});
  detail::replace_storage(range, make_range(values, {2}, {1}, 2));
  half_values = values = Tensor();
  const Tensor other = full({4}, 9);  // would get a block that was freed too early
  EXPECT_EQ(handle.to_vector<float>(), (std::vector<float>{30, 40}));
  EXPECT_EQ(before.to_vector<double>(), (std::vector<double>{2, 3}));
  before = Tensor();
  EXPECT_EQ(handle.to_vector<float>(), (std::vector<float>{30, 40}));
  const Tensor view = handle.reshape({2, 1});
  detail::replace_storage(view, make_range(other, {2, 1}, {1, 1}, 0));
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{9, 9}));
  EXPECT_EQ(handle.to_vector<float>(), (std::vector<float>{30, 40}));
}

TEST(Storage, OfAParameterIsReplacedWhenItsArenaWidens) {
  Tensor weight = Tensor::from({1.5f, -2.0f, 0.25f}), frozen = Tensor::from({{4.0f}, {-8.0f}});
  const std::shared_ptr<Arena> arena =
      Arena::build({{.name = "w", .handles = {&weight}, .dtype = DType::f16},
                    {.name = "f", .handles = {&frozen}, .trainable = false, .dtype = DType::f16}},
                   false);
  Tensor held = weight, view = weight.detach().reshape({3, 1});
  arena->widen();
  for (const Tensor& w : {weight, held}) {
    EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{1.5f, -2, 0.25f}));
  }
  EXPECT_EQ(frozen.to_vector<float>(), (std::vector<float>{4, -8}));
  EXPECT_EQ(view.dtype(), DType::f16);  // a view from before has the values from before
  EXPECT_EQ(view.to_vector<double>(), (std::vector<double>{1.5, -2, 0.25}));
  view = Tensor();
  backward(sum(weight * held));
  EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{3, -4, 0.5f}));
}

TEST(Storage, OfItsFirstTensorStays) {
  const Tensor first = Tensor::from({1.0f}), other = Tensor::from({2.0f});
  EXPECT_HAS(error_of([&] { detail::replace_storage(first, other); }),
             "replace_storage: got the first tensor on its storage");
  EXPECT_EQ(first.item(), 1);
}

}  // namespace
}  // namespace binade::storage_test
