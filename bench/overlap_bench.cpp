// overlap_bench trains data parallel over links of several speeds, simulated by threads with a
// delay (dist/transport/delayed_transport.h). It prints how much of the communication is not hidden
// behind backward, and writes a trace for chrome://tracing or Perfetto that shows the buckets next
// to the backward of rank 0.
//
//   overlap_bench [RANKS [TRACE.json]]
#include <binade/core/autograd/node.h>
#include <binade/core/observe/chrome_trace.h>
#include <binade/core/observe/observer.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/kernels/base/parallel.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace binade::dist {
namespace {

constexpr int64_t kWidth = 448, kLayers = 24, kClasses = 10, kBatch = 256;
constexpr int kSteps = 9;  // after one warm-up step; medians are printed

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Records the backward of every op of this thread as a span.
class BackwardSpans : public OpObserver {
 public:
  void upstream(const GradientEvent& event) override { begin_ = event.gradients ? begin_ : now(); }
  void gradients(const GradientEvent& event) override {
    spans.push_back({event.node.name(), 0, begin_, now()});
  }
  std::vector<TraceSpan> spans;

 private:
  double begin_ = 0;
};

struct Result {
  Overlap overlap;
  int kept = 1;  // number of steps whose exposed time was within the bound
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result median(const std::vector<Result>& results) {
  const auto of = [&](auto&& get) {
    std::vector<double> values;
    for (const Result& result : results) {
      values.push_back(get(result));
    }
    return median(std::move(values));
  };
  Result middle;
  middle.overlap.communication = of([](const Result& r) { return r.overlap.communication; });
  middle.overlap.tail = of([](const Result& r) { return r.overlap.tail; });
  middle.overlap.exposed = of([](const Result& r) { return r.overlap.exposed; });
  middle.kept = static_cast<int>(std::count_if(results.begin(), results.end(), [](const Result& r) {
    return r.overlap.exposed <= r.overlap.bound();
  }));
  return middle;
}

// Trains, and writes a trace of the last step if `trace` is given.
Result train(Communicator& group, std::string* trace) {
  manual_seed(1);
  nn::MLP model({.in = kWidth,
                 .hidden = std::vector<int64_t>(static_cast<size_t>(kLayers), kWidth),
                 .classes = kClasses});
  // The size makes one bucket for each layer.
  DistributedDataParallel ddp(group, model.parameters(),
                              {.bucket_bytes = 4 * kWidth * (kWidth + 1), .check_every = 0});
  const Tensor x = randn({kBatch, kWidth}), target = zeros({kBatch}, DType::i64);
  std::vector<Result> results;
  for (int step = 0; step <= kSteps; ++step) {
    const Tensor loss = nn::cross_entropy(model(x), target);
    group.barrier();
    BackwardSpans spans;
    {
      const ObserverScope scope(spans);
      loss.backward();
    }
    const std::vector<BucketTimes> buckets = ddp.last_reduction();
    if (step > 0) {
      results.push_back({overlap_of(buckets)});
    }
    if (trace && step == kSteps) {
      const double start = spans.spans.front().begin;
      for (TraceSpan& span : spans.spans) {
        span.begin -= start;
        span.end -= start;
      }
      // The last backward span ends when the last gradient is ready.
      const double origin = spans.spans.back().end - buckets.back().ready;
      for (size_t b = 0; b < buckets.size(); ++b) {
        spans.spans.push_back({text("bucket ", b, ", ", buckets[b].bytes, " bytes"), 1,
                               origin + buckets[b].begin, origin + buckets[b].end});
      }
      const std::vector<std::string> rows = {"backward", "all-reduce"};
      *trace = chrome_trace(rows, spans.spans);
    }
    for (const Parameter& p : model.parameters()) {
      p.value.zero_grad();
    }
  }
  return median(results);
}

Result train_over(int ranks, const LinkDelay& link, std::string* trace) {
  Result result;
  run_threads(ranks,
              [&](Communicator& group) {
                const Result own = train(group, group.is_root() ? trace : nullptr);
                if (group.is_root()) {
                  result = own;
                }
              },
              {.link = link});
  return result;
}

void run(int ranks, const char* file) {
  kernels::set_threads(1);  // one core per rank, if there are enough
  const double bytes = 4.0 * kLayers * kWidth * (kWidth + 1) * 2 * (ranks - 1) / ranks;
  const double backward = train_over(ranks, {}, nullptr).overlap.tail;
  std::printf("%d ranks, %lld layers, backward %.1f ms\n", ranks,
              static_cast<long long>(kLayers + 1), backward * 1e3);
  std::printf("%12s  %8s  %8s  %10s  %22s  %s\n", "link MB/s", "T ms", "tail ms", "exposed ms",
              "max(0, T - tail) + 10%", "steps within");
  std::string trace;
  for (const double share : {0.25, 0.5, 1.0, 2.0, 4.0}) {  // communication over backward
    const LinkDelay link{.latency = 1e-4, .bytes_per_second = bytes / (share * backward)};
    const Result r = train_over(ranks, link, share == 0.5 && file ? &trace : nullptr);
    const Overlap& o = r.overlap;
    std::printf("%12.0f  %8.1f  %8.1f  %10.1f  %22.1f  %d of %d\n", link.bytes_per_second / 1e6,
                o.communication * 1e3, o.tail * 1e3, o.exposed * 1e3, o.bound() * 1e3, r.kept,
                kSteps);
  }
  if (file) {
    std::FILE* out = std::fopen(file, "wb");
    check(out && std::fputs(trace.c_str(), out) >= 0 && std::fclose(out) == 0, "cannot write ",
          file);
  }
}

}  // namespace
}  // namespace binade::dist

int main(int argc, char** argv) {
  try {
    binade::dist::run(argc > 1 ? std::atoi(argv[1]) : 2, argc > 2 ? argv[2] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap_bench: error: %s\n", error.what());
    return 1;
  }
}
