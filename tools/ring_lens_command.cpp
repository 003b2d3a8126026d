// binade ring-lens: what each way of an all-reduce does to the numbers of a tensor.
#include "commands.h"

#include <binade/core/io/safetensors.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/ring_lens.h>
#include <binade/kernels/base/printable.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace binade {
namespace {

struct RingLensArguments {
  std::string file, name;
  int64_t elements = 16384;
  double deviation = 1e-3;
  bool json = false;
  dist::RingLensOptions lens;
};

Tensor read_tensor(const std::string& path, const std::string& name) {
  check(!name.empty(), "ring-lens: got a file but no name of a tensor: binade ring-lens FILE NAME");
  const SafetensorsFile file = SafetensorsFile::open(path);
  const TensorEntry& entry = file.at(name);
  const Tensor x = empty(entry.sizes, file.dtype_of(entry));
  file.read(entry, {x.view().data, static_cast<size_t>(entry.bytes())});
  return x;
}

void run(const RingLensArguments& a) {
  manual_seed(a.lens.seed);
  check(a.elements >= 1 && a.elements <= int64_t(1) << 28, "ring-lens: got --elements ", a.elements,
        ", expected 1 to 2^28");
  const bool drawn = a.file.empty();
  Tensor x = drawn ? empty({a.elements}) : read_tensor(a.file, a.name);
  if (drawn) {
    fill_normal(x, 0, a.deviation);
  }
  const std::string source =
      drawn ? text("normal numbers, deviation ", a.deviation, ", seed ", a.lens.seed)
            : printable(text(a.file, " ", a.name));
  const auto report = dist::ring_lens(x, source, a.lens);
  std::fputs((a.json ? to_json(report) : to_text(report)).c_str(), stdout);
}

}  // namespace

void add_ring_lens(CLI::App& app) {
  auto* command = app.add_subcommand(
      "ring-lens", "the error of every way to sum a tensor over ranks, hop by hop");
  const auto a = std::make_shared<RingLensArguments>();
  command->add_option("FILE", a->file, "a safetensors file; without it numbers are drawn");
  command->add_option("NAME", a->name, "a tensor of it");
  command->add_option("--ranks", a->lens.ranks, "how many ranks")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--elements", a->elements, "to draw")->capture_default_str();
  command->add_option("--deviation", a->deviation, "of what is drawn")->capture_default_str();
  command->add_option("--seed", a->lens.seed)->capture_default_str();
  command->add_flag("--json", a->json, "every hop of every choice, as JSON");
  command->callback([a] { run(*a); });
}

}  // namespace binade
