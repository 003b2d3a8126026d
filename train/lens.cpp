#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/op.h>
#include <binade/core/io/file_system.h>
#include <binade/core/io/json_text.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/exponents/exponents.h>
#include <binade/train/lens.h>
#include <binade/train/report/numbers_internal.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

namespace binade::train {
namespace {

// Counts that are still on the device.
struct LensEntry {
  LensKind kind;
  std::string layer, tensor;
  double scale;
  DType stored;
  Tensor counts, lost;
  WorstElements worst;
};

// [exponent, index, value, in f16, in bf16] of each; an infinity is null.
std::string json_of(const std::map<int, std::vector<WorstElement>>& worst) {
  const auto number = [](float value) {
    char digits[24];  // that read back equal
    std::snprintf(digits, sizeof digits, "%.9g", value);
    return std::isfinite(value) ? std::string(digits) : "null";
  };
  std::string list;
  for (const auto& [exponent, elements] : worst) {
    for (const WorstElement& e : elements) {
      std::string place;
      for (const int64_t index : e.place) {
        place += text(place.empty() ? "" : ",", index);
      }
      list += text(list.empty() ? "" : ",", "[", exponent, ",[", place, "],", number(e.value), ",",
                   number(e.in_f16), ",", number(e.in_bf16), "]");
    }
  }
  return "[" + list + "]";
}

std::string layer_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

bool is_view(const OpEvent& event, const Tensor& y) {
  return std::any_of(event.inputs.begin(), event.inputs.end(), [&y](const Tensor* x) {
    return x->defined() && x->handle()->storage.get() == y.handle()->storage.get();
  });
}

// True if the op only copies its input, to another dtype or device.
bool only_copies(std::string_view op) {
  return op == "cast" || op == "policy_cast" || op == "to_device";
}

Tensor copy_of(const Tensor& t) {
  Tensor copy = empty_like(t, DType::f32);
  copy.copy_(t);
  return copy;
}

}  // namespace

const char* to_string(LensKind kind) {
  constexpr const char* kNames[kLensKinds] = {"activation", "activation_gradient",
                                              "weight_gradient", "weight", "update"};
  return kNames[static_cast<int>(kind)];
}

std::string to_json(const LensRecord& r) {
  std::string line;
  const auto add = [&line](const char* name, const auto& value) {
    line += text(line.empty() ? "{\"" : ",\"", name, "\":", value);
  };
  const auto elements = static_cast<double>(std::max<int64_t>(r.counts.numel(), 1));
  const auto share = [elements](int64_t count) { return static_cast<double>(count) / elements; };
  const HalfCounts f16 = r.counts.in_f16();
  add("step", r.step);
  add("kind", json_quoted(to_string(r.kind)));
  add("layer", json_quoted(r.layer));
  add("tensor", json_quoted(r.tensor));
  add("elements", r.counts.numel());
  add("scale", r.scale);
  add("stored", json_quoted(to_string(r.stored)));
  add("zeros", r.counts.zeros());
  add("nans", r.counts.nans());
  add("infinities", r.counts.infinities());
  add("largest", r.counts.largest());
  add("smallest", r.counts.smallest());
  add("f16_overflow", share(f16.overflow));
  add("f16_subnormal", share(f16.subnormal));
  if (r.shows_flushed()) {
    add("f16_flushed", share(f16.flushed));
  }
  if (r.stored != DType::bf16) {
    add("bf16_changed", share(r.counts.changed_in_bf16()));
  }
  if (r.kind == LensKind::update) {
    add("changed", share(r.lost.changed));
    add("f16_lost", share(r.lost.in_f16));
    add("bf16_lost", share(r.lost.in_bf16));
  }
  if (r.kind == LensKind::activation_gradient || r.kind == LensKind::weight_gradient) {
    std::string rows;
    for (const auto& [scale, fates] : scale_table(r.counts, kLensScales)) {
      rows += text(rows.empty() ? "" : ",", "{\"scale\":", scale,
                   ",\"flushed\":", r.shows_flushed(scale) ? text(fates.flushed) : "null",
                   ",\"subnormal\":", fates.subnormal, ",\"overflow\":", fates.overflow, "}");
    }
    add("static_scales", "[" + rows + "]");
  }
  int least = ExponentCounts::kMost + 1, most = least - 1;
  for (int e = ExponentCounts::kLeast - 1; e <= ExponentCounts::kMost; ++e) {
    if (r.counts.at(e) > 0) {
      least = std::min(least, e);
      most = e;
    }
  }
  std::string exponents;
  for (int e = least; e <= most; ++e) {
    exponents += text(e == least ? "" : ",", r.counts.at(e));
  }
  add("least_exponent", least);
  add("exponents", "[" + exponents + "]");
  if (!r.worst.empty()) {
    add("worst", json_of(r.worst));
  }
  return line + "}";
}

// Observes one step.
class Lens::Watch : public OpObserver {
 public:
  Watch(const Lens& lens, int64_t step) : lens_(lens), step_(step) {
    scope_.emplace(*this);
    if (wants(LensKind::update)) {
      const UnobservedGuard unobserved;
      for (const auto& [name, tensor] : weights()) {
        before_.emplace_back(name, copy_of(tensor));
      }
    }
  }

