#include <binade/core/autograd/hooks.h>
#include <binade/core/autograd/node.h>
#include <binade/core/autograd/op.h>
#include <binade/core/device/graph.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/format_internal.h>
#include <binade/core/ops/format.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

namespace binade {
namespace {

constexpr int kGradientPlace = -1;  // an index that no input has
constexpr int kImageRank = 4;       // [N, C, H, W] and [O, C, H, W]

bool is_product_of_two(std::string_view op) {
  return op == "matmul" || op == "bmm" || op == "addmm" || op == "outer";
}

// The dimension over which the product sums.
int summed_axis(std::string_view op, int index, const Tensor& x) {
  if (x.dim() == kImageRank && op.starts_with("conv")) {
    return 1;
  }
  const int right = op == "addmm" ? 2 : 1;
  return is_product_of_two(op) && index == right && x.dim() >= 2 ? -2 : -1;
}

bool is_weight(const Tensor& x) {
  return x.history() ? x.history()->leaf : x.handle()->storage->parent && !x.handle().unique();
}

}  // namespace

struct SimulatedFormats::Place {
  uint32_t module;
  std::string_view op;
  int index;
};

// The largest magnitudes of the last uses of each place: f32 [history].
struct SimulatedFormats::Histories {
  struct History {
    Tensor largest;
    int64_t uses = 0;
  };
  static constexpr size_t kRemembered = 16;
  std::mutex mutex;
  std::map<std::tuple<uint32_t, std::string, int>, History> places;
  // The last results, which are kept alive so that their memory is not taken for another tensor's.
  std::array<Tensor, kRemembered> results;
  size_t next_result = 0;

  // True for a result or a view of one: an op that calls another passes its rounded inputs on.
  bool is_result(const Tensor& x) {
    const std::lock_guard lock(mutex);
    return std::any_of(results.begin(), results.end(), [&](const Tensor& result) {
      return result.defined() && result.handle()->storage.get() == x.handle()->storage.get();
    });
  }
  void remember(const Tensor& result) {
    Tensor before;  // released after the lock
    const std::lock_guard lock(mutex);
    before = std::exchange(results[next_result++ % kRemembered], result.detach());
  }

  // The scale for this use. Notes the largest magnitude of x for the next ones.
  Tensor next_scale(const Tensor& x, const FormatScheme& scheme, const Place& place) {
    check(!is_capturing(x.device()),
          "round_to_format: got a delayed scale in a step that is recorded as a CUDA graph, "
          "expected steps without a graph (TrainerOptions::graph = StepGraph::off)");
    const std::lock_guard lock(mutex);
    History& own = places[{place.module, std::string(place.op), place.index}];
    if (!own.largest.defined() || own.largest.device() != x.device()) {
      own = {zeros({scheme.history}, DType::f32, x.device()), 0};
    }
    Tensor scale =
        detail::positive_scale(mul(amax(own.largest, {0}, true), 1 / scheme.format.max()));
    const int64_t at = own.uses++ % scheme.history;
    slice(own.largest, 0, at, at + 1)
        .copy_(x.numel() == 0 ? zeros({1}, DType::f32, x.device())
                              : reshape(cast(amax(abs(x)), DType::f32), {1}));
    return scale;
  }
};

SimulatedFormats::SimulatedFormats(FormatSchemes schemes)
    : schemes_(std::move(schemes)), histories_(std::make_unique<Histories>()) {}
SimulatedFormats::~SimulatedFormats() = default;

Tensor SimulatedFormats::rounded(const Tensor& x, FormatScheme scheme, const Place& place) const {
  if (scheme.scaling != FormatScaling::delayed) {
    return round_to_format(x, scheme);
  }
  const Tensor scale = [&] {
    const NoGradGuard guard;
    return histories_->next_scale(x.detach(), scheme, place);
  }();
  return round_to_format(x, scheme, scale);
}

Tensor SimulatedFormats::rounded_input(const Op& op, size_t index, const Tensor& given,
                                       const Tensor& cast) const {
  if (!given.defined() || !is_floating(cast.dtype()) || cast.dim() < 2) {
    return {};
  }
  const auto& wanted = is_weight(given) ? schemes_.weights : schemes_.activations;
  if (!wanted || histories_->is_result(given)) {
    return {};
  }
  FormatScheme scheme = *wanted;
  scheme.axis = summed_axis(op.name, static_cast<int>(index), cast);
  Tensor result = rounded(cast, std::move(scheme),
                          {detail::thread_state.label, op.name, static_cast<int>(index)});
  histories_->remember(result);
  return result;
}

Tensor SimulatedFormats::rounded_gradient(const Node& node, const Tensor& gradient) const {
  FormatScheme scheme = *schemes_.gradients;
  scheme.axis =
      gradient.dim() == kImageRank && std::string_view(node.name()).starts_with("conv") ? 1 : -1;
  return rounded(gradient, std::move(scheme), {node.label, node.name(), kGradientPlace});
}

void detail::simulate_gradient(Node& node) {
  const PrecisionScope* scope = thread_state.precision;
  const PrecisionRules* rules = scope ? scope->precision.rules.get() : nullptr;
  if (!rules || !rules->formats() || !rules->formats()->schemes().gradients ||
      node.op->op_class != OpClass::contraction) {
    return;
  }
  add_hook(node, [formats = rules->formats(), &node](Tensor& gradient) {
    gradient = formats->rounded_gradient(node, gradient);
  });
}

std::string to_string(const FormatSchemes& schemes) {
  std::string out;
  const auto add = [&](const char* what, const std::optional<FormatScheme>& scheme) {
    if (scheme) {
      out += (out.empty() ? "" : ", ") + std::string(what) + " " + to_string(*scheme);
    }
  };
  add("weights", schemes.weights);
  add("activations", schemes.activations);
  add("gradients", schemes.gradients);
  return out;
}

Precision with_formats(const Precision& precision, const FormatSchemes& schemes) {
  Precision out = precision;
  std::vector<PrecisionRule> list =
      precision.rules ? precision.rules->list() : std::vector<PrecisionRule>();
  auto formats = schemes.any() ? std::make_shared<const SimulatedFormats>(schemes) : nullptr;
  out.rules = list.empty() && !formats
                  ? nullptr
                  : std::make_shared<const PrecisionRules>(std::move(list), std::move(formats));
  return out;
}

FormatSchemes formats_of(const Precision& precision) {
  const bool has = precision.rules && precision.rules->formats();
  return has ? precision.rules->formats()->schemes() : FormatSchemes{};
}

}  // namespace binade
