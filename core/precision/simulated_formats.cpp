#include <binade/core/autograd/hooks.h>
#include <binade/core/autograd/node.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/label.h>
#include <binade/core/ops/format.h>
#include <binade/core/precision/format_calls_internal.h>
#include <binade/core/precision/format_histories_internal.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>

#include <algorithm>
#include <string_view>

namespace binade {
namespace {

constexpr int kImageRank = 4;  // [N, C, H, W] and [O, C, H, W]

// The dimension over which the product sums.
int summed_axis(std::string_view op, int index, const Tensor& x) {
  if (x.dim() == kImageRank && op.starts_with("conv")) {
    return 1;
  }
  const int right = op == "matmul" ? 1 : op == "addmm" || op == "baddbmm" ? 2 : -1;
  return index == right && x.dim() >= 2 ? -2 : -1;
}

bool is_summed(std::string_view op) {
  const std::vector<std::string>& all = summed_ops();
  return std::find(all.begin(), all.end(), op) != all.end();
}

// Ops whose sums are those of other ops, which the rules see too.
bool is_made_of_others(std::string_view op) { return op == "einsum" || op == "feedforward"; }

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return out;
}

void check_sums(const AccumulationRule& rule) {
  check(rule.sum.chunk > 0, "sums: got chunks of ", rule.sum.chunk,
        ", expected a positive number of products");
  check_module_pattern(rule.module);
  bool known = rule.op.empty();
  for (const OpInfo& op : op_classes()) {
    if (rule.op.empty() || !matches_op(rule.op, op.name)) {
      continue;
    }
    known = true;
    check(is_summed(op.name), "sums: got a rule of ", op.name, " (", to_string(rule),
          "), expected ops whose sums can be simulated: ", list_of(summed_ops()),
          is_made_of_others(op.name) ? "; it is made of matmul, linear and sum" : "");
  }
  check(known, "sums: no op is named '", rule.op, "', expected ", list_of(summed_ops()),
        rule.op == "bmm" || rule.op == "outer" ? "; it is matmul" : "");
}

bool is_weight(const Tensor& x) {
  const Ref<Node>& node = x.history();
  const bool is_argument = node && node->leaf && node->op != nullptr;  // of recompute()
  return node && !is_argument ? node->leaf : x.handle()->storage->parent && !x.handle().unique();
}

}  // namespace

SimulatedFormats::SimulatedFormats(FormatSchemes schemes)
    : schemes_(std::move(schemes)), histories_(std::make_unique<Histories>()) {}
SimulatedFormats::~SimulatedFormats() = default;

bool SimulatedFormats::has_delayed() const {
  const auto delayed = [](const std::optional<FormatScheme>& scheme) {
    return scheme && scheme->scaling == FormatScaling::delayed;
  };
  return delayed(schemes_.weights) || delayed(schemes_.activations) || delayed(schemes_.gradients);
}

int64_t SimulatedFormats::begin_call(const Op& op, const PrecisionScope& scope) const {
  const uint32_t module = detail::thread_state.label;
  if (const Accumulation* sum = sum_of(op, module)) {
    check(is_summed(op.name) || is_made_of_others(op.name), op.name, ": got ", to_string(*sum),
          " sums, which are simulated for ", list_of(summed_ops()),
          "; give the rule an op (linear, *mm, ...) or modules without this one");
  }
  if (!has_delayed()) {
    return 0;
  }
  return FormatCalls::in(scope).begin(module, op.name);
}

NamedTensors SimulatedFormats::histories() const { return histories_->tensors(); }
void SimulatedFormats::set_histories(const NamedTensors& tensors) const {
  histories_->set(tensors);
}

// The scale of an operand: from a recomputed function's first run, or from the history.
Tensor SimulatedFormats::delayed_scale(const Tensor& x, const FormatScheme& scheme,
                                       const Place& place) const {
  if (place.is_output) {
    return histories_->next_scale(x.detach(), scheme, place, true);
  }
  Tensor scale;
  if (ScaleTape* const taken = TakenScales::of_thread()) {
    ScaleTape& tape = *taken;
    check(tape.next < tape.scales.size(),
          "recompute: the function ran more contractions in backward than before, expected the "
          "same both times");
    scale = tape.scales[tape.next++];
  } else {
    const bool notes = grad_enabled() || KeptScales::of_thread();
    scale = histories_->next_scale(x.detach(), scheme, place, notes);
  }
  if (ScaleTape* const kept = KeptScales::of_thread()) {
    kept->scales.push_back(scale);
  }
  return scale;
}

