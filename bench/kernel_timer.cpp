#include <bench/kernel_timer.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/attention/attention_provider.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <binade/kernels/norm/norm_provider.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

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

using SetProvider = void (*)(std::string_view name);

// The function that chooses the implementation of a case; null for those that run on our kernels
// always.
SetProvider provider_of(const std::string& kernel) {
  return kernel.starts_with("gemm")         ? kernels::set_gemm_provider
         : kernel.starts_with("conv")       ? kernels::set_conv2d_provider
         : kernel.starts_with("attention")  ? kernels::set_attention_provider
         : kernel.starts_with("layer_norm") ? kernels::set_norm_provider
         : kernel.starts_with("rms_norm")   ? kernels::set_norm_provider
         : kernel.starts_with("batch_norm") ? kernels::set_norm_provider
                                            : nullptr;
}

}  // namespace

Prepared prepare(const CaseSettings& s) {
  check(s.rows > 0 && s.cols > 0, "got rows ", s.rows, " and cols ", s.cols,
        ", expected positive numbers");
  Prepared made = s.kernel == kCopy
                      ? copy(s.rows, s.cols, s.dtype, s.device)
                      : find_case(s.kernel).prepare(s.rows, s.cols, s.dtype, s.device);
  const SetProvider set = provider_of(s.kernel);
  check(set || s.provider.empty() || s.provider == "own", s.kernel, ": got provider '", s.provider,
        "', expected own: it has no other");
  if (set && !s.provider.empty()) {  // other cases of the process may have another
    made.run = [run = std::move(made.run), set, name = s.provider] {
      set(name);
      run();
    };
  }
  return made;
}

Prepared copy_of_bytes(double bytes, Device device) {
  return copy(1, static_cast<int64_t>(bytes / 8) + 1, DType::f32, device);  // reads 4, writes 4
}

DType parse_floating(const std::string& name, const char* flag) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == to_string(static_cast<DType>(i)) && is_floating(static_cast<DType>(i))) {
      return static_cast<DType>(i);
    }
  }
  fail(flag, ": got '", name, "', expected f64, f32, f16 or bf16");
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

Timer::Timer(const Prepared& work, Device device) : work_(work), device_(device) {
  sample();
  while (sample() * static_cast<double>(calls_) < 5e-3 && calls_ < 100000) {
    calls_ *= 2;
  }
}

double Timer::sample() {
  synchronize(device_);
  const double start = now();
  for (int i = 0; i < calls_; ++i) {
    work_.run();
  }
  synchronize(device_);
  return (now() - start) / calls_;
}

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
