// binade ring-lens: shows the rounding errors of each kind of all-reduce on a tensor.
#include "commands.h"

#include <binade/core/io/safetensors.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/printable.h>

#include <cstdio>

namespace binade::tool {
namespace {

Tensor read_tensor(const std::string& path, const std::string& name) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const TensorEntry& entry = file.at(name);
  const Tensor x = empty(entry.sizes, file.dtype_of(entry));
  file.read(entry, {x.view().data, static_cast<size_t>(entry.bytes())});
  return x;
}

}  // namespace

int run(const RingLensOptions& o) {
  manual_seed(o.lens.seed);
  const bool drawn = o.file.empty();
  Tensor x = drawn ? empty({o.elements}) : read_tensor(o.file, o.name);
  if (drawn) {
    fill_normal(x, 0, o.deviation);
  }
  const std::string source =
      drawn ? text("normal numbers, deviation ", o.deviation, ", seed ", o.lens.seed)
            : printable(text(o.file, " ", o.name));
  const auto report = dist::ring_lens(x, source, o.lens);
  std::fputs((o.json ? to_json(report) : to_text(report)).c_str(), stdout);
  return 0;
}

}  // namespace binade::tool
