#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/attention.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>

#include <limits>

namespace binade::nn {
namespace {

MultiheadAttentionOptions checked(MultiheadAttentionOptions o) {
  check_sizes("MultiheadAttention", {{"embed", o.embed}, {"heads", o.heads}});
  check(o.embed % o.heads == 0, "MultiheadAttention: got embed = ", o.embed, ", heads = ", o.heads,
        ", expected a multiple of heads");
  check(o.dropout >= 0 && o.dropout < 1 && o.key_size >= 0 && o.value_size >= 0,
        "MultiheadAttention: got dropout = ", o.dropout, ", key_size = ", o.key_size,
        ", value_size = ", o.value_size, ", expected dropout in [0, 1) and no negative size");
  check(o.kv_heads >= 0 && (o.kv_heads == 0 || o.heads % o.kv_heads == 0),
        "MultiheadAttention: got kv_heads = ", o.kv_heads, ", heads = ", o.heads,
        ", expected a divisor of heads");
  o.kv_heads = o.kv_heads == 0 ? o.heads : o.kv_heads;
  o.key_size = o.key_size == 0 ? o.embed : o.key_size;
  o.value_size = o.value_size == 0 ? o.embed : o.value_size;
  return o;
}

// True if a and b are one tensor, not only equal values.
bool same(const Tensor& a, const Tensor& b) {
  return a.handle().get() == b.handle().get() && a.history().get() == b.history().get();
}

// A mask of three dimensions has one entry per sample and head, as in PyTorch. [batch, queries,
// keys] would broadcast as if its first dimension were the heads.
AttentionMask with_heads(AttentionMask mask, int64_t batch, int64_t heads) {
  if (mask.mask.defined() && mask.mask.dim() == 3) {
    const Dims& sizes = mask.mask.sizes();
    check(sizes[0] == batch * heads, "MultiheadAttention: got a mask of shape ", sizes,
          ", expected [", batch * heads, ", queries, keys], or [", batch,
          ", 1, queries, keys] for one per sample");
    mask.mask = reshape(mask.mask, {batch, heads, sizes[1], sizes[2]});
  }
  return mask;
}

// A bool mask as scores, -inf where it is true; a floating mask is returned unchanged.
Tensor as_scores(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::boolean) {
    return mask;
  }
  const Tensor none = zeros(mask.sizes(), dtype, mask.device());
  return masked_fill(none, mask, -std::numeric_limits<double>::infinity());
}

// Joins mask and key padding to a mask for the op, where a bool is true if a key takes part.
Tensor op_mask(const AttentionMask& given, int64_t batch, int64_t keys) {
  Tensor mask = given.mask, padding = given.key_padding;
  if (padding.defined()) {
    check(padding.sizes() == Dims({batch, keys}) &&
              (padding.dtype() == DType::boolean || is_floating(padding.dtype())),
          "MultiheadAttention: got key_padding ", padding.dtype(), " ", padding.sizes(),
          ", expected bool or floating [batch, keys] = [", batch, ", ", keys, "]");
    padding = reshape(padding, {batch, 1, 1, keys});
  }
  if (mask.defined() && padding.defined()) {
    const bool bools = mask.dtype() == DType::boolean && padding.dtype() == DType::boolean;
    const DType dtype = mask.dtype() == DType::boolean ? padding.dtype() : mask.dtype();
    mask = bools ? logical_or(mask, padding) : as_scores(mask, dtype) + as_scores(padding, dtype);
  } else if (padding.defined()) {
    mask = padding;
  }
  return mask.defined() && mask.dtype() == DType::boolean ? logical_not(mask) : mask;
}

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionOptions& options)
    : out_proj({.in = checked(options).embed, .out = options.embed, .bias = options.bias}),
      options_(checked(options)) {
  const int64_t embed = options_.embed;
  if (options_.key_size == embed && options_.value_size == embed && kv_size() == embed) {
    in_proj_weight = empty({3 * embed, embed});
    init::xavier_uniform(in_proj_weight);
    register_parameter("in_proj_weight", in_proj_weight);
  } else {
    q_proj_weight = empty({embed, embed});
    k_proj_weight = empty({kv_size(), options_.key_size});
    v_proj_weight = empty({kv_size(), options_.value_size});
    for (const Tensor* w : {&q_proj_weight, &k_proj_weight, &v_proj_weight}) {
      init::xavier_uniform(*w);
    }
    register_parameter("q_proj_weight", q_proj_weight);
    register_parameter("k_proj_weight", k_proj_weight);
    register_parameter("v_proj_weight", v_proj_weight);
  }
  if (options_.bias) {
    in_proj_bias = zeros({embed + 2 * kv_size()});
    register_parameter("in_proj_bias", in_proj_bias, {.norm_or_bias = true});
    init::zeros(out_proj.bias);
  }
  register_module("out_proj", out_proj);
}

