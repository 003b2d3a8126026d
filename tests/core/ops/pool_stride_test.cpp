// Sizes of windows: without a stride they are adjacent, and one number stands for both dimensions,
// as in PyTorch.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <tests/kernels/support/test_device.h>

namespace binade::pool_stride_test {
namespace {

using Pool = Tensor (*)(const Tensor&, const Pool2dOptions&);

// Result and gradient must equal those with a stride equal to the kernel.
void expect_kernel_as_stride(Pool pool, const Pool2dOptions& options, const Pool2dOptions& given) {
  manual_seed(11);
  const Tensor base = randn({2, 3, 11, 9}).to(kernels::test_device());
  Tensor results[2], gradients[2];
  for (int i = 0; i < 2; ++i) {
    Tensor x = base.detach();
    x.require_grad();
    results[i] = pool(x, i == 0 ? options : given);
    manual_seed(12);
    backward(sum(results[i] * randn(results[i].sizes()).to(kernels::test_device())));
    gradients[i] = x.grad();
  }
  ASSERT_EQ(results[0].sizes(), results[1].sizes());
  EXPECT_TRUE(all(eq(results[0], results[1])).item() != 0);
  EXPECT_TRUE(all(eq(gradients[0], gradients[1])).item() != 0);
}

TEST(PoolStride, IsTheKernelWhereNotGiven) {
  for (const Pool pool : {max_pool2d, avg_pool2d}) {
    expect_kernel_as_stride(pool, {.kernel = {2, 2}}, {.kernel = {2, 2}, .stride = {2, 2}});
    expect_kernel_as_stride(
        pool, {.kernel = {3, 2}, .padding = {1, 0}, .ceil_mode = true},
        {.kernel = {3, 2}, .stride = {3, 2}, .padding = {1, 0}, .ceil_mode = true});
  }
  const Tensor x = randn({1, 2, 8, 6});
  EXPECT_EQ(max_pool2d(x, {.kernel = {2, 3}}).sizes(), (Dims{1, 2, 4, 2}));
  EXPECT_EQ(avg_pool2d(x, {.kernel = {2, 3}}).sizes(), (Dims{1, 2, 4, 2}));
}

// One number for a pair of them was {number, 0} where the pair was an array.
TEST(PoolStride, OneNumberStandsForBoth) {
  const Tensor x = randn({1, 2, 9, 7}).to(kernels::test_device());
  const Tensor w = randn({3, 2, 3, 3}).to(kernels::test_device());
  EXPECT_TRUE(equal(conv2d(x, w, {}, {.stride = 2, .padding = 1, .dilation = 2}),
                    conv2d(x, w, {}, {.stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}})));
  const Tensor back = randn({3, 2, 3, 3}).to(kernels::test_device());
  const Tensor y = conv2d(x, w, {}, {.padding = 1});
  EXPECT_EQ(y.sizes(), (Dims{1, 3, 9, 7}));
  EXPECT_TRUE(
      equal(conv_transpose2d(y, back, {}, {.stride = 2, .padding = 1, .output_padding = 1}),
            conv_transpose2d(y, back, {},
                             {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}})));
  for (const Pool pool : {max_pool2d, avg_pool2d}) {
    EXPECT_TRUE(equal(pool(x, {.kernel = 3, .stride = 2, .padding = 1}),
                      pool(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}})));
    EXPECT_EQ(pool(x, {.kernel = 2}).sizes(), (Dims{1, 2, 4, 3}));
  }
}

TEST(PoolStride, OfZeroIsAnError) {
  const Tensor x = randn({1, 2, 8, 6});
  EXPECT_THROW(max_pool2d(x, {.kernel = {2, 2}, .stride = {0, 2}}), Error);
  EXPECT_THROW(avg_pool2d(x, {.kernel = {2, 2}, .stride = {2, 0}}), Error);
}

}  // namespace
}  // namespace binade::pool_stride_test
