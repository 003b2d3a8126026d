// Parity names of the ops that rearrange, index and resample.
#include <binade/core/ops.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

Outputs one(Tensor y) { return {{"out", std::move(y)}}; }

Outputs numbered(const std::vector<Tensor>& parts) {
  Outputs outputs;
  for (size_t i = 0; i < parts.size(); ++i) {
    outputs["out" + std::to_string(i)] = parts[i];
  }
  return outputs;
}

void add_rearranging(Ops& ops) {
  ops["flip"] = [](const Call& call) { return one(flip(call.in("x"), dims(call.attr("dims")))); };
  ops["roll"] = [](const Call& call) {
    return one(roll(call.in("x"), dims(call.attr("shifts")), dims(call.attr("dims"))));
  };
  ops["repeat"] = [](const Call& call) {
    return one(repeat(call.in("x"), dims(call.attr("repeats"))));
  };
  ops["tile"] = [](const Call& call) {
    return one(tile(call.in("x"), dims(call.attr("repeats"))));
  };
  ops["pad"] = [](const Call& call) {
    const bool reflect = call.attr("mode") == "reflect";
    const Json& value = call.attr("value");
    return one(pad(call.in("x"), call.attr("pad").get<std::vector<int64_t>>(),
                   {.mode = reflect ? PadMode::reflect : PadMode::constant,
                    .value = value.is_null() ? 0 : number(value)}));
  };
  ops["tril"] = [](const Call& call) { return one(tril(call.in("x"), call.attr("diagonal"))); };
  ops["triu"] = [](const Call& call) { return one(triu(call.in("x"), call.attr("diagonal"))); };
  ops["narrow"] = [](const Call& call) {
    return one(narrow(call.in("x"), call.attr("dim"), call.attr("start"), call.attr("length")));
  };
  ops["chunk"] = [](const Call& call) {
    return numbered(chunk(call.in("x"), call.attr("chunks"), call.attr("dim")));
  };
}

void add_indexing(Ops& ops) {
  ops["index_select"] = [](const Call& call) {
    return one(index_select(call.in("x"), call.attr("dim"), call.in("index")));
  };
  ops["gather"] = [](const Call& call) {
    return one(gather(call.in("x"), call.attr("dim"), call.in("index")));
  };
  ops["scatter_add"] = [](const Call& call) {
    return one(scatter_add(call.in("x"), call.attr("dim"), call.in("index"), call.in("src")));
  };
  ops["scatter"] = [](const Call& call) {
    return one(scatter(call.in("x"), call.attr("dim"), call.in("index"), call.in("src")));
  };
  ops["scatter_scalar"] = [](const Call& call) {
    return one(
        scatter(call.in("x"), call.attr("dim"), call.in("index"), number(call.attr("value"))));
  };
  ops["masked_select"] = [](const Call& call) {
    return one(masked_select(call.in("x"), call.in("mask")));
  };
  ops["embedding"] = [](const Call& call) {
    const Json& padding = call.attr("padding_idx");
    return one(embedding(call.in("weight"), call.in("index"),
                         padding.is_null() ? std::nullopt : std::optional(padding.get<int64_t>())));
  };
  ops["one_hot"] = [](const Call& call) {
    return one(one_hot(call.in("index"), call.attr("num_classes")));
  };
  ops["interpolate"] = [](const Call& call) {
    const Json &size = call.attr("size"), &corners = call.attr("align_corners");
    return one(interpolate(
        call.in("x"), size[0], size[1],
        {.mode = call.attr("mode") == "nearest" ? Interpolation::nearest : Interpolation::bilinear,
         .align_corners = !corners.is_null() && corners.get<bool>()}));
  };
}

}  // namespace

const std::map<std::string, Handler>& index_ops() {
  static const Ops ops = [] {
    Ops made;
    add_rearranging(made);
    add_indexing(made);
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