  void result(const OpEvent& event) override {
    if (event.in_backward || !wants(LensKind::activation)) {
      return;
    }
    for (const Tensor& y : event.outputs) {
      if (is_floating(y.dtype()) && !only_copies(event.op.name) && !is_view(event, y)) {
        count_op(LensKind::activation, event.module, event.op.name, y, 1);
      }
    }
  }

  void upstream(const GradientEvent& event) override {
    // Leaves out the seed, which no policy stores in f16.
    const bool wanted = wants(LensKind::activation_gradient) && !event.node.leaf &&
                        event.upstream.defined() && event.upstream.numel() > 1;
    if (wanted && !only_copies(event.node.name())) {
      count_op(LensKind::activation_gradient, event.node.label, event.node.name(), event.upstream,
               scale_of(event.run));
    }
  }

  // Reads gradients and weights before the update.
  void look_at_parameters() {
    scope_.reset();
    const UnobservedGuard unobserved;
    for (const Parameter& parameter : lens_.parameters_) {
      if (!parameter.value.requires_grad() || !wants(LensKind::weight_gradient)) {
        continue;
      }
      const Leaf& leaf = parameter.leaf();
      if (leaf.has_grad && shows(layer_of(parameter.name))) {
        count({LensKind::weight_gradient, layer_of(parameter.name), parameter.name}, leaf.buffer,
              leaf.full_scale());
      }
    }
    if (wants(LensKind::weight)) {
      for (const auto& [name, tensor] : weights()) {
        count({LensKind::weight, layer_of(name), name}, tensor, 1);
      }
    }
  }

  std::vector<LensRecord> finish() {
    scope_.reset();
    const UnobservedGuard unobserved;
    const NamedTensors after = weights();
    for (size_t i = 0; i < before_.size(); ++i) {
      const auto& [name, old] = before_[i];
      const Tensor now = copy_of(after[i].second);
      LensEntry& entry = count({LensKind::update, layer_of(name), name}, sub(now, old), 1);
      entry.lost = count_lost_updates(old, now);
    }
    std::vector<LensRecord> records;
    for (const LensEntry& e : entries_) {
      const bool exact = is_power_of_two(e.scale);
      records.push_back({step_, e.kind, e.layer, e.tensor, e.scale, e.stored,
                         ExponentCounts(e.counts, exact ? e.scale : 1),
                         e.lost.defined() ? lost_updates(e.lost) : LostUpdates{}, e.worst.all()});
    }
    return records;
  }

 private:
  struct Place {
    LensKind kind;
    std::string layer, tensor;
  };

  bool wants(LensKind kind) const {
    const auto& kinds = lens_.options_.kinds;
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }
  bool shows(const std::string& layer) const {
    return fnmatch(lens_.options_.layers.c_str(), layer.c_str(), 0) == 0;
  }

