#include <bench/bench_run.h>
#include <binade/core/io/json_text.h>

#include <charconv>
#include <map>

namespace binade::bench {
namespace {

int64_t parse_side(std::string_view digits, const std::string& word) {
  int64_t side = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), side);
  check(error == std::errc() && end == digits.data() + digits.size() && side > 0 &&
            side <= int64_t{1} << 31,
        "bench: got ", json_quoted_short(word), ", expected KERNEL or KERNEL:ROWSxCOLS");
  return side;
}

// Measures ceilings once for each dtype, and for copies once for each power of two of the size.
class Ceilings {
 public:
  Ceilings(Device device, CacheFlush* flush) : device_(device), flush_(flush) {}
  void add_to(CaseRecord& record) {
    if (device_.kind == Device::kEmulated) {
      return;  // the emulated device has no speed of its own
    }
    double bytes = 1 << 16;
    while (bytes < record.bytes) {
      bytes *= 2;
    }
    if (const auto found = copies_.find(bytes); found == copies_.end()) {
      copies_[bytes] = measured_copy(bytes, device_, flush_);
    }
    record.copy_rate = copies_[bytes];
    if (record.flops > 0) {
      double& rate = flops_[record.settings.dtype];
      rate = rate > 0 ? rate : measured_flops(record.settings.dtype, device_);
      record.flop_rate = rate;
    }
  }

 private:
  Device device_;
  CacheFlush* flush_;
  std::map<double, double> copies_;
  std::map<DType, double> flops_;
};

void take_samples(const Prepared& work, const RunSettings& run, CacheFlush& flush,
                  CaseRecord& record) {
  Timer timer(work, record.settings.device);
  record.calls = run.warm ? timer.calls() : 1;
  for (int i = 0; i < run.samples; ++i) {
    if (!run.warm) {
      flush.run();
    }
    record.samples.push_back(run.warm ? timer.sample() : timer.sample_once());
  }
}

void measure_case(const RunSettings& run, CacheFlush& flush, CaseRecord& record) {
  const Prepared work = prepare(record.settings);
  record.bytes = work.bytes;
  record.flops = work.flops;
  const bool is_copy = record.settings.kernel == kCopy;
  for (const char* when : {"before", "after"}) {
    if (!is_copy) {
      const CaseCheck checked = check_case(work, record.settings);
      check(checked.ok, "wrong ", when, " the timing, against ", checked.against, ": ",
            checked.wrong);
      record.checked = checked.against;
    }
    if (std::string_view(when) == "before" && !run.check_only) {
      take_samples(work, run, flush, record);
    }
  }
}

}  // namespace

CaseSettings parse_case_word(const std::string& word) {
  CaseSettings settings{.kernel = word.substr(0, word.find(':')), .rows = 4096, .cols = 1024};
  if (settings.kernel.size() < word.size()) {
    const std::string_view size = std::string_view(word).substr(settings.kernel.size() + 1);
    const size_t cross = size.find('x');
    settings.rows = parse_side(size.substr(0, cross), word);
    settings.cols = parse_side(cross == std::string_view::npos ? "" : size.substr(cross + 1), word);
  }
  if (settings.kernel != kCopy) {
    find_case(settings.kernel);
  }
  return settings;
}

BenchRecord run_cases(const RunSettings& run, Device device,
                      const std::function<void(const CaseRecord&)>& done) {
  CacheFlush flush(device);
  Ceilings ceilings(device, run.warm ? nullptr : &flush);
  BenchRecord record{.machine = machine_facts(device)};
  record.cache = run.warm ? "warm: calls follow each other"
                          : text("cold: ", flush.bytes() >> 20,
                                 " MiB were written before each sample, which is one call");
  for (const CaseSettings& settings : run.cases) {
    CaseRecord one{.settings = settings};
    try {
      measure_case(run, flush, one);
      if (!run.check_only) {
        ceilings.add_to(one);
      }
    } catch (const std::exception& error) {
      one.error = error.what();
      one.samples.clear();
    }
    done(one);
    record.cases.push_back(one);
  }
  return record;
}

}  // namespace binade::bench
