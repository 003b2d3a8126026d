// Parity names of reductions, running sums and sorts.
#include <binade/core/ops.h>
#include <binade/core/ops/reduce.h>
#include <binade/core/ops/sort.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

Outputs two(const ValuesIndices& y) { return {{"values", y.values}, {"indices", y.indices}}; }

Dims dims_or_all(const Call& call) {
  const Json& dim = call.attr("dim");
  return dim.is_null() ? Dims{} : dim.is_array() ? dims(dim) : Dims{dim.get<int64_t>()};
}

void add_over_dims(Ops& ops) {
  using Reduction = Tensor (*)(const Tensor&, const Dims&, bool);
  const std::map<std::string, Reduction> plain = {
      {"sum", sum},        {"mean", mean}, {"logsumexp", logsumexp},
      {"amax", amax},      {"amin", amin}, {"prod", prod},
      {"any", any},        {"all", all},   {"nansum", nansum},
      {"nanmean", nanmean}};
  for (const auto& [name, op] : plain) {
    ops[name] = [op = op](const Call& call) {
      return one(op(call.in("x"), dims_or_all(call), call.attr("keepdim")));
    };
  }
  ops["sum_to"] = [](const Call& call) {
    return one(sum_to(call.in("x"), dims(call.attr("shape"))));
  };
  ops["var"] = [](const Call& call) {
    return one(var(call.in("x"), dims_or_all(call), call.attr("unbiased"), call.attr("keepdim")));
  };
  ops["std"] = [](const Call& call) {
    return one(
        binade::std(call.in("x"), dims_or_all(call), call.attr("unbiased"), call.attr("keepdim")));
  };
  ops["norm"] = [](const Call& call) {
    return one(norm(call.in("x"), number(call.attr("p")), dims_or_all(call), call.attr("keepdim")));
  };
}

// Ops of all elements, or along one dimension.
void add_extremes(Ops& ops) {
  ops["argmax"] = [](const Call& call) {
    const Json& dim = call.attr("dim");
    return one(dim.is_null() ? argmax(call.in("x"))
                             : argmax(call.in("x"), dim.get<int>(), call.attr("keepdim")));
  };
  ops["argmin"] = [](const Call& call) {
    const Json& dim = call.attr("dim");
    return one(dim.is_null() ? argmin(call.in("x"))
                             : argmin(call.in("x"), dim.get<int>(), call.attr("keepdim")));
  };
  ops["max"] = [](const Call& call) -> Outputs {
    const Json& dim = call.attr("dim");
    return dim.is_null() ? Outputs{{"values", max(call.in("x"))}}
                         : two(max(call.in("x"), dim.get<int>(), call.attr("keepdim")));
  };
  ops["min"] = [](const Call& call) -> Outputs {
    const Json& dim = call.attr("dim");
    return dim.is_null() ? Outputs{{"values", min(call.in("x"))}}
                         : two(min(call.in("x"), dim.get<int>(), call.attr("keepdim")));
  };
}

void add_lines(Ops& ops) {
  ops["cumsum"] = [](const Call& call) { return one(cumsum(call.in("x"), call.attr("dim"))); };
  ops["cumprod"] = [](const Call& call) { return one(cumprod(call.in("x"), call.attr("dim"))); };
  ops["logcumsumexp"] = [](const Call& call) {
    return one(logcumsumexp(call.in("x"), call.attr("dim")));
  };
  ops["cummax"] = [](const Call& call) { return two(cummax(call.in("x"), call.attr("dim"))); };
  ops["cummin"] = [](const Call& call) { return two(cummin(call.in("x"), call.attr("dim"))); };
  ops["sort"] = [](const Call& call) {
    return two(sort(call.in("x"), call.attr("dim"), call.attr("descending")));
  };
  ops["topk"] = [](const Call& call) {
    return two(topk(call.in("x"), call.attr("k"), call.attr("dim"), call.attr("largest")));
  };
}

void add_covariances(Ops& ops) {
  ops["cov"] = [](const Call& call) {
    return one(cov(call.in("x"), {.correction = call.attr("correction"),
                                  .fweights = call.optional("fweights"),
                                  .aweights = call.optional("aweights")}));
  };
  ops["corrcoef"] = [](const Call& call) { return one(corrcoef(call.in("x"))); };
}

}  // namespace

const std::map<std::string, Handler>& reduce_ops() {
  static const Ops ops = [] {
    Ops made;
    add_over_dims(made);
    add_extremes(made);
    add_lines(made);
    add_covariances(made);
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