// Query, key or value (part 0 to 2) of x.
Tensor MultiheadAttention::projection(const Tensor& x, int part) const {
  const int64_t begin = part == 0 ? 0 : options_.embed + (part - 1) * kv_size();
  const int64_t end = options_.embed + part * kv_size();
  const Tensor bias = in_proj_bias.defined() ? slice(in_proj_bias, 0, begin, end) : Tensor();
  if (in_proj_weight.defined()) {
    return linear(x, slice(in_proj_weight, 0, begin, end), bias);
  }
  return linear(x, part == 0 ? q_proj_weight : part == 1 ? k_proj_weight : v_proj_weight, bias);
}

// [batch, heads, length, embed / heads], a view.
Tensor MultiheadAttention::split_heads(const Tensor& x, int64_t heads) const {
  const Tensor split = reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads});
  return permute(split, options_.batch_first ? Dims{0, 2, 1, 3} : Dims{1, 2, 0, 3});
}

Tensor MultiheadAttention::attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const AttentionMask& mask) {
  return scoped([&] { return run(query, key, value, mask); });
}

Tensor MultiheadAttention::run(const Tensor& query, const Tensor& key, const Tensor& value,
                               const AttentionMask& given) {
  for (const Tensor* t : {&query, &key, &value}) {
    check(t->defined() && t->dim() == 3, "MultiheadAttention: got ",
          t == &query ? "a query"
          : t == &key ? "a key"
                      : "a value",
          t->defined() ? text(" of shape ", t->sizes()) : std::string(" that is undefined"),
          ", expected ", options_.batch_first ? "[batch, length, size]" : "[length, batch, size]");
  }
  const int batch = options_.batch_first ? 0 : 1;
  check(query.size(batch) == key.size(batch) && key.size(batch) == value.size(batch) &&
            key.size(1 - batch) == value.size(1 - batch),
        "MultiheadAttention: got query ", query.sizes(), ", key ", key.sizes(), " and value ",
        value.sizes(), ", expected ",
        options_.batch_first ? "[batch, length, size]" : "[length, batch, size]",
        " with one batch for all and one length of key and value; set batch_first if the batch "
        "comes first");
  const bool self = in_proj_weight.defined() && same(query, key) && same(key, value);
  Tensor q, k, v;
  if (self) {  // one product for all three
    const std::vector<Tensor> parts =
        split(linear(query, in_proj_weight, in_proj_bias), options_.embed, -1);
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = projection(query, 0), k = projection(key, 1), v = projection(value, 2);
  }
  q = split_heads(q, options_.heads);
  k = split_heads(k, options_.kv_heads), v = split_heads(v, options_.kv_heads);
  const AttentionMask mask = with_heads(given, q.size(0), options_.heads);
  const Tensor out =
      scaled_dot_product_attention(q, k, v,
                                   {.mask = op_mask(mask, k.size(0), k.size(2)),
                                    .is_causal = mask.is_causal,
                                    .dropout = is_training() ? options_.dropout : 0,
                                    .enable_gqa = options_.kv_heads != options_.heads});
  const Tensor joined = permute(out, options_.batch_first ? Dims{0, 2, 1, 3} : Dims{2, 0, 1, 3});
  return out_proj(reshape(joined, {joined.size(0), joined.size(1), options_.embed}));
}

}  // namespace binade::nn
