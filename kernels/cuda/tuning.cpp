// Times the candidates for a problem that is not in the table.
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cuda/tuning_internal.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <binade/kernels/cuda/launch.cuh>

namespace binade::kernels {
namespace {

constexpr int kRounds = 3;

class Timer {
 public:
  Timer() {
    check_cuda(cudaEventCreateWithFlags(&begin_, cudaEventDefault), "cudaEventCreateWithFlags");
    check_cuda(cudaEventCreateWithFlags(&end_, cudaEventDefault), "cudaEventCreateWithFlags");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  float milliseconds(const std::function<void()>& work) {
    const auto stream = static_cast<cudaStream_t>(launch_stream());
    check_cuda(cudaEventRecord(begin_, stream), "cudaEventRecord");
    work();
    check_cuda(cudaEventRecord(end_, stream), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float time = 0;
    check_cuda(cudaEventElapsedTime(&time, begin_, end_), "cudaEventElapsedTime");
    return time;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

bool capturing() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(static_cast<cudaStream_t>(launch_stream()), &status),
             "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// Times the candidates in turn, so that a change of clock affects all of them; keeps the least
// time.
size_t fastest(size_t count, const std::function<bool(size_t)>& run) {
  Timer timer;
  std::vector<float> best(count, std::numeric_limits<float>::infinity());
  std::vector<bool> able(count);
  for (size_t i = 0; i < count; ++i) {  // also the warm-up
    able[i] = run(i);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      if (able[i]) {
        best[i] = std::min(best[i], timer.milliseconds([&] { run(i); }));
      }
    }
  }
  return static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin());
}

}  // namespace

size_t tuned(const std::string& problem, std::span<const std::string_view> candidates,
             const std::function<bool(size_t)>& run) {
  const std::string key = device_facts(KernelCall::current()->device()).name + " " + problem;
  const auto known = std::find(candidates.begin(), candidates.end(), tuning_choice(key));
  if (known != candidates.end()) {
    return static_cast<size_t>(known - candidates.begin());
  }
  if (capturing()) {
    return 0;
  }
  const size_t best = fastest(candidates.size(), run);
  add_tuning(key, std::string(candidates[best]));
  return best;
}

}  // namespace binade::kernels
