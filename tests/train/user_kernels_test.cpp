// Tests users' kernels in place of ours: every function of user_kernel.h against Binade's own (by
// the comparison of the first calls), a training, and every kind of mistake.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/base/provider.h>
#include <binade/kernels/user/user_kernels.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>
#include <tests/support/error_of.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>

namespace binade::user_kernels_test {
namespace {

std::string module_path(const char* name) {
  return std::string(BINADE_BIN_DIR) + "/libuser_" + name + ".so";
}

bool has_emulated_device() {
  return error_of([] { Device::parse("emulated"); }) == "none";
}

std::vector<Device> user_devices() {
  std::vector<Device> devices{Device{}};
  if (has_emulated_device()) {
    devices.push_back(Device::parse("emulated"));
  }
  return devices;
}

void expect_error(const std::function<void()>& f, const std::string& message) {
  EXPECT_NE(error_of(f).find(message), std::string::npos) << error_of(f);
}

// Resets all operations to Binade's own at the end of a test.
class UserKernels : public testing::Test {
 protected:
  void SetUp() override { kernels::set_user_kernel_checks(1000); }
  void TearDown() override {
    for (const std::string_view name : kernels::user_kernel_names()) {
      kernels::set_user_kernel(name, "");
    }
  }
};

Tensor leaf(const Dims& sizes, Device device) {
  Tensor t = randn(sizes, DType::f32, device);
  return t.require_grad();
}

// Runs backward with a random gradient.
void backward_of(const Tensor& y) { sum(y * randn(y.sizes(), y.dtype(), y.device())).backward(); }

struct UserCase {
  const char* kernel;
  int64_t calls;  // calls of the user's object
  std::function<void(Device device)> run;
};

const std::vector<UserCase>& user_cases() {
  static const std::vector<UserCase> cases{
      {"softmax", 4,
       [](Device d) {
         backward_of(softmax(leaf({5, 3, 33}, d)));
         backward_of(log_softmax(leaf({7, 19}, d)));
       }},
      {"reduce", 4,
       [](Device d) {
         const Tensor x = randn({3, 17, 5, 7}, DType::f32, d);
         sum(x);
         mean(x, {1});
         sum(x, {1, 2});
         sum(x, {-1}, true);
       }},
      {"layer_norm", 2,
       [](Device d) {
         backward_of(layer_norm(leaf({9, 37}, d), {37}, leaf({37}, d), leaf({37}, d)));
       }},
      {"rms_norm", 2,
       [](Device d) {
         backward_of(rms_norm(leaf({4, 5, 21}, d), {21}, leaf({21}, d)));
       }},
      {"batch_norm", 1,
       [](Device d) {
         const Tensor mean = zeros({6}, DType::f32, d), var = ones({6}, DType::f32, d);
         backward_of(batch_norm(leaf({5, 6, 3, 7}, d), leaf({6}, d), leaf({6}, d), mean, var,
                                {.training = true}));
       }},
      {"group_norm", 1,
       [](Device d) {
         backward_of(group_norm(leaf({3, 6, 5, 3}, d), 2, leaf({6}, d), leaf({6}, d)));
       }},
      {"attention", 2,
       [](Device d) {
         const Tensor q = leaf({2, 3, 11, 8}, d), k = leaf({2, 3, 13, 8}, d);
         backward_of(scaled_dot_product_attention(q, k, leaf({2, 3, 13, 5}, d)));
         const Tensor v = leaf({2, 3, 11, 8}, d);
         backward_of(scaled_dot_product_attention(q, q, v, {.is_causal = true}));
       }},
      {"gemm", 5,
       [](Device d) {
         const Tensor x = leaf({13, 21}, d), w = leaf({9, 21}, d), b = leaf({9}, d);
         backward_of(linear(x, w, b, Activation::relu));
         backward_of(bmm(leaf({2, 3, 5}, d), randn({2, 5, 4}, DType::f32, d)));
       }},
      {"conv2d", 3,
       [](Device d) {
         backward_of(conv2d(leaf({2, 4, 9, 7}, d), leaf({6, 2, 3, 3}, d), leaf({6}, d),
                            {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}));
       }},
  };
  return cases;
}

TEST_F(UserKernels, EveryFunctionGivesWhatOursGives) {
  for (const Device device : user_devices()) {
    for (const UserCase& one : user_cases()) {
      manual_seed(7);
      kernels::set_user_kernel(one.kernel, module_path("right"));
      EXPECT_EQ(kernels::user_kernel(one.kernel), module_path("right"));
      EXPECT_NO_THROW(one.run(device)) << one.kernel;
      EXPECT_EQ(kernels::user_kernel_calls(one.kernel), one.calls)
          << one.kernel << " on " << to_string(device);
      kernels::set_user_kernel(one.kernel, "");
    }
  }
}

TEST_F(UserKernels, CallsThatItDoesNotComputeAreOurs) {
  const Tensor x = randn({5, 33}).to(DType::f64), narrow_x = randn({4, 6});
  const Tensor expected = softmax(x), expected_columns = softmax(narrow_x, 0);
  kernels::set_user_kernel("softmax", module_path("right"));
  EXPECT_EQ(softmax(x).to_vector<double>(), expected.to_vector<double>());  // f64 is declined
  EXPECT_EQ(softmax(narrow_x, 0).to_vector<float>(), expected_columns.to_vector<float>());
  EXPECT_EQ(softmax(zeros({0, 3})).numel(), 0);
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 0);
  kernels::set_user_kernel("softmax", module_path("forward_only"));
  backward_of(softmax(leaf({5, 7}, Device{})));
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 1);
}

