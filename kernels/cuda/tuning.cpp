// Decides problems that are not in the table.
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cuda/tuning_internal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
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

struct Timing {
  bool able = false;
  float milliseconds = std::numeric_limits<float>::infinity();
  std::string why;  // it is not able
};

// Times the candidates in turn, so that a change of clock affects all of them; keeps the least
// time. The first run of each is the warm-up.
std::vector<Timing> time_all(const std::vector<Candidate>& candidates, const ProviderCall& call) {
  std::vector<Timing> timings(candidates.size());
  int able = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Timing& timing = timings[i];
    timing.why = candidates[i].hopeless;
    timing.able = timing.why.empty() && call.run(candidates[i].variant, timing.why);
    able += timing.able;
  }
  if (able < 2) {
    return timings;
  }
  Timer timer;
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (timings[i].able) {
        timings[i].milliseconds = std::min(timings[i].milliseconds, timer.milliseconds([&] {
          std::string ignored;
          call.run(candidates[i].variant, ignored);
        }));
      }
    }
  }
  return timings;
}

std::string reason_of(const std::vector<Candidate>& candidates,
                      const std::vector<Timing>& timings) {
  std::string timed, others;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Timing& t = timings[i];
    if (t.able && t.milliseconds != std::numeric_limits<float>::infinity()) {
      timed += text(timed.empty() ? "" : ", ", candidates[i].name, " ",
                    std::round(t.milliseconds * 10000) / 10, " us");
    } else if (!t.able) {
      others += text(others.empty() ? "" : ", ", candidates[i].name, " (", t.why, ")");
    }
  }
  return text(timed.empty() ? "the only one that is worth a try" : timed,
              others.empty() ? "" : "; not timed: ", others);
}

ProviderChoice decide(const ProviderCall& call) {
  const std::string problem = device_facts(call.device).name + " " + call.name();
  const std::vector<Candidate> candidates = call.candidates();
  const TuningLine known = find_tuning(problem);
  for (const Candidate& candidate : candidates) {
    if (known && candidate.name == known->choice && candidate.hopeless.empty()) {
      return {candidate.variant, known};
    }
  }
  const std::vector<Timing> timings = time_all(candidates, call);
  size_t best = 0;
  for (size_t i = 1; i < timings.size(); ++i) {
    best = timings[i].milliseconds < timings[best].milliseconds ? i : best;
  }
  return {candidates[best].variant,
          add_tuning(problem, std::string(candidates[best].name), reason_of(candidates, timings))};
}

// Times of the emulated device mean nothing, but a tuning file asks for a table anyway.
bool times_mean_something() {
#ifdef BINADE_HOST_EXECUTION
  return !tuning_file().empty();
#else
  return true;
#endif
}

std::atomic<int64_t> choices_kept{0};

}  // namespace

int64_t provider_choices_kept() { return choices_kept; }

void ProviderChoices::forget_old_table() {
  if (version_ != tuning_version()) {
    version_ = tuning_version();
    choices_kept -= known_.size();
    known_ = {};
  }
}

void ProviderChoices::keep(const Key& key, const ProviderChoice& choice) {
  if (ProviderChoice* known = known_.find(key)) {  // another thread decided it, too
    *known = choice;
    return;
  }
  while (known_.take_beyond(plan_limit() - 1)) {
    --choices_kept;
  }
  known_.add(key, choice);
  ++choices_kept;
}

KernelVariant ProviderChoices::choose(const ProviderCall& call) {
  if (!times_mean_something()) {
    return KernelVariant::fitting;
  }
  Key key{call.device.index};
  key.insert(key.end(), call.key.begin(), call.key.end());
  {
    const std::lock_guard lock(mutex_);
    forget_old_table();
    if (const ProviderChoice* known = known_.find(key)) {
      return known->variant;
    }
  }
  if (capturing()) {
    return KernelVariant::fitting;
  }
  const ProviderChoice choice = decide(call);
  const std::lock_guard lock(mutex_);
  keep(key, choice);
  return choice.variant;
}

}  // namespace binade::kernels
