// Numbers, slices and new dimensions make a view. Index tensors then refer to dimensions of this
// view, which are moved side by side and count as one: the kernel index_offset joins the indices,
// and the elements are rows of that dimension (core/ops/detail/rows_internal.h).
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/advanced_index.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/rows_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/index/index_offset.h>
#include <binade/kernels/pointwise/ternary.h>

#include <algorithm>
#include <limits>

namespace binade {
namespace {

constexpr Op kIndex{"index", OpClass::movement, true};
constexpr Op kIndexPut{"index_put", OpClass::movement, true};

using Kind = TensorIndex::Kind;

// The tensor of an index, or null if it is no tensor.
const Tensor* tensor_of(const TensorIndex& at) {
  return at.kind == Kind::tensor ? &at.tensor : nullptr;
}

// How many dimensions of x an index refers to.
int consumed(const TensorIndex& at) {
  switch (at.kind) {
    case Kind::new_axis:
    case Kind::ellipsis: return 0;
    case Kind::tensor: return at.tensor.dtype() == DType::boolean ? at.tensor.dim() : 1;
    default: return 1;
  }
}

// The indices with kEllipsis replaced by whole dimensions and masks by index tensors.
TensorIndices expanded(const char* op, const Tensor& x, const TensorIndices& indices) {
  check_defined(op, x);
  int used = 0, ellipses = 0;
  for (const TensorIndex& at : indices) {
    const Tensor* t = tensor_of(at);
    check(!t || (t->defined() && (t->dtype() == DType::i64 || t->dtype() == DType::boolean)), op,
          ": got an index that is ", t && t->defined() ? to_string(t->dtype()) : "undefined",
          ", expected i64 or bool; convert it with to()");
    check(!t || t->device() == x.device(), op, ": got a tensor on ", x.device(),
          " and an index on ", t ? t->device() : Device{},
          ", expected one device; move them with to()");
    used += consumed(at);
    ellipses += at.kind == Kind::ellipsis;
  }
  check(used <= x.dim() && ellipses <= 1, op, ": got indices for ", used, " dimensions and ",
        ellipses, " ellipses for shape ", x.sizes(), ", expected at most ", x.dim(),
        " and one ellipsis");
  TensorIndices all;
  int d = 0;
  for (const TensorIndex& at : indices) {
    const Tensor* t = tensor_of(at);
    if (at.kind == Kind::ellipsis) {
      all.insert(all.end(), static_cast<size_t>(x.dim() - used), Slice{});
      d += x.dim() - used;
    } else if (t && t->dtype() == DType::boolean) {
      check(t->dim() > 0, op, ": got a mask without dimensions, expected at least one");
      for (int i = 0; i < t->dim(); ++i) {
        check(t->size(i) == x.size(d + i), op, ": got a mask of shape ", t->sizes(),
              " at dimension ", d, " of shape ", x.sizes(), ", expected equal sizes");
      }
      const Tensor positions = nonzero(*t);
      for (int i = 0; i < t->dim(); ++i) {
        all.emplace_back(make_view(positions, {positions.size(0)}, {t->dim()}, i));
      }
      d += t->dim();
    } else {
      all.push_back(at);
      d += consumed(at);
    }
  }
  return all;
}

// A view of x by all indices that are no tensors; `at` has one entry for each of its dimensions:
// the index tensor, or undefined.
struct Indexed {
  Tensor view;
  std::vector<Tensor> at;
};

Indexed indexed_view(const char* op, const Tensor& x, const TensorIndices& indices) {
  Indexed y{x, {}};
  int d = 0;
  for (const TensorIndex& index : indices) {
    if (index.kind == Kind::number) {
      const int64_t size = y.view.size(d);
      check(index.number >= -size && index.number < size, op, ": got index ", index.number,
            " in dimension ", d, " of shape ", y.view.sizes(), ", expected ", -size, " to ",
            size - 1);
      y.view = select(y.view, d, index.number);
      continue;
    }
    if (index.kind == Kind::slice) {
      const Slice& range = index.slice;
      check(range.step >= 1, op, ": got a slice with step ", range.step,
            ", expected at least 1; see flip()");
      if (range.start || range.stop || range.step != 1) {
        constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
        y.view = slice(y.view, d, range.start.value_or(0), range.stop.value_or(kEnd), range.step);
      }
    } else if (index.kind == Kind::new_axis) {
      y.view = unsqueeze(y.view, d);
    }
    const Tensor* t = tensor_of(index);
    y.at.push_back(t ? *t : Tensor());
    ++d;
  }
  y.at.resize(static_cast<size_t>(y.view.dim()));
  return y;
}

// The dimensions with index tensors, side by side and joined to one.
struct Joined {
  Dims order;   // of the view's dimensions; as they were if the indexed ones are side by side
  int dim = 0;  // where they begin then
  int count = 0;
  Dims shape;   // of the index tensors, broadcast
  Tensor rows;  // i64 [elements of shape]: indices of the joined dimension