TEST_F(UserKernels, AWrongResultNamesItsElement) {
  kernels::set_user_kernel("softmax", module_path("wrong"));
  expect_error(
      [&] {
        softmax(randn({4, 5}));
      },
      "binade_softmax_forward of " + module_path("wrong"));
  expect_error([&] { softmax(randn({4, 5})); }, "element 19 of its result 1 (f32 [4, 5])");
  expect_error([&] { softmax(randn({4, 5})); }, "1 of 20 elements differ");
  kernels::set_user_kernel_checks(0);
  kernels::set_user_kernel("softmax", module_path("wrong"));
  EXPECT_NO_THROW(softmax(randn({4, 5})));
  kernels::set_user_kernel_checks(2);  // compares the first two calls only
  kernels::set_user_kernel("softmax", module_path("right"));
  for (int i = 0; i < 4; ++i) {
    softmax(randn({4, 5}));
  }
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 4);
}

TEST_F(UserKernels, AFailureIsAnError) {
  kernels::set_user_kernel("softmax", module_path("failing"));
  expect_error(
      [&] {
        softmax(randn({4, 5}));
      },
      "returned 7 for f32 [4, 5] on cpu, expected 0 (done)");
}

TEST_F(UserKernels, AnExceptionIsAnError) {
  for (const Device device : user_devices()) {
    const Tensor x = randn({4, 5}, DType::f32, device);
    for (const auto& [module, what] : {std::pair{"throwing", ": no memory"},
                                       {"throwing_number", " that is no std::exception"}}) {
      kernels::set_user_kernel("softmax", module_path(module));
      expect_error([&] { softmax(x); }, text("binade_softmax_forward of ", module_path(module),
                                             ": threw an exception", what, "; expected"));
    }
  }
}

TEST_F(UserKernels, WhatCannotBeLoadedChangesNothing) {
  kernels::set_user_kernel("softmax", module_path("right"));
  const auto refused = [](const char* kernel, const std::string& path, const char* message) {
    expect_error([&] { kernels::set_user_kernel(kernel, path); }, message);
  };
  refused("softmax", "/no/such/file.so", "softmax: /no/such/file.so: not loaded");
  refused("softmax", "no_such_file.so", "not loaded");
  refused("softmax", std::string(BINADE_SOURCE_DIR) + "/README.md", "not loaded");
  refused("softmax", module_path("no_version"), "it has no symbol binade_user_kernels");
  refused("softmax", module_path("other_version"), "got version 99 of user_kernel.h, expected 1");
  refused("softmax", module_path("no_device"), "got devices 64, expected a sum of");
  refused("softmax", module_path("empty"),
          "it has no function binade_softmax_forward or binade_softmax_backward");
  refused("softmx", module_path("right"), "got the kernel \"softmx\", expected one of softmax, ");
  EXPECT_EQ(kernels::user_kernel("softmax"), module_path("right"));
  expect_error([&] { kernels::user_kernel("x"); }, "got the kernel \"x\"");
  expect_error([&] { kernels::set_user_kernel_checks(-1); }, "got -1, expected a number of calls");
}

struct UserNet : nn::Module {
  UserNet()
      : first(*this, "first", {.in = 6, .out = 16}),
        norm(*this, "norm", {.normalized_shape = {16}}),
        last(*this, "last", {.in = 16, .out = 3}) {}
  Tensor forward(const Tensor& x) override {
    const Tensor h = norm(relu(first(x)));
    return last(h * softmax(h));
  }
  nn::Linear first;
  nn::LayerNorm norm;
  nn::Linear last;
};

std::vector<float> train_net() {
  manual_seed(3);
  UserNet net;
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  const Tensor x = randn({32, 6}), y = randn({32, 3});
  std::vector<float> losses;
  for (int step = 0; step < 30; ++step) {
    const Tensor difference = net(x) - y;
    const Tensor loss = mean(difference * difference);
    loss.backward();
    static_cast<void>(sgd.step());
    sgd.zero_grad();
    losses.push_back(static_cast<float>(loss.item()));
  }
  return losses;
}

TEST_F(UserKernels, TrainAModel) {
  const std::vector<float> own = train_net();
  kernels::set_user_kernel_checks(2);
  for (const char* kernel : {"softmax", "layer_norm", "gemm", "reduce"}) {
    kernels::set_user_kernel(kernel, module_path("right"));
  }
  const std::vector<float> user = train_net();
  EXPECT_LT(user.back(), 0.9F * user.front());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_NEAR(user[i], own[i], 1e-4 * own[0]) << i;
  }
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 60);
  EXPECT_EQ(kernels::user_kernel_calls("layer_norm"), 60);
  EXPECT_GE(kernels::user_kernel_calls("gemm"), 150);
}

