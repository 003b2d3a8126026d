// bench/one: times one kernel on raw memory, next to a copy of as many bytes.
#include <bench/kernel_cases.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace binade;

namespace {

struct Flags {
  std::string kernel, dtype = "f32", device = "auto";
  int64_t rows = 4096, cols = 1024;
  int samples = 15, threads = 0;
  bool list = false, json = false;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

DType parse_dtype(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == to_string(static_cast<DType>(i)) && is_floating(static_cast<DType>(i))) {
      return static_cast<DType>(i);
    }
  }
  fail("--dtype: got '", name, "', expected f64, f32, f16 or bf16");
}

// Measures seconds per call; a sample makes enough calls for the clock's resolution.
class Timer {
 public:
  Timer(const bench::Prepared& work, Device device) : work_(work), device_(device) {
    sample();  // warms up caches, pages, the first launch
    while (sample() * static_cast<double>(calls_) < 5e-3 && calls_ < 100000) {
      calls_ *= 2;
    }
  }
  double sample() {
    synchronize(device_);
    const double start = now();
    for (int i = 0; i < calls_; ++i) {
      work_.run();
    }
    synchronize(device_);
    return (now() - start) / calls_;
  }

 private:
  const bench::Prepared& work_;
  Device device_;
  int calls_ = 1;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// A copy of about as many bytes, timed in turn with the kernel.
bench::Prepared copy_of_bytes(double bytes, Device device) {
  const auto elements = static_cast<int64_t>(bytes / 8) + 1;  // read 4, write 4
  return bench::find_case("cast_from_f32").prepare(1, elements, DType::f32, device);
}

void measure(const Flags& flags) {
  kernels::set_threads(flags.threads);
  const bench::KernelCase& one = bench::find_case(flags.kernel);
  check(flags.rows > 0 && flags.cols > 0 && flags.samples > 0, "got rows ", flags.rows, ", cols ",
        flags.cols, " and samples ", flags.samples, ", expected positive numbers");
  const Device device = Device::parse(flags.device);
  const DType dtype = parse_dtype(flags.dtype);
  const bench::Prepared work = one.prepare(flags.rows, flags.cols, dtype, device);
  const bench::Prepared copy = copy_of_bytes(work.bytes, device);
  Timer timer(work, device), copy_timer(copy, device);
  std::vector<double> seconds, ratios, copied;
  for (int i = 0; i < flags.samples; ++i) {
    copied.push_back(copy_timer.sample());
    seconds.push_back(timer.sample());
    ratios.push_back((work.bytes / seconds.back()) / (copy.bytes / copied.back()));
  }
  const double median = quantile(seconds, 0.5),
               spread = quantile(seconds, 0.75) - quantile(seconds, 0.25);
  const double of_copy = quantile(ratios, 0.5);
  if (flags.json) {
    std::printf(
        "{\"kernel\": \"%s\", \"rows\": %lld, \"cols\": %lld, \"dtype\": \"%s\", \"device\": "
        "\"%s\", \"microseconds\": %.3f, \"spread_microseconds\": %.3f, \"bytes\": %.0f, "
        "\"gigabytes_per_second\": %.2f, \"share_of_copy\": %.3f, \"gigaflops\": %.2f}\n",
        one.name, static_cast<long long>(flags.rows), static_cast<long long>(flags.cols),
        to_string(dtype), to_string(device).c_str(), median * 1e6, spread * 1e6, work.bytes,
        work.bytes / median * 1e-9, of_copy, work.flops / median * 1e-9);
    return;
  }
  std::printf(
      "%s %lld x %lld %s on %s: %.2f us (quartiles %.2f apart), %.1f GB/s = %.0f%% of a copy",
      one.name, static_cast<long long>(flags.rows), static_cast<long long>(flags.cols),
      to_string(dtype), to_string(device).c_str(), median * 1e6, spread * 1e6,
      work.bytes / median * 1e-9, 100 * of_copy);
  if (work.flops > 0) {
    std::printf(", %.1f GFLOP/s", work.flops / median * 1e-9);
  }
  std::printf("\n");
  if (device.kind == Device::kEmulated) {
    std::printf(
        "the emulated device executes kernels on the CPU: its times say nothing of a GPU\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Times one kernel on raw memory.");
  app.add_option("kernel", flags.kernel, "see --list");
  app.add_option("--rows", flags.rows)->capture_default_str();
  app.add_option("--cols", flags.cols)->capture_default_str();
  app.add_option("--dtype", flags.dtype, "f64, f32, f16 or bf16")->capture_default_str();
  app.add_option("--device", flags.device, "auto, cpu, cuda[:N] or emulated")
      ->capture_default_str();
  app.add_option("--samples", flags.samples)->capture_default_str();
  app.add_option("--threads", flags.threads, "of the CPU; 0: all")->capture_default_str();
  app.add_flag("--list", flags.list, "the kernels and what rows and cols mean");
  app.add_flag("--json", flags.json, "one JSON object");
  try {
    app.parse(argc, argv);
    if (flags.list || flags.kernel.empty()) {
      for (const bench::KernelCase& one : bench::kernel_cases()) {
        std::printf("%-32s %s\n", one.name, one.shape);
      }
      return 0;
    }
    measure(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
