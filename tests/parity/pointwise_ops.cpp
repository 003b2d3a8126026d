// Parity names of the pointwise ops that kernels/pointwise/pointwise.h lists, of activations with
// options, of selection and of interpolation.
#include <binade/core/ops.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

std::optional<double> bound(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(number(value));
}

// The ops that kernels/pointwise/pointwise.h lists, under their names, and their options.
void add_listed(std::map<std::string, Handler>& ops) {
#define BINADE_ADD(name, ...) \
  ops[#name] = [](const Call& call) { return one(binade::name(call.in("x"))); };
  BINADE_UNARY_PLAIN_OPS(BINADE_ADD)
#undef BINADE_ADD
#define BINADE_ADD(name, Functor, saved, code, op_class, option)        \
  ops[#name] = [](const Call& call) {                                   \
    return one(binade::name(call.in("x"), number(call.attr(#option)))); \
  };
  BINADE_UNARY_OPTION_OPS(BINADE_ADD)
#undef BINADE_ADD
#define BINADE_ADD(name, ...) \
  ops[#name] = [](const Call& call) { return one(binade::name(call.in("x"), call.in("y"))); };
  BINADE_BINARY_OPS(BINADE_ADD)
  BINADE_COMPARE_OPS(BINADE_ADD)
#undef BINADE_ADD
}

void add_activations(std::map<std::string, Handler>& ops) {
  ops["logsigmoid"] = [](const Call& call) { return one(log_sigmoid(call.in("x"))); };
  ops["relu6"] = [](const Call& call) { return one(relu6(call.in("x"))); };
  ops["gelu"] = [](const Call& call) {
    return one(gelu(call.in("x"), call.attr("approximate").get<std::string>()));
  };
  ops["hardtanh"] = [](const Call& call) {
    return one(hardtanh(call.in("x"), call.attr("min_val"), call.attr("max_val")));
  };
  ops["clamp"] = [](const Call& call) {
    return one(clamp(call.in("x"), bound(call.attr("min")), bound(call.attr("max"))));
  };
}

void add_rounding(std::map<std::string, Handler>& ops) {
  using ByNumber = Tensor (*)(const Tensor&, double);
  const std::map<std::string, ByNumber> divisions = {{"floor_divide_scalar", floor_divide},
                                                     {"remainder_scalar", remainder},
                                                     {"fmod_scalar", fmod}};
  for (const auto& [name, op] : divisions) {
    ops[name] = [op = op](const Call& call) {
      return one(op(call.in("x"), number(call.attr("value"))));
    };
  }
  using Kind = Tensor (*)(const Tensor&);
  const std::map<std::string, Kind> kinds = {
      {"isnan", isnan}, {"isinf", isinf}, {"isfinite", isfinite}};
  for (const auto& [name, op] : kinds) {
    ops[name] = [op = op](const Call& call) { return one(op(call.in("x"))); };
  }
  ops["nan_to_num"] = [](const Call& call) {
    return one(nan_to_num(call.in("x"), number(call.attr("nan")), number(call.attr("posinf")),
                          number(call.attr("neginf"))));
  };
  ops["isclose"] = [](const Call& call) {
    return one(isclose(call.in("x"), call.in("y"), number(call.attr("rtol")),
                       number(call.attr("atol")), call.attr("equal_nan").get<bool>()));
  };
  ops["clamp_tensors"] = [](const Call& call) {
    return one(clamp(call.in("x"), call.optional("low"), call.optional("high")));
  };
}

void add_logic(std::map<std::string, Handler>& ops) {
  using Logic = Tensor (*)(const Tensor&, const Tensor&);
  const std::map<std::string, Logic> plain = {
      {"logical_and", logical_and}, {"logical_or", logical_or}, {"logical_xor", logical_xor}};
  for (const auto& [name, op] : plain) {
    ops[name] = [op = op](const Call& call) { return one(op(call.in("x"), call.in("y"))); };
  }
  ops["logical_not"] = [](const Call& call) { return one(logical_not(call.in("x"))); };
}

}  // namespace

const std::map<std::string, Handler>& pointwise_ops() {
  static const std::map<std::string, Handler> ops = [] {
    std::map<std::string, Handler> made;
    add_listed(made);
    add_activations(made);
    add_rounding(made);
    made["where"] = [](const Call& call) {
      return one(where(call.in("cond"), call.in("x"), call.in("y")));
    };
    made["where_scalar"] = [](const Call& call) {
      return one(where(call.in("cond"), number(call.attr("value")), call.in("x")));
    };
    made["where_tensor_scalar"] = [](const Call& call) {
      return one(where(call.in("cond"), call.in("x"), number(call.attr("value"))));
    };
    add_logic(made);
    made["masked_fill"] = [](const Call& call) {
      return one(masked_fill(call.in("x"), call.in("mask"), number(call.attr("value"))));
    };
    made["lerp"] = [](const Call& call) {
      const Tensor &x = call.in("x"), &y = call.in("y");
      return one(call.inputs.count("weight") ? lerp(x, y, call.in("weight"))
                                             : lerp(x, y, number(call.attr("weight"))));
    };
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
