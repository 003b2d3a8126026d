// Parity names of the ops that rearrange, index and resample.
#include <binade/core/ops.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

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
  ops["embedding_bag"] = [](const Call& call) {
    const Json& padding = call.attr("padding_idx");
    const std::string mode = call.attr("mode");
    EmbeddingBagOptions options{.include_last_offset = call.attr("include_last_offset")};
    options.mode = mode == "sum" ? BagMode::sum : mode == "max" ? BagMode::max : BagMode::mean;
    if (!padding.is_null()) {
      options.padding_idx = padding.get<int64_t>();
    }
    return one(embedding_bag(call.in("weight"), call.in("index"), call.optional("offsets"),
                             call.optional("factors"), options));
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

void add_grids(Ops& ops) {
  ops["grid_sample"] = [](const Call& call) {
    const std::string padding = call.attr("padding");
    const bool nearest = call.attr("mode") == "nearest";
    return one(grid_sample(call.in("x"), call.in("grid"),
                           {.mode = nearest ? Interpolation::nearest : Interpolation::bilinear,
                            .padding = padding == "zeros"    ? GridPadding::zeros
                                       : padding == "border" ? GridPadding::border
                                                             : GridPadding::reflection,
                            .align_corners = call.attr("corners")}));
  };
  ops["affine_grid"] = [](const Call& call) {
    const Json& size = call.attr("size");
    return one(affine_grid(call.in("theta"), size[2], size[3], call.attr("corners")));
  };
}

void add_advanced(Ops& ops) {
  ops["index"] = [](const Call& call) {
    const TensorIndex i = call.in("i"), j = call.in("j");
    const bool apart = call.attr("apart");
    return one(apart ? index(call.in("x"), {i, Slice{}, j}) : index(call.in("x"), {Slice{}, i, j}));
  };
  ops["index_put"] = [](const Call& call) {
    return one(index_put(call.in("x"), {call.in("i"), call.in("j")}, call.in("values"),
                         call.attr("accumulate")));
  };
  ops["scatter_reduce"] = [](const Call& call) {
    return one(scatter_reduce(call.in("x"), call.attr("dim"), call.in("index"), call.in("src"),
                              call.attr("reduce").get<std::string>(), call.attr("include_self")));
  };
  ops["take_along_dim"] = [](const Call& call) {
    return one(take_along_dim(call.in("x"), call.in("index"), call.attr("dim").get<int>()));
  };
  ops["index_add"] = [](const Call& call) {
    return one(index_add(call.in("x"), call.attr("dim"), call.in("index"), call.in("src"),
                         number(call.attr("alpha"))));
  };
  ops["index_copy"] = [](const Call& call) {
    return one(index_copy(call.in("x"), call.attr("dim"), call.in("index"), call.in("src")));
  };
  ops["index_fill"] = [](const Call& call) {
    return one(
        index_fill(call.in("x"), call.attr("dim"), call.in("index"), number(call.attr("value"))));
  };
  ops["masked_scatter"] = [](const Call& call) {
    return one(masked_scatter(call.in("x"), call.in("mask"), call.in("src")));
  };
  ops["nonzero"] = [](const Call& call) { return one(nonzero(call.in("x"))); };
  ops["unique"] = [](const Call& call) {
    const UniqueResult y = unique(call.in("x"));
    return Outputs{{"values", y.values}, {"inverse", y.inverse}, {"counts", y.counts}};
  };
  ops["bincount"] = [](const Call& call) {
    return one(bincount(call.in("x"), call.optional("weights"), call.attr("minlength")));
  };
}

void add_order(Ops& ops) {
  ops["argsort"] = [](const Call& call) {
    return one(argsort(call.in("x"), call.attr("dim"), call.attr("descending")));
  };
  ops["median"] = [](const Call& call) {
    const ValuesIndices y = median(call.in("x"), call.attr("dim").get<int>());
    return Outputs{{"values", y.values}, {"indices", y.indices}};
  };
  ops["quantile"] = [](const Call& call) {
    return one(quantile(call.in("x"), call.in("q"), call.attr("dim").get<int>()));
  };
  ops["quantile_scalar"] = [](const Call& call) {
    return one(quantile(call.in("x"), number(call.attr("q")), call.attr("dim").get<int>()));
  };
  ops["diff"] = [](const Call& call) {
    return one(diff(call.in("x"), call.attr("n"), call.attr("dim")));
  };
}

void add_arranging(Ops& ops) {
  ops["repeat_interleave"] = [](const Call& call) {
    return one(repeat_interleave(call.in("x"), call.in("repeats"), call.attr("dim").get<int>()));
  };
  ops["movedim"] = [](const Call& call) {
    return one(movedim(call.in("x"), dims(call.attr("source")), dims(call.attr("destination"))));
  };
  ops["diagonal"] = [](const Call& call) {
    return one(diagonal(call.in("x"), call.attr("offset"), call.attr("dim1"), call.attr("dim2")));
  };
  ops["diag_embed"] = [](const Call& call) {
    return one(diag_embed(call.in("x"), call.attr("offset"), call.attr("dim1"), call.attr("dim2")));
  };
  ops["diag"] = [](const Call& call) { return one(diag(call.in("x"), call.attr("offset"))); };
  ops["unbind"] = [](const Call& call) { return numbered(unbind(call.in("x"), call.attr("dim"))); };
  ops["meshgrid"] = [](const Call& call) {
    return numbered(
        meshgrid({call.in("x"), call.in("y")}, call.attr("indexing").get<std::string>()));
  };
  ops["tensordot"] = [](const Call& call) {
    return one(tensordot(call.in("x"), call.in("y"), dims(call.attr("dims_x")),
                         dims(call.attr("dims_y"))));
  };
  ops["baddbmm"] = [](const Call& call) {
    return one(baddbmm(call.in("x"), call.in("y"), call.in("z"),
                       {.beta = number(call.attr("beta")), .alpha = number(call.attr("alpha"))}));
  };
  ops["normalize"] = [](const Call& call) {
    return one(normalize(call.in("x"), number(call.attr("p")), call.attr("dim")));
  };
  ops["pairwise_distance"] = [](const Call& call) {
    return one(pairwise_distance(call.in("x"), call.in("y"), number(call.attr("p")),
                                 number(call.attr("eps"))));
  };
  ops["cdist"] = [](const Call& call) {
    return one(cdist(call.in("x"), call.in("y"), number(call.attr("p"))));
  };
}

void add_joins_and_searches(Ops& ops) {
  ops["hstack"] = [](const Call& call) { return one(hstack({call.in("x"), call.in("y")})); };
  ops["vstack"] = [](const Call& call) { return one(vstack({call.in("x"), call.in("y")})); };
  ops["searchsorted"] = [](const Call& call) {
    return one(searchsorted(sort(call.in("x")).values, call.in("v"), call.attr("right")));
  };
  ops["bucketize"] = [](const Call& call) {
    return one(bucketize(call.in("v"), sort(call.in("x")).values, call.attr("right")));
  };
  ops["histc"] = [](const Call& call) {
    return one(
        histc(call.in("x"), call.attr("bins"), number(call.attr("min")), number(call.attr("max"))));
  };
}

UnfoldOptions windows_of(const Call& call) {
  UnfoldOptions options;
  read_pair(call.attr("kernel"), options.kernel);
  read_pair(call.attr("dilation"), options.dilation);
  read_pair(call.attr("padding"), options.padding);
  read_pair(call.attr("stride"), options.stride);
  return options;
}

void add_windows(Ops& ops) {
  ops["unfold"] = [](const Call& call) { return one(unfold(call.in("x"), windows_of(call))); };
  ops["fold"] = [](const Call& call) {
    const Json& size = call.attr("size");
    return one(fold(call.in("x"), size[0], size[1], windows_of(call)));
  };
  ops["pixel_shuffle"] = [](const Call& call) {
    return one(pixel_shuffle(call.in("x"), call.attr("upscale_factor")));
  };
  ops["pixel_unshuffle"] = [](const Call& call) {
    return one(pixel_unshuffle(call.in("x"), call.attr("downscale_factor")));
  };
}

}  // namespace

const std::map<std::string, Handler>& index_ops() {
  static const Ops ops = [] {
    Ops made;
    add_rearranging(made);
    add_indexing(made);
    add_advanced(made);
    add_order(made);
    add_arranging(made);
    add_joins_and_searches(made);
    add_grids(made);
    add_windows(made);
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
