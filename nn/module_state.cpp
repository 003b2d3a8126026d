// What a module saves, loads and prints.
#include <binade/nn/module.h>
#include <binade/nn/module_walk_internal.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace binade::nn {

NamedTensors Module::state() const {
  NamedTensors state;
  std::map<const OwnParameter*, std::string> first;
  for (const Shared& parameter : shared_parameters()) {
    first.emplace(parameter.members[0].own, parameter.name());
  }
  walk("", [&](const std::string& at, const Module& module) {
    for (const auto& own : module.own_parameters_) {
      if (first.contains(own.get())) {
        state.emplace_back(join_path(at, own->name), own->tensor->detach());
      }
    }
    for (const auto& [name, tensor] : module.own_buffers_) {
      state.emplace_back(join_path(at, name), tensor->detach());
    }
  });
  return state;
}

void Module::load_state(const NamedTensors& state) {
  std::vector<LoadTarget> targets;
  std::vector<Tensor> tensors;
  for (const Shared& parameter : shared_parameters()) {
    LoadTarget target{{}, parameter.tensor().sizes()};
    for (const Member& member : parameter.members) {
      target.names.push_back(member.path);
    }
    targets.push_back(std::move(target));
    tensors.push_back(parameter.tensor());
  }
  for (const Buffer& buffer : buffers()) {
    targets.push_back({{buffer.path}, buffer.tensor->sizes()});
    tensors.push_back(*buffer.tensor);
  }
  NamedTensors given;
  std::copy_if(state.begin(), state.end(), std::back_inserter(given),
               [](const auto& entry) { return !entry.first.ends_with("num_batches_tracked"); });
  const std::vector<Tensor> sources = match_named("load_state", targets, given);
  const NoGradGuard guard;
  for (size_t i = 0; i < tensors.size(); ++i) {
    set_value(tensors[i], sources[i]);
  }
}

std::string Module::describe() const {
  std::vector<std::array<std::string, 5>> rows = {{"name", "shape", "dtype", "elements", ""}};
  int64_t total = 0, trained = 0;
  for (const Shared& parameter : shared_parameters()) {
    const Tensor& t = parameter.tensor();
    const bool trainable = parameter.members[0].own->trainable;
    std::string remark = trainable ? "" : "frozen";
    for (size_t i = 1; i < parameter.members.size(); ++i) {
      remark += (remark.empty() ? "also " : ", also ") + parameter.members[i].path;
    }
    rows.push_back({parameter.name(), to_string(t.sizes()), to_string(t.dtype()),
                    std::to_string(t.numel()), remark});
    total += t.numel();
    trained += trainable ? t.numel() : 0;
  }
  for (const Buffer& buffer : buffers()) {
    const Tensor& t = *buffer.tensor;
    rows.push_back({buffer.path, to_string(t.sizes()), to_string(t.dtype()),
                    std::to_string(t.numel()), "buffer"});
  }
  size_t widths[4] = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < 4; ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < 4; ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += i == 3 ? pad + row[i] + "  " : row[i] + pad + "  ";
    }
    line += row[4];
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out + text(total, " parameters, ", trained, " of them trained\n");
}

}  // namespace binade::nn