TEST_F(UserKernels, TheSampleTrains) {
  if (!std::filesystem::exists(module_path("softmax"))) {
    GTEST_SKIP() << "samples were not built";
  }
  const std::vector<float> own = train_net();
  kernels::set_user_kernel("softmax", module_path("softmax"));
  const std::vector<float> user = train_net();
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_NEAR(user[i], own[i], 1e-4 * own[0]) << i;
  }
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 60);  // forward and backward
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor odd = Tensor::from(std::vector<float>{1, float(-inf), 3, 200, 100, -5}, {2, 3});
  EXPECT_NO_THROW(softmax(odd));  // it is compared with ours
  EXPECT_NO_THROW(log_softmax(odd));
}

TEST_F(UserKernels, ALauncherOfTheDevice) {
  if (!std::filesystem::exists(module_path("launcher"))) {
    GTEST_SKIP() << "a build for the emulated device, with shared libraries";
  }
  kernels::set_user_kernel("softmax", module_path("launcher"));
  const Device device = Device::parse("emulated");
  backward_of(softmax(leaf({70, 9}, device)));
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 1);
  softmax(randn({3, 4}));  // there is none for the CPU
  EXPECT_EQ(kernels::user_kernel_calls("softmax"), 1);
}

TEST(ProviderTable, NamesOfFamiliesAndProviders) {
  using kernels::provider;
  using kernels::set_provider;
  for (const char* family : {"gemm", "conv2d", "softmax", "norm", "reduce", "attention"}) {
    EXPECT_EQ(provider(family), "auto") << family;
    set_provider(family, "own");
    EXPECT_EQ(provider(family), "own") << family;
    expect_error([&] { set_provider(family, "fastest"); },
                 "provider \"fastest\", expected one of own, ");
    set_provider(family, "auto");
  }
  expect_error([&] { set_provider("softmax", "library"); }, "expected one of own, auto");
  expect_error([&] { set_provider("sofmax", "own"); },
               "got the family \"sofmax\", expected one of gemm, conv2d, softmax, norm, reduce, "
               "attention");
}

// The environment is read at the first call of a process, so this needs a new process.
int softmax_in_new_process() {
  for (const Device device : user_devices()) {
    try {
      softmax(zeros({2, 3}, DType::f32, device));
    } catch (const Error& error) {
      std::fprintf(stderr, "ERROR %s\n", error.what());
      continue;
    }
    std::fprintf(stderr, "DONE %lld\n",
                 static_cast<long long>(kernels::user_kernel_calls("softmax")));
  }
  return 0;
}

struct Setting {
  const char *variable, *value, *message;
};

TEST(UserKernelEnvironment, IsCheckedOnEveryDevice) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string right = "softmax:" + module_path("right");
  const std::string unknown = "sofmax:" + module_path("right");
  const Setting settings[] = {
      {"BINADE_NORM", "fast", "ERROR BINADE_NORM: got the norm provider \"fast\""},
      {"BINADE_ATTENTION", "x", "ERROR BINADE_ATTENTION: got the attention provider"},
      {"BINADE_GEMM", "x", "ERROR BINADE_GEMM: got the gemm provider"},
      {"BINADE_SOFTMAX", "library", "ERROR BINADE_SOFTMAX: .*expected one of own, auto"},
      {"BINADE_REDUCE", "x", "ERROR BINADE_REDUCE: got the reduce provider"},
      {"BINADE_KERNEL", "softmax", "ERROR BINADE_KERNEL: .*expected KERNEL:FILE.so"},
      {"BINADE_KERNEL", "softmax:", "ERROR BINADE_KERNEL: .*expected KERNEL:FILE.so"},
      {"BINADE_KERNEL", unknown.c_str(), "ERROR BINADE_KERNEL: got the kernel \"sofmax\""},
      {"BINADE_KERNEL", "softmax:/no/file.so", "ERROR BINADE_KERNEL: softmax: /no/file.so"},
      {"BINADE_KERNEL_CHECK", "2x", "ERROR BINADE_KERNEL_CHECK: got \"2x\""},
      {"BINADE_KERNEL", right.c_str(), "DONE 1"},
  };
  for (const Setting& one : settings) {
    setenv(one.variable, one.value, 1);
    EXPECT_EXIT(std::exit(softmax_in_new_process()), testing::ExitedWithCode(0), one.message)
        << one.variable << "=" << one.value;
    if (user_devices().size() > 1 && one.message[0] == 'E') {
      EXPECT_EXIT(std::exit(softmax_in_new_process()), testing::ExitedWithCode(0),
                  "ERROR [^\n]*\n(.*\n)?ERROR ")
          << one.variable << "=" << one.value;
    }
    unsetenv(one.variable);
  }
}

}  // namespace
}  // namespace binade::user_kernels_test
