// Converts names of policies to policies and back.
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/kernels/base/error.h>

#include <cstdlib>

namespace binade {
namespace {

constexpr const char* kPolicyName[] = {"full", "autocast", "mixed", "half"};
constexpr const char* kExpected =
    "fp32, fp16, bf16, or a policy and a format as in autocast-fp16, mixed-bf16, half-fp16";

bool is_one_of(const std::string& name, std::initializer_list<const char*> names, size_t& index) {
  index = 0;
  for (const char* known : names) {
    if (name == known) {
      return true;
    }
    ++index;
  }
  return false;
}

}  // namespace

const char* to_string(Store store) {
  constexpr const char* kName[] = {"by policy", "paper", "apex"};
  return kName[static_cast<int>(store)];
}

Store parse_store(const std::string& name) {
  check(name == "paper" || name == "apex", "store: got '", name, "', expected paper or apex");
  return name == "paper" ? Store::paper : Store::apex;
}

std::string to_string(const Precision& precision) {
  std::string out = kPolicyName[precision.policy];
  if (precision.policy != Precision::kFull) {
    out += std::string(" ") + to_string(precision.low);
  }
  if (precision.store != Store::by_policy) {
    out += std::string(", ") + to_string(precision.store);
  }
  if (precision.rules && (!precision.rules->list().empty() || !precision.rules->formats())) {
    const size_t count = precision.rules->list().size();
    out += text(", ", count, count == 1 ? " rule" : " rules");
  }
  if (const FormatSchemes formats = formats_of(precision); formats.any()) {
    out += ", simulated " + to_string(formats);
  }
  return out;
}

Precision parse_precision(const std::string& name) {
  const size_t dash = name.find('-');
  const std::string policy = dash == std::string::npos ? "mixed" : name.substr(0, dash);
  const std::string format = dash == std::string::npos ? name : name.substr(dash + 1);
  if (name == "fp32") {
    return Precision::full();
  }
  size_t which = 0, low = 0;
  const bool known = is_one_of(policy, {"autocast", "mixed", "half"}, which) &&
                     is_one_of(format, {"fp16", "bf16"}, low);
  check(known, "precision: got '", name, "', expected ", kExpected);
  const DType dtype = low == 0 ? DType::f16 : DType::bf16;
  return which == 0   ? Precision::autocast(dtype)
         : which == 1 ? Precision::mixed(dtype)
                      : Precision::half(dtype);
}

Precision environment_precision() {
  const char* value = std::getenv("BINADE_PRECISION");
  if (!value) {
    return Precision::full();
  }
  Precision precision;
  try {
    precision = parse_precision(value);
  } catch (const Error&) {
    fail("BINADE_PRECISION: got '", value, "', expected ", kExpected,
         "; unset it for the program's own choice");
  }
  precision.from_environment = true;
  return precision;
}

std::string to_string(const Decision& decision, const Precision& precision, OpClass op_class) {
  std::string out;
  switch (decision.why) {
    case Decision::kMovement: return "moves data only";
    case Decision::kNoFloats: return "no floating input";
    case Decision::kFullPolicy: out = "full precision"; break;
    case Decision::kRule: return "rule: " + to_string(*decision.rule);
    case Decision::kClass:
      out = text(to_string(op_class), " under ", kPolicyName[precision.policy], " ", precision.low);
      break;
    case Decision::kPromoted: out = text(to_string(op_class), " takes its widest input"); break;
  }
  const bool chosen = precision.store != Store::by_policy && op_class != OpClass::contraction &&
                      op_class != OpClass::pointwise;
  out += chosen ? text(", store ", to_string(precision.store)) : "";
  return precision.from_environment ? out + ", from BINADE_PRECISION" : out;
}

}  // namespace binade
