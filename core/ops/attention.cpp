// Scaled dot-product attention. Inputs of any rank become [batch, heads, length, size] views.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/attention/attention.h>

#include <algorithm>
#include <cmath>

namespace binade {
namespace {

constexpr Op kAttention{"scaled_dot_product_attention", OpClass::contraction};
constexpr const char* kAttentionName = kAttention.name;

// All sizes except the last two.
Dims leading(const Tensor& t) {
  return Dims(std::span(t.sizes().begin(), static_cast<size_t>(std::max(0, t.dim() - 2))));
}

Dims joined(Dims lead, int64_t rows, int64_t cols) {
  lead.push_back(rows);
  lead.push_back(cols);
  return lead;
}

// [..., rows, cols] as [batch, heads, rows, cols], where `lead` holds the leading sizes of the
// result. Recorded.
Tensor four_dims(const Tensor& t, const Dims& lead, int64_t rows, int64_t cols) {
  Tensor wide = expand(t, joined(lead, rows, cols));
  const int n = lead.size();
  if (n == 2) {
    return wide;
  }
  const int64_t heads = n == 0 ? 1 : lead[n - 1];
  int64_t batch = 1;
  for (int i = 0; i + 1 < n; ++i) {
    batch *= lead[i];
  }
  return reshape(wide, {batch, heads, rows, cols});
}

// The mask as [batch or 1, heads or 1, queries, keys]. Broadcast batch and head dimensions keep
// size 1, so that the kernel sums the gradient of the mask.
Tensor four_dims_mask(const Tensor& mask, const Dims& lead, int64_t queries, int64_t keys) {
  if (!mask.defined()) {
    return mask;
  }
  const Dims own = leading(mask);
  const bool shared = std::all_of(own.begin(), own.end(), [](int64_t n) { return n == 1; });
  if (shared) {
    return reshape(expand(mask, joined(own, queries, keys)), {1, 1, queries, keys});
  }
  if (own.size() > 2 || lead.size() > 2) {
    return four_dims(mask, lead, queries, keys);
  }
  const int n = own.size();
  return reshape(expand(mask, joined(own, queries, keys)),
                 {n == 2 ? own[0] : 1, own[n - 1], queries, keys});
}

// A view of the mask that repeats over batch and heads.
Tensor repeated(const Tensor& mask, const Dims& sizes) {
  if (!mask.defined()) {
    return mask;
  }
  Dims strides = mask.strides();
  for (int i = 0; i < 2; ++i) {
    strides[i] = mask.sizes()[i] == 1 ? 0 : strides[i];
  }
  return make_view(mask, {sizes[0], sizes[1], mask.sizes()[2], mask.sizes()[3]}, strides);
}

// Memory with the order of dimensions that q has. If a model splits the feature dimension into
// heads, each query's heads are adjacent in memory, so joining them again is a view.
Tensor result_like(const Tensor& q, int64_t value_size) {
  const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2);
  Dims strides{heads * queries * value_size, queries * value_size, value_size, 1};
  if (q.strides()[1] < q.strides()[2]) {
    strides[1] = value_size;
    strides[2] = heads * value_size;
  }
  return empty_strided({batch, heads, queries, value_size}, strides, q.dtype(), q.device());
}

// Settings that the backward captures besides tensors.
struct Settings {
  double scale;
  bool causal;
  double dropout;
  uint64_t seed = 0, offset = 0;  // of the numbers for dropout
};

// True if q, k and v are packed QKV, the result of one matrix product: each row holds the heads of
// q, then the heads of k, then the heads of v, and nothing else.
bool is_packed_qkv(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Dims &n = q.sizes(), &s = q.strides();
  const int64_t width = n[1] * n[3], row = 3 * width;
  const auto bytes = width * static_cast<int64_t>(size_of(q.dtype()));
  const auto follows = [&](const Tensor& a, const Tensor& b) {
    return b.sizes() == n && b.strides() == s &&
           b.handle()->view.data == a.handle()->view.data + bytes &&
           b.handle()->storage.get() == q.handle()->storage.get();
  };
  const bool rows =
      (s[2] == row && s[0] == n[2] * row) || (s[0] == row && s[2] == n[0] * row);  // batch outside
  return q.numel() > 0 && s[3] == 1 && s[1] == n[3] && rows && follows(q, k) && follows(k, v);
}

// Memory for dq, dk and dv. The gradient of packed QKV is packed the same way, so that the backward
// of split need not join the three.
struct OperandGradients {
  Tensor dq, dk, dv;

