// Kernel cards: the memory traffic of each kernel, counted by host execution on one fixed case,
// against the budget in bench/kernel_budgets.json. A kernel fails if it touches more 32-byte
// sectors of global memory, or takes more passes over the banks of shared memory, than its budget,
// or has no budget. The counts are of the host compiler's loads and stores, not of the GPU's code.
// A case fails if the bytes of its operands that its kernels touch, each once for reading and once
// for writing, are not those of the formula that the case states (bench/kernel_cases.h).
//   kernel_cards [--write] BUDGETS.json     checks, or writes the file anew
//   kernel_cards --table [RESOURCES.json]   prints the cards as a Markdown table, with the
//                                           figures of ptxas (bench/kernel_resources.py)
#include <bench/kernel_cases.h>
#include <binade/kernels/host/access_report.h>
#include <binade/kernels/host/executor.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

using namespace binade;
using nlohmann::json;

namespace {

struct Card {
  uint64_t requests = 0, sectors = 0, bytes_used = 0;  // global memory
  uint64_t ideal_sectors = 0, ideal_wavefronts = 0;
  uint64_t shared_requests = 0, wavefronts = 0;  // shared memory
  uint64_t atomics = 0, conflicts = 0;           // requests, and turns that their lanes take
  uint32_t threads = 0;                          // per block
  size_t shared_bytes = 0;
  double bytes = 0, flops = 0;  // minimum that the case needs
};
using Cards = std::map<std::string, Card>;  // "case dtype kernel"

// The memory traffic of a case that no cache saves: what its formula says, and what was counted.
struct Compulsory {
  double stated = 0, most = 0;  // the two differ where it depends on the values
  uint64_t counted = 0;
};
struct Counts {
  Cards cards;
  std::map<std::string, Compulsory> cases;  // "case dtype"
};

struct Shape {
  int64_t rows, cols;
};

// Odd enough to have tails, small enough to execute in milliseconds.
Shape shape_of(const std::string& name) {
  if (name.starts_with("conv2d") || name.starts_with("max_pool2d")) {
    return {2, 32};
  }
  if (name.starts_with("attention")) {
    return {72, 64};
  }
  if (name.starts_with("conv") || name.starts_with("group_norm") || name.starts_with("bilinear") ||
      name.starts_with("grid_sample")) {
    return {2, 40};
  }
  return name == "gemm" ? Shape{192, 128} : Shape{100, 264};
}

Counts count() {
  Counts counts;
  Cards& cards = counts.cards;
  for (const bench::KernelCase& one : bench::kernel_cases()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const Shape shape = shape_of(one.name);
      const bench::Prepared work =
          one.prepare(shape.rows, shape.cols, dtype, Device::parse("emulated"));
      kernels::host::reset_access_report();
      kernels::host::options().count_accesses = true;
      work.run();
      kernels::host::options().count_accesses = false;
      for (const kernels::host::AccessRow& row : kernels::host::access_report()) {
        Card& card = cards[text(one.name, " ", dtype, " ", row.kernel)];
        const bool shared = kernels::host::is_shared(row.kind);
        (shared ? card.shared_requests : card.requests) += row.requests;
        card.sectors += shared ? 0 : row.sectors;
        card.bytes_used += shared ? 0 : row.bytes_used;
        card.wavefronts += row.wavefronts;
        card.ideal_sectors += row.ideal_sectors;
        card.ideal_wavefronts += row.ideal_wavefronts;
        card.atomics += kernels::host::is_atomic(row.kind) ? row.requests : 0;
        card.conflicts += row.conflicts;
      }
      Compulsory& compulsory = counts.cases[text(one.name, " ", dtype)];
      compulsory.stated = work.bytes;
      compulsory.most = work.bytes + work.bytes_by_values;
      for (const auto& block : work.operands->blocks()) {
        compulsory.counted += kernels::host::touched_bytes(block.begin, block.bytes).compulsory();
      }
      for (const kernels::host::LaunchRow& launch : kernels::host::launch_report()) {
        Card& card = cards[text(one.name, " ", dtype, " ", launch.kernel)];
        card.threads = launch.threads;
        card.shared_bytes = launch.shared_bytes;
        card.bytes = work.bytes;
        card.flops = work.flops;
      }
    }
  }
  return counts;
}

int write(const Cards& cards, const char* path) {
  json out = json::object();
  for (const auto& [name, card] : cards) {
    out[name] = {
        {"sectors", card.sectors}, {"wavefronts", card.wavefronts}, {"conflicts", card.conflicts}};
  }
  std::ofstream file(path);
  file << out.dump(1) << "\n";
  std::printf("%zu budgets written to %s\n", cards.size(), path);
  return file ? 0 : 1;
}

json read_json(const char* path) {
  std::ifstream file(path);
  check(file.good(), "kernel_cards: cannot read ", path);
  return json::parse(file);
}

