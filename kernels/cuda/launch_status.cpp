// The parts of launch() around the launch itself, for the toolkit and for host execution.
#include <binade/kernels/base/stream.h>
#include <binade/kernels/cuda/device_facts_internal.h>
#include <binade/kernels/cuda/relaxed_capture_internal.h>
#include <binade/kernels/cuda/runtime_api_internal.h>
#include <binade/kernels/cuda/launch.cuh>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace binade::kernels {

namespace {

bool waits_for_every_kernel() {
  static const bool wait = [] {
    const char* value = std::getenv("BINADE_SYNC");
    return value && std::string_view(value) == "1";
  }();
  return wait;
}

std::string triple(const unsigned n[3]) { return text("(", n[0], ", ", n[1], ", ", n[2], ")"); }
std::string triple(dim3 n) { return text("(", n.x, ", ", n.y, ", ", n.z, ")"); }

constexpr size_t kSharedWithoutAsking = 48 * 1024;
constexpr size_t kMuchShared = 16 * 1024;  // of a block that keeps tiles there
constexpr unsigned kPortableCluster = 8;

// The attributes of a kernel on a device.
struct Prepared {
  int most_threads = 0;  // of a block: __launch_bounds__, and registers; 0: not loaded yet
  size_t shared_limit = kSharedWithoutAsking;
  int carveout = Launch::kDriversChoice;
  bool any_cluster = false;
};
struct PreparedKernels {
  std::mutex mutex;
  std::map<std::pair<const void*, int>, Prepared> known;  // by kernel and device
};

void check_step(int status, const Launch& config, const char* step) {
  if (status != cudaSuccess) [[unlikely]] {
    throw_cuda_error(status, "launch", text(step, " kernel ", config.name));
  }
}

void load(const Launch& config, const void* kernel, Prepared& prepared) {
  const RelaxedCapture relaxed;
  cudaFuncAttributes attributes = {};
  check_step(cudaFuncGetAttributes(&attributes, kernel), config, "loading");
  prepared.most_threads = attributes.maxThreadsPerBlock;
}

void set_attribute(const Launch& config, const void* kernel, cudaFuncAttribute attribute,
                   int value) {
  const RelaxedCapture relaxed;
  check_step(cudaFuncSetAttribute(kernel, attribute, value), config, "setting an attribute of");
}

void prepare_shared_memory(const Launch& config, const void* kernel, Prepared& prepared) {
  if (config.shared_bytes > prepared.shared_limit) {
    set_attribute(config, kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                  static_cast<int>(config.shared_bytes));
    prepared.shared_limit = config.shared_bytes;
  }
  int carveout = config.carveout;
  if (carveout == Launch::kBySharedBytes) {
    carveout = config.shared_bytes >= kMuchShared ? int{cudaSharedmemCarveoutMaxShared}
                                                  : Launch::kDriversChoice;
  }
  if (carveout != prepared.carveout) {
    set_attribute(config, kernel, cudaFuncAttributePreferredSharedMemoryCarveout, carveout);
    prepared.carveout = carveout;
  }
}

void prepare_cluster(const Launch& config, const void* kernel, Prepared& prepared) {
  const dim3 grid = config.grid, cluster = config.cluster;
  const uint64_t blocks = uint64_t{cluster.x} * cluster.y * cluster.z;
  if (blocks == 1 && !config.overlaps_previous) {
    return;
  }
  constexpr int kHopper = 90;
  const Device device{Device::kCuda, static_cast<int8_t>(selected_device())};
  const int capability = device_facts(device).capability;
  check(capability >= kHopper, "launch of ", config.name,
        ": got a cluster or an overlapping launch on a device of compute capability ",
        capability / 10, ".", capability % 10, ", expected 9.0 or later");
  check(blocks > 0 && grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0,
        "launch of ", config.name, ": got clusters of ", triple(cluster), " blocks in a grid of ",
        triple(grid), ", expected sizes that divide it");
  if (blocks > kPortableCluster && !prepared.any_cluster) {
    set_attribute(config, kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    prepared.any_cluster = true;
  }
}

}  // namespace

void* launch_stream() {
  const KernelCall* call = KernelCall::current();
  return current_stream(call ? call->device() : Device{});
}

void prepare_launch(const Launch& config, const void* kernel) {
  static auto& kernels = *new PreparedKernels;  // kernels may run while the program ends
  const std::lock_guard lock(kernels.mutex);
  Prepared& prepared = kernels.known[{kernel, selected_device()}];
  if (prepared.most_threads == 0) {
    load(config, kernel, prepared);
  }
  const uint64_t threads = uint64_t{config.block.x} * config.block.y * config.block.z;
  if (threads > static_cast<uint64_t>(prepared.most_threads)) [[unlikely]] {
    throw_cuda_error(cudaErrorLaunchOutOfResources, "launch",
                     text("kernel ", config.name, ", grid ", triple(config.grid), ", block ",
                          triple(config.block), ": got ", threads, " threads, expected at most ",
                          prepared.most_threads, " by its __launch_bounds__ and registers"));
  }
  prepare_shared_memory(config, kernel, prepared);
  prepare_cluster(config, kernel, prepared);
}

void finish_launch(int status, const char* name, const unsigned grid[3], const unsigned block[3],
                   size_t shared_bytes) {
  const char* what = "launch";
  if (status == cudaSuccess && waits_for_every_kernel()) {
    auto* stream = static_cast<cudaStream_t>(launch_stream());
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capturing) == cudaSuccess &&
        capturing == cudaStreamCaptureStatusNone) {
      status = cudaStreamSynchronize(stream);
      what = "kernel";
    }
  }
  if (status != cudaSuccess) [[unlikely]] {
    throw_cuda_error(status, what,
                     text("kernel ", name, ", grid ", triple(grid), ", block ", triple(block), ", ",
                          shared_bytes, " bytes of shared memory"));
  }
}

}  // namespace binade::kernels
