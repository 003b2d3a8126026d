// Scaled dot-product attention, out = softmax(q k^T scale + mask) v, without a [queries, keys]
// matrix in memory: tiles of scores are computed, used and discarded, as in Dao et al.,
// "FlashAttention" (2022). The forward saves one number per query, the logarithm of its softmax
// denominator; the backward recomputes the tiles from it.
//
// Dropout of the weights stores no mask either. The weight of (batch, head, query, key) takes the
// number at position offset + its row-major index in [batch, heads, queries, keys] of the Philox
// sequence of `seed`, and is dropped if that number is below p. So the backward, another device and
// the kernel `dropout` on the whole matrix (kernels/random/random.h) drop the same weights.
//
// Views have any strides (stride 0 broadcasts an input) and one floating dtype; lse and sums have
// its compute dtype. A query that sees no key gets out = 0, lse = +inf and gradients of 0. Results
// depend neither on the number of threads nor on the schedule of a device.
#pragma once
#include <binade/kernels/base/provided_kernel.h>

namespace binade::kernels {

// Which keys a query sees. mask [batch, heads, queries, keys] is bool (true takes part) or has the
// dtype of q (added to the scaled scores); kNoView: no mask. causal: query i sees keys 0 to i.
struct AttentionVisibility {
  const View& mask = kNoView;
  bool causal = false;
};

// Drops each weight with probability p and divides the others by 1 - p, after the softmax: lse does
// not depend on it. advance: as in kernels/random/random.h.
struct AttentionDropout {
  double p = 0;
  uint64_t seed = 0;
  uint64_t offset = 0;
  const View& advance = kNoView;
};

struct AttentionForward {
  const View& q;    // [batch, heads, queries, size]
  const View& k;    // [batch, heads, keys, size]
  const View& v;    // [batch, heads, keys, value_size]
  const View& out;  // [batch, heads, queries, value_size]
  const View& lse;  // [batch, heads, queries], compute dtype, contiguous
  double scale;
  AttentionVisibility visible = {};
  AttentionDropout dropout = {};
};
BINADE_PROVIDED_KERNEL(attention_forward, AttentionForward, out)

// With w = exp(q k^T scale + mask - lse), d(w) = w after dropout and
// ds = w (d(dout v^T) - sum(dout out)):
//   dq = scale ds k, dk = scale ds^T q, dv = d(w)^T dout, dmask = ds.
// dq, dk, dv have the sizes of q, k, v, and dmask those of the mask; if its batch or heads are 1,
// the gradient is summed over them. Each may be kNoView if it is not wanted.
struct AttentionBackward {
  const View& q;
  const View& k;
  const View& v;
  const View& out;
  const View& lse;
  const View& dout;
  const View& dq;
  const View& dk;
  const View& dv;
  const View& dmask;
  double scale;
  AttentionVisibility visible = {};
  AttentionDropout dropout = {};
};
BINADE_PROVIDED_KERNEL(attention_backward, AttentionBackward, q)

}  // namespace binade::kernels