int check_budgets(const Counts& counts, const char* path) {
  const Cards& cards = counts.cards;
  const json budgets = read_json(path);
  int failed = 0;
  const auto complain = [&](const std::string& name, const std::string& what) {
    std::printf("%s: %s\n", name.c_str(), what.c_str());
    ++failed;
  };
  for (const auto& [name, card] : cards) {
    if (!budgets.contains(name)) {
      complain(name, "no budget; add one with --write");
      continue;
    }
    const std::pair<const char*, uint64_t> values[] = {
        {"sectors", card.sectors}, {"wavefronts", card.wavefronts}, {"conflicts", card.conflicts}};
    for (const auto& [what, value] : values) {
      const auto budget = budgets[name][what].get<uint64_t>();
      if (value > budget) {
        complain(name, text(value, " ", what, ", budget ", budget));
      }
    }
  }
  for (const auto& [name, unused] : budgets.items()) {
    if (!cards.contains(name)) {
      complain(name, "has a budget but was not run");
    }
  }
  for (const auto& [name, compulsory] : counts.cases) {
    const auto counted = static_cast<double>(compulsory.counted);
    if (counted < compulsory.stated || counted > compulsory.most) {
      complain(name, text("its kernels touch ", compulsory.counted, " bytes of its operands, its ",
                          "formula says ", compulsory.stated));
    }
  }
  std::printf("%zu kernels of %zu cases, %d failed\n", cards.size(), counts.cases.size(), failed);
  return failed == 0 ? 0 : 1;
}

// The capacity of one multiprocessor of a card.
struct Multiprocessor {
  uint32_t warps, blocks;
  size_t shared_bytes, reserved_bytes;  // reserved for every block
};
constexpr uint32_t kRegisters = 65536;
Multiprocessor multiprocessor(const std::string& card) {
  if (card == "sm_75") {
    return {32, 16, 64 << 10, 0};
  }
  return {64, 32, card == "sm_80" ? size_t{164} << 10 : size_t{228} << 10, 1 << 10};
}

// The share of a multiprocessor's warps that can be resident at once.
double occupancy(const Card& card, uint32_t registers, const Multiprocessor& sm) {
  const uint32_t warps = (card.threads + 31) / 32;
  const uint32_t per_warp = (registers * 32 + 255) / 256 * 256;  // handed out by 256
  const uint32_t by_registers = kRegisters / std::max(per_warp, 256u) / warps;
  const size_t by_memory = sm.shared_bytes / (card.shared_bytes + sm.reserved_bytes + 1);
  const auto blocks = static_cast<uint32_t>(
      std::min<size_t>(std::min({sm.warps / warps, sm.blocks, by_registers}), by_memory));
  return static_cast<double>(blocks * warps) / sm.warps;
}

// Registers, spilled bytes and occupancy on each card of the resources. A kernel is listed under
// its name and dtype, or under its name alone.
std::string on_cards(const json& resources, const std::string& name, const Card& card) {
  const std::string kernel = name.substr(name.rfind(' ') + 1);
  const size_t first = name.find(' ');
  const std::string dtype = name.substr(first + 1, name.rfind(' ') - first - 1);
  std::string columns;
  for (const auto& [sm, kernels] : resources.items()) {
    const auto found = kernels.contains(kernel + " " + dtype) ? kernels.find(kernel + " " + dtype)
                                                              : kernels.find(kernel);
    if (found == kernels.end()) {
      columns += " | | |";
      continue;
    }
    const auto registers = (*found)["registers"].get<uint32_t>();
    char line[96];
    std::snprintf(line, sizeof line, " %u | %u | %.0f%% |", registers,
                  (*found)["spilled_bytes"].get<uint32_t>(),
                  100 * occupancy(card, registers, multiprocessor(sm)));
    columns += line;
  }
  return columns;
}

int print_table(const Cards& cards, const json& resources) {
  std::string header =
      "| case, dtype, kernel | bytes | FLOPs | sectors per request (ideal) | moved bytes used | "
      "wavefronts per shared request (ideal) | lanes per atomic on one address | threads | shared "
      "bytes |";
  std::string rule = "| --- | --- | --- | --- | --- | --- | --- | --- | --- |";
  for (const auto& [sm, unused] : resources.items()) {
    header += " " + sm + " registers | spilled bytes | occupancy |";
    rule += " --- | --- | --- |";
  }
  std::printf("%s\n%s\n", header.c_str(), rule.c_str());
  for (const auto& [name, card] : cards) {
    const auto ratio = [](uint64_t a, uint64_t b) {
      return b ? static_cast<double>(a) / static_cast<double>(b) : 0;
    };
    std::printf(
        "| %s | %.0f | %.0f | %.2f (%.2f) | %.0f%% | %.2f (%.2f) | %.2f | %u | %zu |%s\n",
        name.c_str(), card.bytes, card.flops, ratio(card.sectors, card.requests),
        ratio(card.ideal_sectors, card.requests), 100 * ratio(card.bytes_used, 32 * card.sectors),
        ratio(card.wavefronts, card.shared_requests),
        ratio(card.ideal_wavefronts, card.shared_requests), ratio(card.conflicts, card.atomics),
        card.threads, card.shared_bytes, on_cards(resources, name, card).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Counts counts = count();
    if ((argc == 2 || argc == 3) && std::strcmp(argv[1], "--table") == 0) {
      return print_table(counts.cards, argc == 3 ? read_json(argv[2]) : json::object());
    }
    check(argc == 2 || (argc == 3 && std::strcmp(argv[1], "--write") == 0),
          "usage: kernel_cards [--write] BUDGETS.json | --table [RESOURCES.json]");
    return argc == 3 ? write(counts.cards, argv[2]) : check_budgets(counts, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
}
