#include <binade/kernels/reduce/reduce_internal.h>

#include <limits>

namespace binade::kernels {

namespace {

bool takes_dtype(Reduce op, DType dtype) {
  switch (op) {
    case Reduce::prod: return is_floating(dtype) || dtype == DType::i64 || dtype == DType::i32;
    case Reduce::sum:
    case Reduce::max:
    case Reduce::min: return true;
    default: return is_floating(dtype);
  }
}

const char* dtypes_of(Reduce op) {
  return op == Reduce::prod ? "a floating dtype, i64 or i32" : "a floating dtype";
}

bool needs_elements(Reduce op) {
  return op == Reduce::max || op == Reduce::min || op == Reduce::norm_inf;
}

bool has_aux(Reduce op) {
  return needs_elements(op) || op == Reduce::prod || op == Reduce::var || op == Reduce::std;
}

void check_operand(const ReduceBackward& a, const View& v, DType dtype) {
  check(!v || (v.dtype == dtype &&
               broadcast_sizes("reduce backward", a.x.sizes, v.sizes) == a.x.sizes),
        "reduce backward: got an operand ", v.dtype, " ", v.sizes, ", expected ", dtype,
        " that broadcasts to ", a.x.sizes);
}

}  // namespace

void check_arguments(const ReduceForward& a) {
  const DType dtype = a.x.dtype;
  const char* op = to_string(a.op);
  check(takes_dtype(a.op, dtype), op, ": got dtype ", dtype, ", expected ", dtypes_of(a.op),
        "; convert with to()");
  const DType result = a.op == Reduce::sum && !is_floating(dtype) ? DType::i64 : dtype;
  check(result == a.y.dtype || (is_floating(dtype) && a.y.dtype == compute_dtype(dtype)), op,
        ": got dtypes ", dtype, " and ", a.y.dtype, ", expected a result of dtype ", result,
        is_floating(dtype) ? " or the compute dtype" : "");
  check(a.x.dim() == a.y.dim(), op, ": got sizes ", a.x.sizes, " and result ", a.y.sizes,
        ", expected equal ranks (reduced dimensions have size 1)");
  for (int d = 0; d < a.x.dim(); ++d) {
    check(a.y.size(d) == a.x.size(d) || a.y.size(d) == 1, op, ": got sizes ", a.x.sizes,
          " and result ", a.y.sizes, ", expected a result size of ", a.x.size(d),
          " or 1 in dimension ", d);
  }
  check(a.y.numel == 0 || a.x.numel > 0 || !needs_elements(a.op), op, ": got sizes ", a.x.sizes,
        ", expected at least one element to reduce");
  check(!a.aux || (has_aux(a.op) && is_floating(dtype) && a.aux.dtype == aux_dtype(a.op, dtype) &&
                   a.aux.sizes == a.y.sizes),
        op, ": got a second result ", a.aux.dtype, " ", a.aux.sizes, ", expected ",
        aux_dtype(a.op, dtype), " ", a.y.sizes, " of max, min, norm_inf, prod, var or std");
}

void check_arguments(const ReduceBackward& a) {
  const DType dtype = a.x.dtype;
  check(is_floating(dtype) && a.dx.dtype == dtype && a.dx.sizes == a.x.sizes,
        "reduce backward: got x ", dtype, " ", a.x.sizes, " and dx ", a.dx.dtype, " ", a.dx.sizes,
        ", expected one floating dtype and equal sizes");
  const DType wide = compute_dtype(dtype);
  check_operand(a, a.a, wide);
  check_operand(a, a.b, a.op == ReduceSlope::deviation ? DType::f64 : wide);
}

double reduction_of_nothing(Reduce op) {
  switch (op) {
    case Reduce::mean:
    case Reduce::var:
    case Reduce::std: return std::numeric_limits<double>::quiet_NaN();
    case Reduce::logsumexp: return -std::numeric_limits<double>::infinity();
    default: return op == Reduce::prod ? 1 : 0;
  }
}

View with_reduced_dim(const ArgMax& a, const View& y) {
  View kept = y;
  if (y && y.dim() != a.x.dim()) {
    kept.sizes = kept.strides = Dims::of(a.x.dim(), 1);
    for (int d = 0, from = 0; d < a.x.dim(); ++d) {
      if (d != a.dim) {
        kept.sizes[d] = y.sizes[from];
        kept.strides[d] = y.strides[from++];
      }
    }
  }
  return kept;
}

ReduceRule reduce_rule(const ReduceForward& a, int64_t count) {
  const double n = static_cast<double>(count);
  switch (a.op) {
    case Reduce::sum: return {Reducer::sum, {}};
    case Reduce::mean: return {Reducer::sum, {.divisor = n}};
    case Reduce::max: return {a.aux ? Reducer::ties : Reducer::max, {}};
    case Reduce::min:
      return {a.aux ? Reducer::ties : Reducer::min, {.term = a.aux ? Term::negative : Term::plain}};
    case Reduce::prod: return {a.aux ? Reducer::zeros : Reducer::product, {}};
    case Reduce::norm1: return {Reducer::power_sum, {.term = Term::absolute}};
    case Reduce::norm2: return {Reducer::power_sum, {.term = Term::square, .root = true}};
    case Reduce::norm_inf: return {Reducer::ties, {.term = Term::absolute}};
    case Reduce::logsumexp: return {Reducer::log_sum_exp, {}};
    default: {
      const double divisor = n - a.correction;
      return {Reducer::deviations,
              {.root = a.op == Reduce::std, .divisor = divisor > 0 ? divisor : 0}};
    }
  }
}

void check_arguments(const ArgMax& a) {
  check(a.dim >= 0 && a.dim < a.x.dim(), "argmax: got dim ", a.dim, " of sizes ", a.x.sizes,
        ", expected 0 <= dim < rank");
  check(a.y.dtype == DType::i64, "argmax: got a result of dtype ", a.y.dtype, ", expected i64");
  Dims kept = a.x.sizes, dropped;
  kept[a.dim] = 1;
  for (int d = 0; d < a.x.dim(); ++d) {
    if (d != a.dim) {
      dropped.push_back(a.x.size(d));
    }
  }
  check(a.y.sizes == kept || a.y.sizes == dropped, "argmax: got a result of sizes ", a.y.sizes,
        ", expected ", kept, " or ", dropped);
  check(a.x.size(a.dim) > 0 || a.y.numel == 0, "argmax: got sizes ", a.x.sizes,
        ", expected at least one element along dim ", a.dim);
  check(!a.values || (a.values.sizes == a.y.sizes && a.values.dtype == a.x.dtype),
        "argmax: got values ", a.values.dtype, " ", a.values.sizes, ", expected ", a.x.dtype, " ",
        a.y.sizes);
}

}  // namespace binade::kernels
