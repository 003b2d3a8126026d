#include <binade/core/autograd/autograd.h>
#include <binade/core/device/graph.h>
#include <binade/core/observe/label.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/format_internal.h>
#include <binade/core/precision/format_histories_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <charconv>

namespace binade {
namespace {

constexpr const char *kInput = "input", *kOutput = "output";

std::string name_of(const auto& place) {
  return text(label_text(place.module), "/", place.op, "/", place.call, "/",
              place.is_output ? kOutput : kInput, place.index);
}

// Takes the part after the last slash off a name.
std::string_view last_part(std::string_view& name) {
  const size_t slash = name.rfind('/');
  const std::string_view part = slash == std::string_view::npos ? name : name.substr(slash + 1);
  name = slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
  return part;
}

template <class T>
bool parse_whole(std::string_view digits, T& number) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stop == end && number >= 0;
}

// False if the name is of another form.
bool parse_place(const std::string& name, auto& place) {
  std::string_view rest = name;
  std::string_view operand = last_part(rest);
  place.is_output = operand.starts_with(kOutput);
  const std::string_view kind = place.is_output ? kOutput : kInput;
  bool good = operand.starts_with(kind) && std::count(name.begin(), name.end(), '/') >= 3;
  operand.remove_prefix(std::min(operand.size(), kind.size()));
  good = good && parse_whole(operand, place.index) && parse_whole(last_part(rest), place.call);
  place.op = last_part(rest);
  place.module = intern_label(0, rest);
  return good && !place.op.empty();
}

// The largest finite magnitude, f32 [1]. An overflow is no reason to forget the scale.
Tensor largest_of(const Tensor& x) {
  if (x.numel() == 0) {
    return zeros({1}, DType::f32, x.device());
  }
  const Tensor largest = reshape(cast(amax(abs(x)), DType::f32), {1});
  return where(isfinite(largest), largest, 0.0);
}

}  // namespace

bool SimulatedFormats::Histories::is_result(const Tensor& x) {
  const std::lock_guard lock(mutex_);
  return std::any_of(results_.begin(), results_.end(), [&](const Tensor& result) {
    return result.defined() && result.handle()->storage.get() == x.handle()->storage.get();
  });
}

void SimulatedFormats::Histories::remember(const Tensor& result) {
  Tensor before;  // released after the lock
  const std::lock_guard lock(mutex_);
  before = std::exchange(results_[next_result_++ % kRemembered], result.detach());
}

Tensor SimulatedFormats::Histories::History::ordered() const {
  const int64_t length = largest.size(0), at = uses % length;
  return uses < length ? slice(largest, 0, 0, uses)
                       : cat({slice(largest, 0, at, length), slice(largest, 0, 0, at)});
}

void SimulatedFormats::Histories::History::fit(int64_t length, Device device) {
  if (largest.defined() && largest.size(0) == length && largest.device() == device) {
    return;
  }
  History fresh{.largest = zeros({length}, DType::f32, device)};
  if (largest.defined()) {
    const Tensor kept = ordered();
    fresh.uses = std::min(kept.size(0), length);
    slice(fresh.largest, 0, 0, fresh.uses)
        .copy_(slice(kept, 0, kept.size(0) - fresh.uses, kept.size(0)).to(device));
  }
  *this = fresh;
}

Tensor SimulatedFormats::Histories::next_scale(const Tensor& x, const FormatScheme& scheme,
                                               const Place& place, bool notes) {
  check(!is_capturing(x.device()),
        "round_to_format: got a delayed scale in a step that is recorded as a CUDA graph, "
        "expected steps without a graph (TrainerOptions::graph = StepGraph::off)");
  const NoGradGuard guard;
  const std::lock_guard lock(mutex_);
  if (!notes && !places_.contains(place)) {
    return {};
  }
  History& own = places_[place];
  own.fit(scheme.history, x.device());
  Tensor scale = detail::positive_scale(mul(amax(own.largest, {0}, true), 1 / scheme.format.max()));
  if (notes) {
    const int64_t at = own.uses++ % scheme.history;
    slice(own.largest, 0, at, at + 1).copy_(largest_of(x));
  }
  return scale;
}

NamedTensors SimulatedFormats::Histories::tensors() {
  const NoGradGuard guard;
  const std::lock_guard lock(mutex_);
  NamedTensors all;
  for (const auto& [place, history] : places_) {
    all.emplace_back(name_of(place), history.ordered().clone());
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

void SimulatedFormats::Histories::set(const NamedTensors& tensors) {
  const NoGradGuard guard;
  std::map<Place, History> places;
  for (const auto& [name, tensor] : tensors) {
    Place place;
    check(parse_place(name, place) && tensor.dtype() == DType::f32 && tensor.dim() == 1 &&
              tensor.numel() > 0,
          "delayed scales: got '", printable(name), "', ", tensor.dtype(), " ", tensor.sizes(),
          ", expected MODULE/OP/CALL/inputI or outputI, f32 [uses]");
    places[place] = {.largest = tensor.clone(), .uses = tensor.numel()};
  }
  const std::lock_guard lock(mutex_);
  places_ = std::move(places);
}

}  // namespace binade