  // The masters, and the values of parameters without a master.
  NamedTensors weights() const {
    std::map<std::string, Tensor> masters;
    for (const auto& [name, tensor] : lens_.optimizer_.state_tensors()) {
      if (name.rfind("master.", 0) == 0) {
        masters.emplace(name.substr(7), tensor);
      }
    }
    NamedTensors all;
    for (const Parameter& parameter : lens_.parameters_) {
      if (parameter.value.requires_grad() && shows(layer_of(parameter.name))) {
        const auto master = masters.find(parameter.name);
        all.emplace_back(parameter.name, master != masters.end() ? master->second.detach()
                                                                 : parameter.value.detach());
      }
    }
    return all;
  }

  // The scale may be a number on the device, which does not change during the step.
  double scale_of(const BackwardOptions& run) {
    if (!run.device_scale.defined()) {
      return run.scale;
    }
    if (run.device_scale.handle().get() != known_word_.handle().get()) {
      known_word_ = run.device_scale;
      known_scale_ = run.device_scale.item();
    }
    return run.scale * known_scale_;
  }

  void count_op(LensKind kind, uint32_t module, const char* op, const Tensor& x, double scale) {
    const std::string layer = label_text(module);
    if (shows(layer)) {
      count({kind, layer, layer.empty() ? op : layer + "/" + op}, x, scale);
    }
  }

  LensEntry& count(const Place& place, const Tensor& x, double scale) {
    const auto key = std::pair(place.kind, place.tensor);
    auto [at, is_new] = index_.try_emplace(key, entries_.size());
    const bool same =
        is_new || (entries_[at->second].scale == scale && entries_[at->second].stored == x.dtype());
    if (!same) {  // another scale or dtype: another line
      at->second = entries_.size();
      is_new = true;
    }
    if (is_new) {
      entries_.push_back({place.kind, place.layer, place.tensor, scale, x.dtype(),
                          zeros({kernels::kExponentCounters}, DType::i64, x.device()), Tensor(),
                          WorstElements(lens_.options_.worst)});
    }
    LensEntry& entry = entries_[at->second];
    const bool exact = is_power_of_two(scale);
    const Tensor counted = exact ? x : mul(copy_of(x), 1 / scale);
    count_exponents(counted, entry.counts);
    entry.worst.add(counted, exact ? scale : 1);
    return entry;
  }

  const Lens& lens_;
  int64_t step_;
  std::optional<ObserverScope> scope_;
  std::vector<LensEntry> entries_;
  std::map<std::pair<LensKind, std::string>, size_t> index_;
  NamedTensors before_;
  Tensor known_word_;
  double known_scale_ = 1;
};

Lens::Lens(const ParameterList& parameters, const optim::Optimizer& optimizer,
           const LensOptions& options)
    : options_(options), parameters_(parameters.with_leaves()), optimizer_(optimizer) {
  check(options.every >= 1, "lens: got every = ", options.every, ", expected at least 1");
  if (!options.file.empty()) {
    write("", !options.append);
  }
}

void Lens::write(const std::string& lines, bool anew) const {
  append_to_file(options_.file, lines, options_.files ? *options_.files : file_system(), anew);
}

Lens::~Lens() = default;

bool Lens::looks_at(int64_t step) const { return step % options_.every == 0; }

void Lens::begin(int64_t step) {
  watch_.reset();
  if (looks_at(step)) {
    watch_ = std::make_unique<Watch>(*this, step);
  }
}

void Lens::before_update() {
  if (watch_) {
    watch_->look_at_parameters();
  }
}

void Lens::end() {
  if (!watch_) {
    return;
  }
  records_ = watch_->finish();
  watch_.reset();
  std::string lines;
  for (const LensRecord& record : records_) {
    lines += to_json(record) + "\n";
    if (record.kind == LensKind::activation_gradient || record.kind == LensKind::weight_gradient) {
      gradients_.add(record.counts);
    }
  }
  if (!options_.file.empty()) {
    write(lines, false);
  }
}

}  // namespace binade::train