Tensor SimulatedFormats::rounded(const Tensor& x, FormatScheme scheme, const Place& place) const {
  if (scheme.scaling != FormatScaling::delayed) {
    return round_to_format(x, scheme);
  }
  const Tensor scale = delayed_scale(x, scheme, place);
  if (!scale.defined()) {
    scheme.scaling = FormatScaling::tensor;
  }
  return round_to_format(x, scheme, scale);
}

Tensor SimulatedFormats::rounded_input(const Input& input, const Tensor& given,
                                       const Tensor& cast) const {
  if (!given.defined() || !is_floating(cast.dtype()) || cast.dim() < 2) {
    return {};
  }
  const auto& wanted = is_weight(given) ? schemes_.weights : schemes_.activations;
  if (!wanted || histories_->is_result(given)) {
    return {};
  }
  const int index = static_cast<int>(input.index);
  FormatScheme scheme = *wanted;
  scheme.axis = summed_axis(input.op.name, index, cast);
  Tensor result = rounded(cast, std::move(scheme),
                          {detail::thread_state.label, input.op.name, input.call, false, index});
  histories_->remember(result);
  return result;
}

Tensor SimulatedFormats::rounded_gradient(const Node& node, int64_t call, int output,
                                          const Tensor& gradient) const {
  FormatScheme scheme = *schemes_.gradients;
  scheme.axis =
      gradient.dim() == kImageRank && std::string_view(node.name()).starts_with("conv") ? 1 : -1;
  return rounded(gradient, std::move(scheme), {node.label, node.name(), call, true, output});
}

void detail::simulate_gradient(Node& node, int output) {
  const PrecisionScope* scope = thread_state.precision;
  const PrecisionRules* rules = scope ? scope->precision.rules.get() : nullptr;
  if (!rules || !rules->formats() || !rules->formats()->schemes().gradients ||
      node.op->op_class != OpClass::contraction) {
    return;
  }
  const std::optional<FormatCalls> calls = FormatCalls::of(*scope);
  const int64_t call = calls ? calls->current(node.label, node.name()) : 0;
  add_hook(node, [formats = rules->formats(), &node, call, output](Tensor& gradient) {
    gradient = formats->rounded_gradient(node, call, output, gradient);
  });
}

// sums --------------------------------------------------------------------------------------------

const std::vector<std::string>& summed_ops() {
  static const std::vector<std::string> all = {"linear",  "matmul", "addmm",
                                               "baddbmm", "sum",    "mean"};
  return all;
}

const Accumulation* SimulatedFormats::sum_of(const Op& op, uint32_t module) const {
  const Accumulation* last = nullptr;
  for (const AccumulationRule& rule : schemes_.sums) {
    const bool fits =
        rule.op.empty() ? op.op_class == OpClass::contraction : matches_op(rule.op, op.name);
    if (fits && (rule.module.empty() || matches_module(rule.module, label_text(module)))) {
      last = &rule.sum;
    }
  }
  return last;
}

std::string to_string(const AccumulationRule& rule) {
  return to_string(rule.sum) + " of " + (rule.op.empty() ? "every contraction" : rule.op) +
         (rule.module.empty() ? "" : " in " + rule.module);
}

// text --------------------------------------------------------------------------------------------

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
  for (const AccumulationRule& rule : schemes.sums) {
    out += (out.empty() ? "sums " : ", sums ") + to_string(rule);
  }
  return out;
}

Precision with_formats(const Precision& precision, const FormatSchemes& schemes) {
  Precision out = precision;
  std::vector<PrecisionRule> list =
      precision.rules ? precision.rules->list() : std::vector<PrecisionRule>();
  for (const AccumulationRule& rule : schemes.sums) {
    check_sums(rule);
  }
  auto formats = schemes.any() ? std::make_shared<const SimulatedFormats>(schemes) : nullptr;
  out.rules = list.empty() && !formats
                  ? nullptr
                  : std::make_shared<const PrecisionRules>(std::move(list), std::move(formats));
  return out;
}

Precision with_new_histories(const Precision& precision) {
  const bool delayed =
      precision.rules && precision.rules->formats() && precision.rules->formats()->has_delayed();
  return delayed ? with_formats(precision, formats_of(precision)) : precision;
}

FormatSchemes formats_of(const Precision& precision) {
  const bool has = precision.rules && precision.rules->formats();
  return has ? precision.rules->formats()->schemes() : FormatSchemes{};
}

}  // namespace binade
