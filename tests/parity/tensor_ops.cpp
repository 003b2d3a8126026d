// Parity names of elementwise ops with options, softmax and shape ops.
#include <binade/core/ops.h>
#include <binade/core/ops/rearrange.h>
#include <binade/nn/activation.h>

#include <limits>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

void add_with_options(Ops& ops) {
  ops["neg"] = [](const Call& call) { return one(neg(call.in("x"))); };
  ops["pow_scalar"] = [](const Call& call) {
    return one(pow(call.in("x"), number(call.attr("exponent"))));
  };
  ops["softplus"] = [](const Call& call) {
    return one(softplus(call.in("x"), call.attr("beta"), call.attr("threshold")));
  };
  ops["dropout"] = [](const Call& call) {
    nn::Dropout layer({.p = call.attr("p")});
    layer.train(call.attr("training"));
    return one(layer(call.in("x")));
  };
}

// Ops of a tensor and a number.
void add_with_number(Ops& ops) {
  using WithNumber = Tensor (*)(const Tensor&, double);
  const std::map<std::string, WithNumber> plain = {
      {"add_scalar", add},
      {"mul_scalar", mul},
      {"div_scalar", [](const Tensor& x, double value) { return x / value; }},
      {"rsub_scalar", [](const Tensor& x, double value) { return sub(value, x); }},
      {"rdiv_scalar", [](const Tensor& x, double value) { return div(value, x); }},
      {"eq_scalar", eq},
      {"ne_scalar", ne},
      {"lt_scalar", lt},
      {"le_scalar", le},
      {"gt_scalar", gt},
      {"ge_scalar", ge}};
  for (const auto& [name, op] : plain) {
    ops[name] = [op = op](const Call& call) {
      return one(op(call.in("x"), number(call.attr("value"))));
    };
  }
}

void add_softmax(Ops& ops) {
  ops["softmax"] = [](const Call& call) { return one(softmax(call.in("x"), call.attr("dim"))); };
  ops["log_softmax"] = [](const Call& call) {
    return one(log_softmax(call.in("x"), call.attr("dim")));
  };
}

std::vector<Tensor> operands(const Call& call) {
  std::vector<Tensor> parts;
  for (size_t i = 0; call.inputs.count("x" + std::to_string(i)); ++i) {
    parts.push_back(call.in("x" + std::to_string(i)));
  }
  return parts;
}

DType dtype_of(const std::string& name) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                            DType::u8, DType::boolean}) {
    if (name == to_string(dtype)) {
      return dtype;
    }
  }
  throw NotCovered{"dtype " + name};
}

void add_shapes(Ops& ops) {
  ops["reshape"] = [](const Call& call) {
    return one(reshape(call.in("x"), dims(call.attr("shape"))));
  };
  ops["flatten"] = [](const Call& call) {
    return one(flatten(call.in("x"), call.attr("start_dim"), call.attr("end_dim")));
  };
  ops["transpose"] = [](const Call& call) {
    return one(transpose(call.in("x"), call.attr("dim0"), call.attr("dim1")));
  };
  ops["permute"] = [](const Call& call) {
    return one(permute(call.in("x"), dims(call.attr("dims"))));
  };
  ops["squeeze"] = [](const Call& call) {
    const Json& dim = call.attr("dim");
    return one(dim.is_null() ? squeeze(call.in("x")) : squeeze(call.in("x"), dim));
  };
  ops["select"] = [](const Call& call) {
    return one(select(call.in("x"), call.attr("dim"), call.attr("index")));
  };
  ops["clone"] = [](const Call& call) { return one(clone(call.in("x"))); };
  ops["bernoulli"] = [](const Call& call) { return one(bernoulli(call.in("p"))); };
  ops["multinomial"] = [](const Call& call) {
    return one(multinomial(call.in("p"), call.attr("samples"), call.attr("replacement")));
  };
  ops["contiguous"] = [](const Call& call) { return one(contiguous(call.in("x"))); };
  ops["channels_last"] = [](const Call& call) { return one(channels_last(call.in("x"))); };
  ops["to_device"] = [](const Call& call) { return one(to_device(call.in("x"), Device{})); };
  ops["cast"] = [](const Call& call) {
    return one(cast(call.in("x"), dtype_of(call.attr("dtype").get<std::string>())));
  };
  ops["unsqueeze"] = [](const Call& call) {
    return one(unsqueeze(call.in("x"), call.attr("dim")));
  };
  ops["expand"] = [](const Call& call) {
    return one(expand(call.in("x"), dims(call.attr("shape"))));
  };
  ops["slice"] = [](const Call& call) {
    const Json &start = call.attr("start"), &end = call.attr("end");
    return one(slice(call.in("x"), call.attr("dim"), start.is_null() ? 0 : start.get<int64_t>(),
                     end.is_null() ? std::numeric_limits<int64_t>::max() : end.get<int64_t>(),
                     call.attr("step")));
  };
  ops["cat"] = [](const Call& call) { return one(cat(operands(call), call.attr("dim"))); };
  ops["stack"] = [](const Call& call) { return one(stack(operands(call), call.attr("dim"))); };
  ops["split"] = [](const Call& call) {
    const Json &size = call.attr("split_size"), &dim = call.attr("dim");
    return numbered(size.is_number() ? split(call.in("x"), size.get<int64_t>(), dim)
                                     : split(call.in("x"), size.get<std::vector<int64_t>>(), dim));
  };
}

}  // namespace

const std::map<std::string, Handler>& tensor_ops() {
  static const Ops ops = [] {
    Ops made;
    add_with_options(made);
    add_with_number(made);
    add_softmax(made);
    add_shapes(made);
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