  OperandGradients(Needs needs, const Tensor& q, const Tensor& k, const Tensor& v) {
    if (needs[0] && needs[1] && needs[2] && is_packed_qkv(q, k, v)) {
      const Tensor whole = empty({3 * q.numel()}, q.dtype(), q.device());
      const int64_t width = q.size(1) * q.size(3);
      dq = make_view(whole, q.sizes(), q.strides());
      dk = make_view(whole, q.sizes(), q.strides(), width);
      dv = make_view(whole, q.sizes(), q.strides(), 2 * width);
    } else {
      dq = needs.out_like(0, q), dk = needs.out_like(1, k), dv = needs.out_like(2, v);
    }
  }
};

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
              const Settings& s, const Tensor& advance) {
  Tensor out = result_like(q, v.size(3));
  Tensor lse = empty({q.size(0), q.size(1), q.size(2)}, compute_dtype(q.dtype()), q.device());
  const Tensor shown = repeated(mask, q.sizes());
  kernels::attention_forward({.q = q,
                              .k = k,
                              .v = v,
                              .out = out,
                              .lse = lse,
                              .scale = s.scale,
                              .visible = {.mask = shown, .causal = s.causal},
                              .dropout = {s.dropout, s.seed, s.offset, advance}});
  return kAttention.record(
      {q, k, v, mask}, out, save(q, k, v, mask, out, lse, advance),
      [s](const Tensor& dout, Needs needs, const Tensor& q, const Tensor& k, const Tensor& v,
          const Tensor& mask, const Tensor& out, const Tensor& lse,
          const Tensor& advance) -> Grads {
        auto [dq, dk, dv] = OperandGradients(needs, q, k, v);
        Tensor dmask = needs.out(3);
        const Tensor shown = repeated(mask, q.sizes());
        kernels::attention_backward({.q = q,
                                     .k = k,
                                     .v = v,
                                     .out = out,
                                     .lse = lse,
                                     .dout = dout,
                                     .dq = dq,
                                     .dk = dk,
                                     .dv = dv,
                                     .dmask = dmask,
                                     .scale = s.scale,
                                     .visible = {.mask = shown, .causal = s.causal},
                                     .dropout = {s.dropout, s.seed, s.offset, advance}});
        return {dq, dk, dv, dmask};
      });
}

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  check_floating(kAttentionName, q);
  for (const Tensor* t : {&k, &v}) {
    check_defined(kAttentionName, *t);
    check(t->dtype() == q.dtype(), kAttentionName, ": got dtypes ", q.dtype(), " and ", t->dtype(),
          ", expected one floating dtype");
  }
  check(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2 && q.size(-1) == k.size(-1) &&
            k.size(-2) == v.size(-2) && q.size(-1) > 0,
        kAttentionName, ": got q ", q.sizes(), ", k ", k.sizes(), ", v ", v.sizes(),
        ", expected [..., queries, size], [..., keys, size], [..., keys, value_size]");
  check(!mask.defined() || mask.dtype() == DType::boolean || mask.dtype() == q.dtype(),
        kAttentionName, ": got a mask of dtype ", mask.defined() ? mask.dtype() : q.dtype(),
        ", expected bool or ", q.dtype(), ", the dtype of q");
}

