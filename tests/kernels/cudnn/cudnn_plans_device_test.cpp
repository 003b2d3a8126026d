// cuDNN's plans: recorded into graphs, kept for the last problems alone, destroyed after their
// work. With a stand-in for the library (fake_cudnn.cpp).
#include <tests/kernels/conv/conv2d_case.h>
#include <tests/kernels/cudnn/cudnn_fixture.h>
#include <tests/kernels/support/plan_limit.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/conv/cudnn_conv2d_internal.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/cuda/tuning_internal.h>
#include <binade/kernels/cudnn/cudnn_graph_internal.h>
#ifdef BINADE_HOST_EXECUTION
#include <binade/kernels/host/queue.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

namespace binade::kernels::cudnn_plans_device_test {
namespace {

using CudnnPlans = CudnnTest;

// A 1 x 1 convolution that a graph records.
struct RecordedConv2d {
  StridedArray x, w, y;
  View x_view, w_view, y_view;
  explicit RecordedConv2d(int64_t width)
      : x(DType::f32, {1, 3, 5, width}, kChannelsLast),
        w(DType::f32, {2, 3, 1, 1}, kChannelsLast),
        y(DType::f32, {1, 2, 5, width}, kChannelsLast) {
    x.randomize(1, true);
    w.randomize(2, true);
    x_view = x.view(), w_view = w.view(), y_view = y.view();
  }
  void run() const { conv2d_forward({.x = x_view, .w = w_view, .y = y_view}); }
  void expect_result() {
    y.each([&](const std::vector<int64_t>& at) {
      double sum = 0;
      for (int64_t c = 0; c < 3; ++c) {
        sum += x.get({0, c, at[2], at[3]}) * w.get({at[1], c, 0, 0});
      }
      EXPECT_EQ(y.get(at), sum);
    });
  }
};

// The first call of a problem may happen during a capture: plans are made there, too.
TEST_F(CudnnPlans, ACaptureRecordsThePlanAndReplaysIt) {
  RecordedConv2d conv(9);
  const int64_t before = library_conv2d_calls();
  RecordedGraph graph([&] { conv.run(); });
  EXPECT_EQ(library_conv2d_calls(), before + 1);
  graph.replay();
  conv.expect_result();
}

TEST_F(CudnnPlans, ARecordedPlanOutlivesALaterRefusal) {
  RecordedConv2d conv(10);
  RecordedGraph graph([&] { conv.run(); });
  const int64_t before = library_conv2d_calls();
  setenv(kRefuses, "execution", 1);
  conv.run();
  EXPECT_EQ(library_conv2d_calls(), before);
  fill({.y = conv.y_view, .value = -1});
  graph.replay();
  conv.expect_result();
}

std::vector<std::unique_ptr<RecordedConv2d>> convolutions(int64_t from, int64_t to) {
  std::vector<std::unique_ptr<RecordedConv2d>> all;
  for (int64_t width = from; width < to; ++width) {
    all.push_back(std::make_unique<RecordedConv2d>(width));
  }
  return all;
}

// An evicted plan is made anew when its problem returns.
TEST_F(CudnnPlans, MoreProblemsThanTheLimitWorkInBoundedMemory) {
  const PlanLimit limit(4);
  for (int round = 0; round < 2; ++round) {
    const auto all = convolutions(20, 32);
    const int64_t before = cudnn::plans_made();
    for (const auto& one : all) {
      one->run();
      EXPECT_LE(cudnn::plans_alive(), 4);
    }
    EXPECT_EQ(cudnn::plans_made() - before, 12);
    all.back()->run();
    EXPECT_EQ(cudnn::plans_made() - before, 12) << "the last ones are kept";
    for (const auto& one : all) {
      one->expect_result();
    }
  }
}

// With a limit of one, nothing but the end of a plan waits for the work that was queued last: the
// stand-in waits for the device when it makes a plan, and so do new arrays.
TEST_F(CudnnPlans, QueuedWorkEndsBeforeItsPlan) {
  const PlanLimit limit(1);
  const auto all = convolutions(60, 66);
  for (const auto& one : all) {
    one->run();
  }
  for (const auto& one : all) {
    one->expect_result();
  }
}

TEST_F(CudnnPlans, APlanWaitsForWorkOfAStreamThatIsDestroyed) {
  const PlanLimit limit(1);
  const auto all = convolutions(66, 70);
  for (const auto& one : all) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    set_current_stream(test_device(), stream);
    one->run();
    set_current_stream(test_device(), nullptr);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (const auto& one : all) {
    one->expect_result();
  }
}

#ifdef BINADE_HOST_EXECUTION
// The null stream cannot be destroyed: what must wait for its work waits for the stream.
TEST_F(CudnnPlans, CallsOnTheNullStreamRecordNoEvents) {
  const PlanLimit limit(4);
  const auto all = convolutions(70, 78);
  const int64_t before = host::runtime_counts().events;
  for (int i = 0; i < 12; ++i) {
    all[static_cast<size_t>(i) % 3]->run();
  }
  for (const auto& one : all) {
    one->run();
  }
  EXPECT_EQ(host::runtime_counts().events, before);
}
#endif

TEST_F(CudnnPlans, CapturedGraphsReplayPlansThatAreNoLongerKept) {
  const PlanLimit limit(2);
  const auto all = convolutions(40, 46);
  all[0]->run();  // its work is queued when its plan makes room in the capture
  auto graph = std::make_unique<RecordedGraph>([&] {
    for (const auto& one : all) {
      one->run();
    }
  });
  EXPECT_LE(cudnn::plans_alive(), 8) << "six that it runs, and those that made room";
  for (int64_t width = 50; width < 54; ++width) {
    RecordedConv2d(width).run();
    EXPECT_LE(cudnn::plans_alive(), 8) << "two are kept, and six by the graph";
  }
  for (const auto& one : all) {
    fill({.y = one->y_view, .value = -1});
  }
  graph->replay();
  for (const auto& one : all) {
    one->expect_result();
  }
  graph.reset();
  RecordedConv2d(54).run();
  EXPECT_EQ(cudnn::plans_alive(), 2);
}

// The file has a line for each problem, so that the second round times nothing.
TEST_F(CudnnPlans, AutoKeepsBoundedNumbersOfPlansAndChoices) {
  const PlanLimit limit(3);
  const std::string path = testing::TempDir() + "bounded-tuning-" + std::to_string(getpid());
  std::remove(path.c_str());
  set_tuning_file(path);
  set_conv2d_provider("auto");
  RecordedConv2d(79).run();
  const int64_t others = provider_choices_kept() - 1;
  for (int round = 0; round < 2; ++round) {
    const auto all = convolutions(80, 132);
    for (const auto& one : all) {
      one->run();
      EXPECT_LE(cudnn::plans_alive(), 3);
      EXPECT_LE(provider_choices_kept() - others, 3);
      EXPECT_LE(tuning_table().size(), static_cast<size_t>(3 * kTuningLines));
    }
    for (const auto& one : all) {
      one->expect_result();
    }
    std::ifstream file(path);
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 53);
  }
  set_tuning_file("");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace binade::kernels::cudnn_plans_device_test
#endif
