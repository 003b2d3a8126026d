// Shared by the tests of cuDNN's providers. They run with the stand-in for the library
// (fake_cudnn.cpp) that BINADE_CUDNN_LIBRARY names.
#pragma once
#include <tests/kernels/support/recorded_graph.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/attention/attention_provider.h>
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <binade/kernels/cudnn/cudnn_api_internal.h>
#include <binade/kernels/norm/norm_provider.h>

#include <cstdlib>
#include <string_view>

namespace binade::kernels {

constexpr const char* kRefuses = "BINADE_FAKE_CUDNN_REFUSES";

class CudnnTest : public testing::Test {
 protected:
  static void use(std::string_view provider) {
    set_conv2d_provider(provider);
    set_norm_provider(provider);
    set_attention_provider(provider);
  }
  void SetUp() override {
    if (test_device().is_cpu() || !is_named(kCudnn)) {
      GTEST_SKIP() << "BINADE_CUDNN_LIBRARY names no stand-in";
    }
    ASSERT_EQ(cudnn::missing(), "");
    keep_workspaces();
    use("library");
  }
  void TearDown() override {
    use("own");
    cudaDeviceSynchronize();
    free_workspaces();
    unsetenv(kRefuses);
  }

 private:
  // The stand-in calls cudaMalloc; without this reference the static library would not link it.
  cudaError_t (*volatile stand_in_allocates_)(void**, size_t) = cudaMalloc;
};

}  // namespace binade::kernels
#endif
