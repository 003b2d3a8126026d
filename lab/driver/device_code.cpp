#include <binade/kernels/base/error.h>
#include <binade/lab/driver/device_code_internal.h>
#include <binade/lab/driver/gpus_internal.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace binade::lab {
namespace {

// Finds a program beside nvcc, or else in PATH.
std::string tool_beside(const std::string& nvcc, const std::string& name) {
  const std::string beside = find_program(nvcc.substr(0, nvcc.rfind('/') + 1) + name);
  return beside.empty() ? find_program(name) : beside;
}

std::string find_nvcc() {
  std::string found = find_program("nvcc");
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (found.empty() && folder != nullptr) {
      found = find_program(std::string(folder) + "/bin/nvcc");
    }
  }
  return found.empty() ? find_program("/usr/local/cuda/bin/nvcc") : found;
}

// The number that ends before `what`, or 0 if it is not there: "32" in "Used 32 registers".
uint64_t number_before(const std::string& line, const std::string& what) {
  const size_t end = line.find(what);
  if (end == std::string::npos || end == 0) {
    return 0;
  }
  const size_t before = line.find_last_not_of("0123456789", end - 1);
  return std::strtoull(line.c_str() + (before == std::string::npos ? 0 : before + 1), nullptr, 10);
}

std::string without_blanks(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == ' ' ? "" : std::string(1, c);
  }
  return out;
}

// Turns "a::b<...>" into "b".
std::string base_of(const std::string& kernel) {
  const std::string name = kernel.substr(0, kernel.find('<'));
  const size_t colon = name.rfind("::");
  return without_blanks(colon == std::string::npos ? name : name.substr(colon + 2));
}

// The arguments of "f<(int)128, float>" in the form that a source uses: "128,float".
std::string arguments_of(const std::string& kernel) {
  const size_t open = kernel.find('<');
  std::string arguments;
  if (open != std::string::npos && kernel.ends_with('>')) {
    arguments = without_blanks(kernel.substr(open + 1, kernel.size() - open - 2));
  }
  for (const char* cast : {"(int)", "(unsignedint)", "(bool)"}) {
    for (size_t at = arguments.find(cast); at != std::string::npos; at = arguments.find(cast)) {
      arguments.erase(at, std::string(cast).size());
    }
  }
  return arguments;
}

// The first line of the compiler's output that reports an error.
std::string first_error(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find("error") != std::string::npos) {
      return line;
    }
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

Residency residency_of(const Gpu& gpu, uint32_t threads, uint32_t registers, size_t shared_bytes) {
  constexpr uint32_t kQuarter = 65536 / 4, kUnit = 256;
  constexpr size_t kSharedUnit = 128;
  const uint32_t warps = (threads + 31) / 32;
  const uint32_t of_warp = std::max((registers * 32 + kUnit - 1) / kUnit * kUnit, kUnit);
  const size_t shared =
      (shared_bytes + gpu.reserved_bytes + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
  const std::pair<uint32_t, const char*> limits[] = {
      {gpu.warps / std::max(warps, 1u), "warps"},
      {gpu.blocks, "blocks"},
      {kQuarter / of_warp * 4 / std::max(warps, 1u), "registers"},
      {shared == 0 ? gpu.blocks : static_cast<uint32_t>(gpu.shared_bytes / shared),
       "shared memory"}};
  const auto* least =
      std::min_element(std::begin(limits), std::end(limits),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  return {least->first, least->first * warps, least->second};
}

std::map<std::string, KernelResources> resources_from(const std::string& ptxas) {
  std::map<std::string, KernelResources> found;
  std::istringstream lines(ptxas);
  KernelResources* kernel = nullptr;
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    const size_t entry = line.find(kEntry);
    if (entry != std::string::npos) {
      const size_t begin = entry + kEntry.size();
      kernel = &found[line.substr(begin, line.find('\'', begin) - begin)];
    } else if (kernel != nullptr && line.find("bytes stack frame") != std::string::npos) {
      kernel->stack_bytes = static_cast<int>(number_before(line, " bytes stack frame"));
      kernel->spilled_bytes = static_cast<int>(number_before(line, " bytes spill stores"));
    } else if (kernel != nullptr && line.find(" registers") != std::string::npos) {
      kernel->registers = static_cast<int>(number_before(line, " registers"));
      kernel->shared_bytes = number_before(line, " bytes smem");
      kernel = nullptr;
    }
  }
  return found;
}

std::map<std::string, std::map<std::string, uint64_t>> instructions_from(const std::string& sass) {
  std::map<std::string, std::map<std::string, uint64_t>> found;
  std::map<std::string, uint64_t>* kernel = nullptr;
  std::istringstream lines(sass);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, next;
    words >> word;
    if (word == "Function" && words >> word >> next) {
      kernel = &found[next];
    } else if (word.starts_with("//-") && words >> next && next.starts_with(".text.")) {
      kernel = &found[next.substr(6)];
    }
    // Lines look like /*0010*/ @!P0 LDG.E R2, desc[UR4][R2.64] ; the second line of one has no name
    if (kernel == nullptr || !word.starts_with("/*") || !word.ends_with("*/") || word.size() > 10 ||
        !(words >> next)) {
      continue;
    }
    if (next.starts_with('@')) {
      words >> next;
    }
    const std::string name = next.substr(0, next.find_first_of(".;"));
    if (!name.empty() && name[0] >= 'A' && name[0] <= 'Z' && name != "NOP") {
      ++(*kernel)[name];
    }
  }
  return found;
}