  Joined(const char* op, const Indexed& x) {
    int first = -1, last = -1;
    Dims places;
    for (int d = 0; d < x.view.dim(); ++d) {
      if (const Tensor& t = x.at[static_cast<size_t>(d)]; t.defined()) {
        first = first < 0 ? d : first;
        last = d;
        places.push_back(d);
        shape = broadcast_sizes(op, shape, t.sizes());
      }
    }
    count = places.size();
    const bool adjacent = last - first + 1 == count;
    dim = adjacent ? first : 0;
    order = adjacent ? Dims{} : places;
    for (int d = 0; d < x.view.dim(); ++d) {
      if (adjacent || !x.at[static_cast<size_t>(d)].defined()) {
        order.push_back(d);
      }
    }
    join(op, x, places);
  }

  bool moves() const { return dim == 0 && !is_identity(order); }

  // The sizes of the moved view with the indexed dimensions joined.
  Dims joined_sizes(const Dims& sizes) const {
    Dims all;
    for (int d = 0; d < sizes.size(); ++d) {
      if (d > dim && d < dim + count) {
        all[dim] *= sizes[d];
      } else {
        all.push_back(sizes[d]);
      }
    }
    return all;
  }
  // The sizes of the indexed elements, given those of the moved view.
  Dims result_sizes(const Dims& sizes) const {
    Dims all;
    for (int d = 0; d < sizes.size(); ++d) {
      if (d == dim) {
        for (int64_t size : shape) {
          all.push_back(size);
        }
      }
      if (d < dim || d >= dim + count) {
        all.push_back(sizes[d]);
      }
    }
    return all;
  }

