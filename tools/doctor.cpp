// binade doctor: shows the parts of this build, the machine, and the device that programs use.
#include "commands.h"

#include <binade/core/device/device_info.h>
#include <binade/dist/transport/nccl_transport.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>
#include <binade/kernels/base/provider.h>
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/cudnn/cudnn_api_internal.h>
#include <binade/kernels/gemm/cublaslt_api_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/user/user_kernels.h>

#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

namespace binade::tool {
namespace {

void line(const char* name, const std::string& value) {
  std::printf("%-14s %s\n", name, value.c_str());
}

std::string gigabytes(int64_t bytes) {
  return text(static_cast<double>(bytes * 10 / (int64_t{1} << 30)) / 10, " GiB");
}

// Describes the kind of this build, the reason for it, and the device on which programs run.
std::string mode(const DeviceReport& report) {
  constexpr std::string_view kBuilt = BINADE_CUDA_BUILT, kAsked = BINADE_CUDA_ASKED;
  if (kBuilt == "EMULATED") {
    return "emulated CUDA, for tests: the device \"emulated\" runs the CUDA backend on the CPU; "
           "auto is the CPU";
  }
  if (kBuilt == "OFF") {
    return kAsked == "AUTO"
               ? "CPU only: BINADE_CUDA=AUTO saw no GPU or no CUDA toolkit when it was configured"
               : "CPU only: configured with BINADE_CUDA=OFF";
  }
  return report.devices.empty()
             ? text("CUDA build on a machine without a GPU to use: ", report.reason,
                    "; everything runs on the CPU")
             : text("CUDA, on ", Device::best());
}

// Describes a library that is found at run time.
std::string loaded(const std::string& path, const std::string& missing, const char* otherwise) {
  return missing.empty() ? path : text("out: ", otherwise, "; ", missing);
}

// Prints the provider of each family of operations, and the choices that "auto" made.
int run_providers() {
  for (int i = 0; i < kernels::kProviderFamilies; ++i) {
    const auto family = static_cast<kernels::ProviderFamily>(i);
    const kernels::ProviderFamilyInfo info = kernels::provider_family(family);
    std::string others;
    for (const std::string_view name : info.providers) {
      others += text(others.empty() ? "" : ", ", name);
    }
    std::printf("%-17s %-6s of %s\n", info.variable,
                std::string(kernels::provider(family).name).c_str(), others.c_str());
  }
  for (const std::string_view kernel : kernels::user_kernel_names()) {
    if (const std::string path = kernels::user_kernel(kernel); !path.empty()) {
      std::printf("%-17s %s: %s\n", "BINADE_KERNEL", std::string(kernel).c_str(),
                  printable(path).c_str());
    }
  }
  const std::vector<kernels::TuningEntry> table = kernels::tuning_table();
  const std::string path = kernels::tuning_file();
  if (path.empty()) {
    std::puts("No table: set BINADE_TUNING to a file, in which programs keep what auto chooses.");
    return 0;
  }
  std::printf("%s: %zu problems\n", printable(path).c_str(), table.size());
  for (const kernels::TuningEntry& entry : table) {
    std::printf("%s\n    %s%s%s\n", printable(entry.problem).c_str(),
                printable(entry.choice).c_str(), entry.reason.empty() ? "" : ": ",
                printable(entry.reason).c_str());
  }
  return 0;
}

std::string in_or_out(bool in, const char* otherwise) {
  return in ? "in" : text("out: ", otherwise);
}

}  // namespace

int run(const DoctorOptions& o) {
  if (o.security) {
    return run_security_doctor(o.run);
  }
  if (o.providers) {
    return run_providers();
  }
  const DeviceReport report = device_report();
  constexpr std::string_view kSanitizers = BINADE_SANITIZERS, kArchitectures = BINADE_ARCHITECTURES;
  line("binade", text(BINADE_VERSION, ", ", BINADE_BUILD_TYPE, ", ", BINADE_COMPILER,
                      kSanitizers.empty() ? std::string() : text(", sanitizers ", kSanitizers)));
  line("mode", mode(report));
  line("cuda", text(BINADE_CUDA_BUILT, " (BINADE_CUDA=", BINADE_CUDA_ASKED, ")"));
  line("toolkit", report.toolkit.empty() ? "none" : text("CUDA ", report.toolkit));
  line("driver", report.driver.empty() ? "none" : text("up to CUDA ", report.driver));
  if (!kArchitectures.empty()) {
    line("compiled for", std::string(kArchitectures));
  }
  line("cpu", text(kernels::to_string(kernels::isa()), ", ", kernels::threads(), " threads of ",
                   std::thread::hardware_concurrency(), " cores"));
  line("usable cores", to_string(kernels::usable_cores()));
  line("math mode", kernels::math_mode() == kernels::MathMode::fast
                        ? text("fast: Winograd where it pays",
                               kernels::amx_runs(DType::bf16)    ? ", bf16 by AMX"
                               : kernels::pairs_run(DType::bf16) ? ", bf16 by AVX512-BF16"
                                                                 : "",
                               " (BINADE_MODE=precise: plain sums only)")
                        : "precise: plain sums only (BINADE_MODE=fast: Winograd where it pays)");
  for (const DeviceInfo& info : report.devices) {
    line(to_string(info.device).c_str(),
         text(info.name, ", compute capability ", info.major, ".", info.minor, ", ",
              info.multiprocessors, " multiprocessors, ", gigabytes(info.free), " of ",
              gigabytes(info.memory), " free, ",
              info.growable ? "growable segments" : "plain segments"));
  }
  line("auto device", to_string(Device::best()));
  line("libjpeg", in_or_out(BINADE_HAS_JPEG, "JPEG files are read by stb_image"));
  line("libwebp", in_or_out(BINADE_HAS_WEBP, "WebP files are errors; install libwebp-dev"));
  line("MPI", in_or_out(BINADE_HAS_MPI, "processes talk over TCP"));
  line("Eigen", in_or_out(BINADE_HAS_EIGEN,
                          "binade::linalg throws; install libeigen3-dev and build "
                          "with BINADE_EIGEN=ON"));
  if constexpr (kernels::kWithCuda) {
    line("cuBLASLt", loaded(kernels::cublaslt::path(), kernels::cublaslt::missing(),
                            "matrix products use Binade's own kernels"));
    line("cuDNN", loaded(text(kernels::cudnn::version(), ", ", kernels::cudnn::path()),
                         kernels::cudnn::missing(),
                         "convolution, attention and norms use Binade's own kernels"));
  }
  line("NCCL",
       loaded(dist::nccl_path(), dist::nccl_missing(), "GPUs exchange data through host memory"));
  return 0;
}

}  // namespace binade::tool