std::string kernel_of_symbol(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? demangled.get() : symbol;
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (size_t at = name.find(kUnnamed); at != std::string::npos; at = name.find(kUnnamed)) {
    name.erase(at, kUnnamed.size());
  }
  int angle = 0;  // the parameters begin at the first "(" outside template arguments
  for (size_t i = 0; i < name.size(); ++i) {
    angle += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (angle == 0 && name[i] == '(') {
      name.resize(i);
    }
  }
  constexpr std::string_view kResult = "void ";
  return name.starts_with(kResult) ? name.substr(kResult.size()) : name;
}

bool is_launch_of(const std::string& launch, const std::string& kernel) {
  if (base_of(launch) != base_of(kernel)) {
    return false;
  }
  // Names of constants and deduced arguments are unknown here.
  const std::string a = arguments_of(launch), b = arguments_of(kernel);
  const bool numbers = !a.empty() && a.find_first_not_of("0123456789,") == std::string::npos;
  return !numbers || a == b || b.starts_with(a + ",");
}

struct DeviceCompilers::Run {
  Run(const Gpu& of, std::string to, std::string says, const Process::Start& start)
      : gpu(of), cubin(std::move(to)), output(std::move(says)), process(start) {}

  const Gpu& gpu;
  std::string cubin, output;
  Process process;
};

DeviceCompilers::DeviceCompilers(const std::string& file) : nvcc_(find_nvcc()), file_(file) {
  if (nvcc_.empty()) {
    return;
  }
  const std::string nice = find_program("nice");
  for (const Gpu& gpu : kGpus) {
    const std::string cubin = scratch_ / (gpu.architecture + std::string(".cubin"));
    const std::string output = cubin + ".txt";
    std::vector<std::string> words = {nvcc_,
                                      "-std=c++20",
                                      "--expt-relaxed-constexpr",
                                      "--extended-lambda",
                                      "-w",
                                      text("-arch=", gpu.architecture),
                                      "-Xptxas=-v",
                                      "-cubin",
                                      "-x",
                                      "cu",
                                      file,
                                      "-o",
                                      cubin};
    if (!nice.empty()) {
      words.insert(words.begin(), {nice, "-n", "19"});
    }
    const Process::Start start{words, output, output, {{"LC_ALL", "C"}}};
    runs_.push_back(std::make_shared<Run>(gpu, cubin, output, start));
  }
}

namespace {

// The program that lists SASS with its flags; empty if there is none.
std::vector<std::string> disassembler_beside(const std::string& nvcc) {
  const std::string cuobjdump = tool_beside(nvcc, "cuobjdump");
  if (!cuobjdump.empty()) {
    return {cuobjdump, "-sass"};
  }
  const std::string nvdisasm = tool_beside(nvcc, "nvdisasm");
  return nvdisasm.empty() ? std::vector<std::string>() : std::vector<std::string>{nvdisasm};
}

// The occupancy for each block size with which a kernel was launched.
std::vector<Occupancy> occupancy_of(const Gpu& gpu, const DeviceKernel& kernel,
                                    const std::vector<FoundLaunch>& launches) {
  std::vector<Occupancy> list;
  for (const FoundLaunch& launch : launches) {
    const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    const bool known = std::any_of(list.begin(), list.end(), [&](const Occupancy& other) {
      return other.threads == threads && other.dynamic_bytes == launch.shared_bytes;
    });
    if (!known && is_launch_of(launch.kernel, kernel.kernel)) {
      const Residency resident = residency_of(gpu, threads, static_cast<uint32_t>(kernel.registers),
                                              kernel.shared_bytes + launch.shared_bytes);
      list.push_back({threads, launch.shared_bytes, resident.blocks, resident.warps, gpu.warps,
                      resident.limit});
    }
  }
  return list;
}

}  // namespace

DeviceCode DeviceCompilers::results(const std::vector<FoundLaunch>& launches) {
  constexpr auto kLimit = std::chrono::minutes(5);
  DeviceCode code;
  if (nvcc_.empty()) {
    code.note = "no nvcc: no registers, spills, occupancy and SASS counts";
    return code;
  }
  const std::vector<std::string> disassemble = disassembler_beside(nvcc_);
  for (const std::shared_ptr<Run>& run : runs_) {
    const ProcessEnd end = run->process.wait(kLimit);
    const std::string said = text_of_file(run->output);
    if (end.status != 0) {
      code.note = text("nvcc -arch=", run->gpu.architecture,
                       " does not compile the file: ", first_error(said));
      continue;
    }
    std::map<std::string, std::map<std::string, uint64_t>> instructions;
    if (!disassemble.empty()) {
      std::vector<std::string> words = disassemble;
      words.push_back(run->cubin);
      const std::string listing = run->cubin + ".sass";
      Process({words, listing, "", {}}).wait(kLimit);
      instructions = instructions_from(text_of_file(listing));
    }
    for (const auto& [symbol, resources] : resources_from(said)) {
      DeviceKernel kernel{.gpu = run->gpu.name,
                          .architecture = run->gpu.architecture,
                          .kernel = kernel_of_symbol(symbol),
                          .registers = resources.registers,
                          .spilled_bytes = resources.spilled_bytes,
                          .stack_bytes = resources.stack_bytes,
                          .shared_bytes = resources.shared_bytes,
                          .instructions = instructions[symbol]};
      kernel.occupancy = occupancy_of(run->gpu, kernel, launches);
      code.kernels.push_back(std::move(kernel));
    }
  }
  if (disassemble.empty() && !code.kernels.empty()) {
    code.note = "no cuobjdump and no nvdisasm beside nvcc: no SASS counts";
  }
  return code;
}

}  // namespace binade::lab
