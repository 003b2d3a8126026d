// Parts of a model on two emulated devices with deferred streams give the same numbers as on the
// CPU.
#include <binade/core/device/stream.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/parallel/pipeline.h>
#include <binade/kernels/host/queue.h>
#include <binade/nn/fusion_internal.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace binade::placement_test {
namespace {

namespace host = kernels::host;

// Must run before anything asks for the devices.
const bool kConfigured = [] {
  setenv("BINADE_HOST_DEVICES", "2", 1);
  host::stream_options().deferred = true;
  return true;
}();

constexpr Device kFirst{Device::kEmulated, 0}, kSecond{Device::kEmulated, 1};

struct Parts {
  Parts(Device at, Device then) {
    manual_seed(7);
    encoder = std::make_unique<nn::MLP>(nn::MLPOptions{.in = 5, .hidden = {8}, .classes = 6});
    decoder = std::make_unique<nn::MLP>(nn::MLPOptions{.in = 6, .hidden = {8}, .classes = 3});
    encoder->to(at);
    decoder->to(then);
    encoder->to(DType::f64);
    decoder->to(DType::f64);
  }
  std::unique_ptr<nn::MLP> encoder, decoder;
};

struct Batch {
  Batch() {
    manual_seed(8);
    x = randn({9, 5}).to(DType::f64);
    target = empty({9}, DType::i64);
    for (int64_t i = 0; i < 9; ++i) {
      target.data<int64_t>()[i] = i % 3;
    }
  }
  Tensor x, target;
};

Tensor loss_of(const Tensor& y, const Tensor& target) { return nn::cross_entropy(y, target); }

void expect_same_gradients(nn::Module& got, nn::Module& expected, const char* what) {
  const ParameterList a = got.parameters(), b = expected.parameters();
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor u = a[i].value.grad().to(Device{}), v = b[i].value.grad();
    for (int64_t k = 0; k < u.numel(); ++k) {
      ASSERT_NEAR(u.at(k), v.at(k), 1e-12) << what << " " << a[i].name;
    }
  }
}

TEST(Placement, GradientsMoveBackToTheirDevice) {
  ASSERT_TRUE(kConfigured);
  const Batch batch;
  Parts whole({}, {});
  loss_of((*whole.decoder)((*whole.encoder)(batch.x)), batch.target).backward();
  for (const uint64_t seed : {0, 1, 2, 3, 4}) {
    host::stream_options().seed = seed;
    Parts parts(kFirst, kSecond);
    const Tensor h = (*parts.encoder)(batch.x.to(kFirst)).to(kSecond);
    loss_of((*parts.decoder)(h), batch.target.to(kSecond)).backward();
    expect_same_gradients(*parts.encoder, *whole.encoder, "encoder");
    expect_same_gradients(*parts.decoder, *whole.decoder, "decoder");
  }
}

TEST(Placement, PipelineEqualsOneDevice) {
  const Batch batch;
  Parts whole({}, {});
  const Tensor loss = loss_of((*whole.decoder)((*whole.encoder)(batch.x)), batch.target);
  loss.backward();
  for (const auto schedule :
       {dist::PipelineSchedule::gpipe, dist::PipelineSchedule::one_forward_one_backward}) {
    for (const uint64_t seed : {0, 1, 2, 3}) {
      host::stream_options().seed = seed;
      const StreamGuard first{Stream(kFirst)}, second{Stream(kSecond)};
      Parts parts(kFirst, kSecond);
      dist::Pipeline pipeline({{kFirst, [&](const Tensor& x) { return (*parts.encoder)(x); }},
                               {kSecond, [&](const Tensor& x) { return (*parts.decoder)(x); }}},
                              {.micro_batches = 3, .schedule = schedule});
      EXPECT_NEAR(pipeline.step(batch.x, batch.target, loss_of), loss.item(), 1e-12);
      expect_same_gradients(*parts.encoder, *whole.encoder, "encoder");
      expect_same_gradients(*parts.decoder, *whole.decoder, "decoder");
    }
  }
}

TEST(Placement, OpsOfTwoDevicesAreRefused) {
  const Tensor a = ones({3}, DType::f32, kFirst), b = ones({3}, DType::f32, kSecond);
  const Device third = Device::parse("cpu:3");
  EXPECT_THROW(a + b, Error);
  try {
    ones({3}).to(third) + ones({3});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "add: got inputs on cpu:3 and cpu, expected one device; move them with to()");
  }
}

// Fusing a batch norm into its convolution does not avoid the check either.
TEST(Placement, OperandsOfAConvolutionAndItsNormAreOnOneDevice) {
  nn::Conv2d conv({.in = 3, .out = 4, .kernel = 3});
  nn::BatchNorm2d norm({.channels = 4});
  norm.eval();
  const NoGradGuard guard;
  const Tensor x = ones({2, 3, 5, 5}), residual = ones({2, 4, 3, 3});
  const auto run = [&](const Tensor& x, const Tensor& residual) {
    return nn::Fusion::run({.first = conv, .norm = &norm, .residual = residual, .relu = true}, x);
  };
  run(x, residual);
  for (const Device elsewhere : {kFirst, Device::parse("cpu:3")}) {
    EXPECT_THROW(run(x, residual.to(elsewhere)), Error);
    EXPECT_THROW(run(x.to(elsewhere), residual), Error);
  }
}

}  // namespace
}  // namespace binade::placement_test