// The leading sizes of the result.
Dims result_lead(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  Dims lead = broadcast_sizes(kAttentionName,
                              broadcast_sizes(kAttentionName, leading(q), leading(k)), leading(v));
  if (!mask.defined()) {
    return lead;
  }
  const int n = mask.dim();
  const int64_t rows = n >= 2 ? mask.sizes()[n - 2] : 1, cols = n >= 1 ? mask.sizes()[n - 1] : 1;
  check((rows == 1 || rows == q.size(-2)) && (cols == 1 || cols == k.size(-2)), kAttentionName,
        ": got a mask of shape ", mask.sizes(), ", expected one that broadcasts to [..., ",
        q.size(-2), ", ", k.size(-2), "], queries and keys");
  return broadcast_sizes(kAttentionName, lead, leading(mask));
}

// [..., heads, rows, cols] -> [..., groups, heads / groups, rows, cols].
Tensor in_groups(const Tensor& t, int64_t groups) {
  const Dims& sizes = t.sizes();
  const int n = t.dim();
  Dims split(std::span(sizes.begin(), static_cast<size_t>(n - 3)));
  split.push_back(groups);
  split.push_back(sizes[n - 3] / groups);
  split.push_back(sizes[n - 2]);
  split.push_back(sizes[n - 1]);
  return reshape(t, split);
}

// The heads of a group become a dimension of q over which k and v broadcast. Dense keys broadcast
// without a copy per head.
Tensor grouped_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         AttentionOptions options) {
  check(q.defined() && k.defined() && v.defined() && q.dim() >= 3 && k.dim() >= 3 && v.dim() >= 3,
        kAttentionName,
        ": got enable_gqa with fewer than three dimensions, expected [..., heads, length, "
        "size]");
  const int64_t heads = q.size(-3), groups = k.size(-3);
  check(groups > 0 && heads % groups == 0 && v.size(-3) == groups, kAttentionName, ": got ", heads,
        " heads of q, ", groups, " of k and ", v.size(-3),
        " of v with enable_gqa, expected as many of k as of v, a divisor of those of q");
  const Tensor& mask = options.mask;
  if (mask.defined() && mask.dim() >= 3) {
    check(mask.size(-3) == 1 || mask.size(-3) == heads, kAttentionName, ": got a mask of shape ",
          mask.sizes(), ", expected ", heads, " or 1 heads");
    options.mask = in_groups(mask, mask.size(-3) == 1 ? 1 : groups);
  }
  options.enable_gqa = false;
  const Tensor out = scaled_dot_product_attention(
      in_groups(q, groups), unsqueeze(contiguous(k), -3), unsqueeze(contiguous(v), -3), options);
  Dims sizes(std::span(out.sizes().begin(), static_cast<size_t>(out.dim() - 4)));
  sizes.push_back(heads);
  return reshape(out, joined(sizes, q.size(-2), v.size(-1)));
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q_, const Tensor& k_, const Tensor& v_,
                                    const AttentionOptions& options) {
  if (options.enable_gqa) {
    return grouped_attention(q_, k_, v_, options);
  }
  auto [q, k, v, mask] = kAttention.enter(q_, k_, v_, options.mask);
  check_operands(q, k, v, mask);
  check(options.dropout >= 0 && options.dropout <= 1, kAttentionName,
        ": got dropout = ", options.dropout, ", expected 0 to 1");
  const Dims lead = result_lead(q, k, v, mask);
  const int64_t queries = q.size(-2), keys = k.size(-2), size = q.size(-1), values = v.size(-1);
  Settings settings{.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(size))),
                    .causal = options.is_causal,
                    .dropout = options.dropout};
  Tensor advance;
  if (options.dropout > 0) {
    Generator& source = generator();
    settings.seed = source.seed;
    settings.offset =
        source.take(static_cast<uint64_t>(element_count(joined(lead, queries, keys))));
    advance = source.advance;
  }
  const Tensor out = attend(four_dims(q, lead, queries, size), four_dims(k, lead, keys, size),
                            four_dims(v, lead, keys, values),
                            four_dims_mask(mask, lead, queries, keys), settings, advance);
  return lead.size() == 2 ? out : reshape(out, joined(lead, queries, values));
}

}  // namespace binade
