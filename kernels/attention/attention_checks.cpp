#include <binade/kernels/attention/attention_internal.h>
#include <binade/kernels/random/random_internal.h>

namespace binade::kernels {
namespace {

void check_view(const char* op, const char* name, const View& got, DType dtype, const Dims& sizes) {
  check(got.dtype == dtype && got.sizes == sizes, op, ": got ", name, " ", got.dtype, " ",
        got.sizes, ", expected ", dtype, " ", sizes);
}

AttentionSizes sizes_of(const char* op, const View& q, const View& k, const View& v) {
  check(is_floating(q.dtype), op, ": got q of ", q.dtype, ", expected a floating dtype");
  check(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, op, ": got q ", q.sizes, ", k ", k.sizes,
        ", v ", v.sizes, ", expected [batch, heads, length, size] each");
  const AttentionSizes n{q.size(0), q.size(1), q.size(2), k.size(2), q.size(3), v.size(3)};
  check_view(op, "k", k, q.dtype, {n.batch, n.heads, n.keys, n.size});
  check_view(op, "v", v, q.dtype, {n.batch, n.heads, n.keys, n.value_size});
  return n;
}

void check_rest(const char* op, const View& q, const View& out, const View& lse, const View& mask,
                const AttentionSizes& n) {
  check_view(op, "out", out, q.dtype, {n.batch, n.heads, n.queries, n.value_size});
  check_view(op, "lse", lse, compute_dtype(q.dtype), {n.batch, n.heads, n.queries});
  check(lse.contiguous, op, ": got an lse that is not contiguous");
  if (mask) {
    check_view(op, "mask", mask, mask.dtype == DType::boolean ? DType::boolean : q.dtype,
               {n.batch, n.heads, n.queries, n.keys});
  }
}

void check_dropout(const char* op, const AttentionDropout& dropout, const View& q) {
  check(dropout.p >= 0 && dropout.p <= 1, op, ": got a dropout of ", dropout.p,
        ", expected 0 to 1");
  check_advance(op, dropout.advance, q);
}

}  // namespace

AttentionSizes checked_sizes(const AttentionForward& a) {
  const char* op = "attention";
  const AttentionSizes n = sizes_of(op, a.q, a.k, a.v);
  check_rest(op, a.q, a.out, a.lse, a.visible.mask, n);
  check_dropout(op, a.dropout, a.q);
  return n;
}

AttentionSizes checked_sizes(const AttentionBackward& a) {
  const char* op = "attention backward";
  const AttentionSizes n = sizes_of(op, a.q, a.k, a.v);
  check_rest(op, a.q, a.out, a.lse, a.visible.mask, n);
  check_dropout(op, a.dropout, a.q);
  check_view(op, "dout", a.dout, a.q.dtype, a.out.sizes);
  const View* gradients[] = {&a.dq, &a.dk, &a.dv};
  const View* values[] = {&a.q, &a.k, &a.v};
  const char* names[] = {"dq", "dk", "dv"};
  for (int i = 0; i < 3; ++i) {
    if (*gradients[i]) {
      check_view(op, names[i], *gradients[i], a.q.dtype, values[i]->sizes);
    }
  }
  if (a.dmask) {
    const Dims& sizes = a.dmask.sizes;
    check(a.visible.mask && a.visible.mask.dtype == a.q.dtype && sizes.size() == 4 &&
              (sizes[0] == n.batch || sizes[0] == 1) && (sizes[1] == n.heads || sizes[1] == 1) &&
              sizes[2] == n.queries && sizes[3] == n.keys && a.dmask.dtype == a.q.dtype,
          op, ": got dmask ", a.dmask.dtype, " ", sizes, ", expected ", a.q.dtype, " [", n.batch,
          " or 1, ", n.heads, " or 1, ", n.queries, ", ", n.keys, "] for a ", a.q.dtype, " mask");
  }
  return n;
}

}  // namespace binade::kernels
