#include <bench/kernel_timer.h>
#include <bench/machine_facts.h>
#include <bench/statistics.h>
#include <bench_commit.h>
#include <binade/core/device/device_info.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace binade::bench {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string of_cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

int64_t last_level_cache() {
  int64_t largest = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string size = first_line(
        text("/sys/devices/system/cpu/cpu0/cache/index", i, "/size").c_str());  // "32768K"
    const int64_t unit = size.ends_with('K') ? 1024 : size.ends_with('M') ? 1 << 20 : 1;
    largest = std::max<int64_t>(largest, std::atoll(size.c_str()) * unit);
  }
  return largest;
}

std::string utc_date() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return date;
}

}  // namespace

MachineFacts machine_facts(Device device) {
  MachineFacts facts;
  facts.commit = BINADE_COMMIT;
  facts.build = BINADE_BENCH_BUILD;
  facts.compiler = BINADE_BENCH_COMPILER;
  facts.cpu = of_cpuinfo("model name");
  facts.kernel = first_line("/proc/sys/kernel/osrelease");
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  facts.isa = to_string(kernels::isa());
  facts.device = describe(device);
  facts.cores = kernels::usable_cores().count;
  facts.threads = kernels::threads();
  facts.megahertz = std::atof(of_cpuinfo("cpu MHz").c_str());
  facts.last_cache = last_level_cache();
  facts.load = std::atof(first_line("/proc/loadavg").c_str());
  facts.date = utc_date();
  return facts;
}

struct CacheFlush::Buffer {
  Buffer(int64_t bytes, Device device) : memory(static_cast<size_t>(bytes), device) {
    view = view_of(memory.as<void>(), DType::f32, {bytes / 4});
    view.device = device;
  }
  kernels::Workspace memory;
  View view;
  int round = 0;
};

CacheFlush::CacheFlush(Device device)
    : device_(device),
      bytes_(
          device.kind == Device::kCuda
              ? int64_t{256} << 20
              : std::clamp<int64_t>(2 * last_level_cache(), int64_t{16} << 20, int64_t{512} << 20)),
      buffer_(std::make_shared<Buffer>(bytes_, device.kind == Device::kCuda ? device : Device{})) {}

void CacheFlush::run() {
  kernels::fill({.y = buffer_->view, .value = double(buffer_->round++)});
  synchronize(device_);
}

double measured_copy(double bytes, Device device, CacheFlush* flush) {
  const Prepared work = copy_of_bytes(bytes, device);
  Timer timer(work, device);
  std::vector<double> seconds;
  for (int i = 0; i < 7; ++i) {
    if (flush) {
      flush->run();
    }
    seconds.push_back(flush ? timer.sample_once() : timer.sample());
  }
  return work.bytes / median(seconds);
}

}  // namespace binade::bench