 private:
  static bool is_identity(const Dims& order) {
    for (int d = 0; d < order.size(); ++d) {
      if (order[d] != d) {
        return false;
      }
    }
    return true;
  }
  void join(const char* op, const Indexed& x, const Dims& places) {
    const Tensor offsets = empty(shape, DType::i64, x.view.device());
    int64_t step = 1;
    for (int i = count - 1; i >= 0; --i) {
      const auto d = static_cast<size_t>(places[i]);
      kernels::index_offset({.op = op,
                             .index = x.at[d],
                             .y = offsets,
                             .bound = x.view.size(places[i]),
                             .step = step,
                             .accumulate = i < count - 1});
      step *= x.view.size(places[i]);
    }
    rows = make_view(offsets, {offsets.numel()}, {1});
  }
};

bool has_tensors(const Indexed& x) {
  return std::any_of(x.at.begin(), x.at.end(), [](const Tensor& t) { return t.defined(); });
}

// The only index if it is a mask.
const Tensor* only_mask(const TensorIndices& indices) {
  const Tensor* t = indices.size() == 1 ? tensor_of(indices[0]) : nullptr;
  return t && t->defined() && t->dtype() == DType::boolean ? t : nullptr;
}

// A mask of the first dimensions, with the others as 1, to broadcast to x.
Tensor mask_of(const char* op, const Tensor& x, const Tensor& mask) {
  check(mask.dim() > 0 && mask.dim() <= x.dim(), op, ": got a mask of shape ", mask.sizes(),
        " for shape ", x.sizes(), ", expected 1 to ", x.dim(), " dimensions");
  Dims sizes = mask.sizes();
  for (int d = 0; d < x.dim(); ++d) {
    check(d >= mask.dim() || mask.size(d) == x.size(d), op, ": got a mask of shape ", mask.sizes(),
          " for shape ", x.sizes(), ", expected equal sizes");
    if (d >= mask.dim()) {
      sizes.push_back(1);
    }
  }
  return reshape(mask, sizes);
}

// Indexes by index tensors.
Tensor read(const Op& op, const Indexed& x) {
  const Joined joined(op.name, x);
  const Tensor moved = joined.moves() ? permute(x.view, joined.order) : x.view;
  const Tensor lines = reshape(moved, joined.joined_sizes(moved.sizes()));
  return reshape(detail::take_rows(op, lines, joined.dim, joined.rows),
                 joined.result_sizes(moved.sizes()));
}

// Writes values, of the indexed elements' dtype and device, into x's memory.
void write_part(const char* op, const Tensor& y, const Tensor& values, bool accumulate) {
  check(can_broadcast(values.sizes(), y.sizes()) &&
            broadcast_sizes(op, values.sizes(), y.sizes()) == y.sizes(),
        op, ": got values of shape ", values.sizes(), " for elements of shape ", y.sizes(),
        ", expected values that broadcast to them");
  const Tensor source = broadcast_view(values, y.sizes());
  if (accumulate) {
    kernels::copy({.x = add(source, y.detach()), .y = y});
  } else {
    kernels::copy({.x = source, .y = y});
  }
}

void write(const char* op, const Indexed& x, const Tensor& values, bool accumulate) {
  if (!has_tensors(x)) {
    return write_part(op, x.view, values, accumulate);
  }
  const Joined joined(op, x);
  const Tensor moved = joined.moves() ? permute(x.view, joined.order) : x.view;
  const Dims wanted = joined.result_sizes(moved.sizes());
  check(can_broadcast(values.sizes(), wanted) &&
            broadcast_sizes(op, values.sizes(), wanted) == wanted,
        op, ": got values of shape ", values.sizes(), " for elements of shape ", wanted,
        ", expected values that broadcast to them");
  // The kernels need contiguous lines: they write x's memory if it is contiguous, else a copy.
  const Tensor dense = moved.is_contiguous() ? moved : contiguous(moved);
  const Tensor lines = reshape(dense, joined.joined_sizes(dense.sizes()));
  Dims sizes = lines.sizes();
  sizes[joined.dim] = joined.rows.numel();
  const Tensor src = reshape(broadcast_view(values, wanted), sizes);
  const Tensor at = detail::index_of_rows(joined.rows, sizes, joined.dim);
  if (accumulate) {
    kernels::scatter_add({.op = op, .index = at, .src = src, .y = lines, .dim = joined.dim});
  } else {
    kernels::scatter({.op = op, .index = at, .src = src, .y = lines, .dim = joined.dim});
  }
  if (!moved.is_contiguous()) {
    kernels::copy({.x = dense, .y = moved});
  }
}

// The gradient of the values: dy at the indexed elements, but 0 for values that were overwritten.
Tensor values_gradient(const Tensor& dy, const TensorIndices& indices, bool accumulate) {
  const Indexed x = indexed_view(kIndexPut.name, dy, indices);
  if (!has_tensors(x)) {
    return x.view;
  }
  Tensor g = read(kIndexPut, x);
  const Joined joined(kIndexPut.name, x);
  if (accumulate || joined.rows.numel() < 2) {
    return g;
  }
  const Tensor moved = joined.moves() ? permute(x.view.detach(), joined.order) : x.view.detach();
  const int64_t bound = joined.joined_sizes(moved.sizes())[joined.dim];
  Dims sizes = joined.shape;
  for (int d = joined.dim + joined.count; d < moved.dim(); ++d) {
    sizes.push_back(1);
  }
  return where(reshape(detail::last_writers(kIndexPut, joined.rows, bound, 0), sizes), g, 0.0);
}

Tensor put(const Tensor& x, const TensorIndices& indices, const Tensor& values, bool accumulate) {
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  kernels::copy({.x = x, .y = y});
  {
    const NoGradGuard guard;
    write(kIndexPut.name, indexed_view(kIndexPut.name, y, indices), values.detach(), accumulate);
  }
  std::vector<Tensor> keep;  // so that a change of an index in place is noticed
  for (const TensorIndex& at : indices) {
    if (const Tensor* t = tensor_of(at)) {
      keep.push_back(*t);
    }
  }
  const Tensor inputs[] = {x, values};
  kIndexPut.record_many(inputs, std::span(&y, 1), keep,
                        [indices, accumulate](std::span<const Tensor> dys, Needs needs,
                                              std::span<const Tensor>) -> Grads {
                          const Tensor& dy = dys[0];
                          Tensor dx = dy, dvalues;
                          if (!accumulate && needs[0]) {
                            dx = put(dy, indices, zeros({}, dy.dtype(), dy.device()), false);
                          }
                          if (needs[1]) {
                            dvalues = values_gradient(dy, indices, accumulate);
                          }
                          return Grads(std::vector<Tensor>{dx, dvalues});
                        });
  return y;
}

}  // namespace

Tensor index(const Tensor& x, const TensorIndices& indices) {
  check_defined(kIndex.name, x);
  if (const Tensor* mask = only_mask(indices); mask && mask->dim() == x.dim() && x.dim() > 0) {
    return masked_select(x, mask_of(kIndex.name, x, *mask));
  }
  const Indexed part = indexed_view(kIndex.name, x, expanded(kIndex.name, x, indices));
  return has_tensors(part) ? read(kIndex, part) : part.view;
}

Tensor index_put(const Tensor& x_, const TensorIndices& indices, const Tensor& values_,
                 bool accumulate) {
  check(x_.defined() && values_.defined(),
        "index_put: got an undefined tensor, expected one with a value; assign it first");
  const std::vector<Tensor> joined = detail::enter_joined(kIndexPut, {x_, values_});
  const Tensor &x = joined[0], &values = joined[1];
  check(values.dtype() == x.dtype() && values.device() == x.device(), "index_put: got x ",
        x.dtype(), " on ", x.device(), " and values ", values.dtype(), " on ", values.device(),
        ", expected one dtype and device; convert them with to()");
  return put(x, expanded(kIndexPut.name, x, indices), values, accumulate);
}

Tensor index_put(const Tensor& x, const TensorIndices& indices, double value) {
  check_defined(kIndexPut.name, x);
  check_number(kIndexPut.name, value, x.dtype());
  if (const Tensor* mask = only_mask(indices)) {
    return masked_fill(x, mask_of(kIndexPut.name, x, *mask), value);
  }
  return put(x, expanded(kIndexPut.name, x, indices), full({}, value, x.dtype(), x.device()),
             false);
}

void index_put_(const Tensor& x, const TensorIndices& indices, const Tensor& values,
                bool accumulate) {
  static constexpr const char* kName = "index_put_";
  detail::check_in_place(kName, x);
  check_defined(kName, values);
  const NoGradGuard guard;
  const Tensor source = values.detach().to(x.device()).to(x.dtype());
  write(kName, indexed_view(kName, x.detach(), expanded(kName, x, indices)), source, accumulate);
  x.bump_version();
}

void index_put_(const Tensor& x, const TensorIndices& indices, double value) {
  detail::check_in_place("index_put_", x);
  check_number("index_put_", value, x.dtype());
  if (const Tensor* mask = only_mask(indices)) {
    const Tensor where = mask_of("index_put_", x, *mask);
    kernels::where_forward({.condition = where, .a = kNoView, .b = x, .y = x, .value = value});
    return x.bump_version();
  }
  index_put_(x, indices, full({}, value, x.dtype(), x.device()));
}

Tensor Tensor::operator[](const Tensor& indices) const { return index(*this, {indices}); }

}  // namespace binade
