#include <bench/kernel_timer.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/provider.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace binade::bench {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Prepared copy(int64_t rows, int64_t cols, DType dtype, Device device) {
  if (device.is_cpu()) {
    return find_case("cast_from_f32").prepare(rows, cols, dtype, device);
  }
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  const auto bytes = static_cast<size_t>(x.numel) * size_of(dtype);
  return {o, [&x, &y, device, bytes] { device_copy(y.data, device, x.data, device, bytes); },
          bytes_of(x, y), 0};
}

// The family whose provider chooses the implementation of a case; null if only our own kernels
// implement it.
const char* family_of(const std::string& kernel) {
  struct Named {
    const char *begin, *family;
  };
  constexpr Named kNames[] = {{"gemm", "gemm"},           {"conv", "conv2d"},
                              {"attention", "attention"}, {"layer_norm", "norm"},
                              {"rms_norm", "norm"},       {"batch_norm", "norm"},
                              {"group_norm", "norm"},     {"softmax", "softmax"},
                              {"log_softmax", "softmax"}, {"reduce_", "reduce"}};
  for (const Named& one : kNames) {
    if (kernel.starts_with(one.begin)) {
      return one.family;
    }
  }
  return nullptr;
}

// A factor by which samples are made slower, to test the comparison of builds.
double planted_factor() {
  const char* value = std::getenv("BINADE_BENCH_PLANT");
  return value ? std::max(1.0, std::atof(value)) : 1;
}

double timed_calls(const Prepared& work, Device device, int calls) {
  static const double factor = planted_factor();
  synchronize(device);
  const double start = now();
  for (int i = 0; i < calls; ++i) {
    work.run();
  }
  synchronize(device);
  double end = now();
  for (const double until = start + factor * (end - start); end < until;) {
    end = now();
  }
  return (end - start) / calls;
}

}  // namespace

Prepared prepare(const CaseSettings& s) {
  check(s.rows > 0 && s.cols > 0, "got rows ", s.rows, " and cols ", s.cols,
        ", expected positive numbers");
  Prepared made = s.kernel == kCopy
                      ? copy(s.rows, s.cols, s.dtype, s.device)
                      : find_case(s.kernel).prepare(s.rows, s.cols, s.dtype, s.device);
  const char* family = family_of(s.kernel);
  check(family || s.provider.empty() || s.provider == "own", s.kernel, ": got provider '",
        s.provider, "', expected own: it has no other");
  if (family && !s.provider.empty()) {  // other cases of this process may use another one
    made.run = [run = std::move(made.run), family, name = s.provider] {
      kernels::set_provider(family, name);
      run();
    };
  }
  return made;
}

Prepared copy_of_bytes(double bytes, Device device) {
  return copy(1, static_cast<int64_t>(bytes / 8) + 1, DType::f32, device);  // reads 4, writes 4
}

Timer::Timer(const Prepared& work, Device device) : work_(work), device_(device) {
  sample();
  while (sample() * static_cast<double>(calls_) < 5e-3 && calls_ < 100000) {
    calls_ *= 2;
  }
}

double Timer::sample() { return timed_calls(work_, device_, calls_); }
double Timer::sample_once() { return timed_calls(work_, device_, 1); }

Measured measure(const CaseSettings& settings, int samples) {
  check(samples > 0, "got samples ", samples, ", expected a positive number");
  const Device device = settings.device;
  const Prepared work = prepare(settings), copy = copy_of_bytes(work.bytes, device);
  Timer timer(work, device), copy_timer(copy, device);
  std::vector<double> seconds, shares;
  for (int i = 0; i < samples; ++i) {
    const double copied = copy_timer.sample();
    seconds.push_back(timer.sample());
    shares.push_back((work.bytes / seconds.back()) / (copy.bytes / copied));
  }
  return {.seconds = quantile(seconds, 0.5),
          .spread = quantile(seconds, 0.75) - quantile(seconds, 0.25),
          .share_of_copy = quantile(shares, 0.5),
          .bytes = work.bytes,
          .flops = work.flops};
}

std::string json_of(const CaseSettings& s, const Measured& m) {
  char line[512];
  std::snprintf(
      line, sizeof line,
      "{\"kernel\": \"%s\", \"rows\": %lld, \"cols\": %lld, \"dtype\": \"%s\", \"device\": "
      "\"%s\", \"microseconds\": %.3f, \"spread_microseconds\": %.3f, \"bytes\": %.0f, "
      "\"gigabytes_per_second\": %.2f, \"share_of_copy\": %.3f, \"gigaflops\": %.2f}",
      s.kernel.c_str(), static_cast<long long>(s.rows), static_cast<long long>(s.cols),
      to_string(s.dtype), to_string(s.device).c_str(), m.seconds * 1e6, m.spread * 1e6, m.bytes,
      m.bytes / m.seconds * 1e-9, m.share_of_copy, m.flops / m.seconds * 1e-9);
  return line;
}

}  // namespace binade::bench
