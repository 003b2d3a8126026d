// Kernel cards: what each kernel moves, counted by host execution on one fixed case, against the
// budget in bench/kernel_budgets.json. A kernel that touches more 32-byte sectors of global memory
// or takes more passes over the banks of shared memory than its budget fails, and so does one
// without a budget. Counted are the host compiler's loads and stores, not those of the GPU's code.
//   kernel_cards [--write] BUDGETS.json     checks, or writes the file anew
//   kernel_cards --table                    prints the cards as a Markdown table
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
  uint64_t shared_requests = 0, wavefronts = 0;        // shared memory
};
using Cards = std::map<std::string, Card>;  // "case dtype kernel"

struct Shape {
  int64_t rows, cols;
};

// Odd enough to have tails, small enough to execute in milliseconds.
Shape shape_of(const std::string& name) {
  if (name.starts_with("conv2d") || name.starts_with("max_pool2d")) {
    return {2, 32};
  }
  return name == "gemm" ? Shape{192, 128} : Shape{100, 264};
}

Cards count() {
  Cards cards;
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
        const bool shared = row.kind == kernels::host::AccessKind::shared_read ||
                            row.kind == kernels::host::AccessKind::shared_write;
        (shared ? card.shared_requests : card.requests) += row.requests;
        card.sectors += shared ? 0 : row.sectors;
        card.bytes_used += shared ? 0 : row.bytes_used;
        card.wavefronts += row.wavefronts;
      }
    }
  }
  return cards;
}

int write(const Cards& cards, const char* path) {
  json out = json::object();
  for (const auto& [name, card] : cards) {
    out[name] = {{"sectors", card.sectors}, {"wavefronts", card.wavefronts}};
  }
  std::ofstream file(path);
  file << out.dump(1) << "\n";
  std::printf("%zu budgets written to %s\n", cards.size(), path);
  return file ? 0 : 1;
}

int check_budgets(const Cards& cards, const char* path) {
  std::ifstream file(path);
  check(file.good(), "kernel_cards: cannot read ", path);
  const json budgets = json::parse(file);
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
    const std::pair<const char*, uint64_t> values[] = {{"sectors", card.sectors},
                                                       {"wavefronts", card.wavefronts}};
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
  std::printf("%zu kernels, %d beyond their budget\n", cards.size(), failed);
  return failed == 0 ? 0 : 1;
}

int print_table(const Cards& cards) {
  std::printf(
      "| case, dtype, kernel | sectors per request | share of moved bytes used | "
      "wavefronts per shared request |\n| --- | --- | --- | --- |\n");
  for (const auto& [name, card] : cards) {
    const auto ratio = [](uint64_t a, uint64_t b) {
      return b ? static_cast<double>(a) / static_cast<double>(b) : 0;
    };
    std::printf("| %s | %.2f | %.0f%% | %.2f |\n", name.c_str(), ratio(card.sectors, card.requests),
                100 * ratio(card.bytes_used, 32 * card.sectors),
                ratio(card.wavefronts, card.shared_requests));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Cards cards = count();
    if (argc == 2 && std::strcmp(argv[1], "--table") == 0) {
      return print_table(cards);
    }
    check(argc == 2 || (argc == 3 && std::strcmp(argv[1], "--write") == 0),
          "usage: kernel_cards [--write] BUDGETS.json | --table");
    return argc == 3 ? write(cards, argv[2]) : check_budgets(cards, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
}
