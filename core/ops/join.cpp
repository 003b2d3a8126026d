// cat and stack join tensors; split and chunk cut one into views. The gradient of one is the other.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/join.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>

namespace binade {
namespace {

Tensor piece_of(const Tensor& t, int d, int64_t at, int64_t size) {
  Dims sizes = t.sizes();
  sizes[d] = size;
  return make_view(t, sizes, t.strides(), at * t.strides()[d]);
}

// If the pieces are adjacent parts of one tensor in memory, returns that tensor, else an undefined
// one. Attention makes the gradients of packed QKV in this way (core/ops/attention.cpp).
Tensor whole_of(std::span<const Tensor> pieces, const std::vector<int64_t>& sizes, int d) {
  if (pieces.empty() || !pieces[0].defined()) {
    return {};
  }
  const Tensor& first = pieces[0];
  const int64_t step = first.strides()[d] * static_cast<int64_t>(size_of(first.dtype()));
  int64_t at = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Tensor& piece = pieces[i];
    if (!piece.defined() || piece.handle()->storage.get() != first.handle()->storage.get() ||
        !(piece.strides() == first.strides()) ||
        piece.handle()->view.data != first.handle()->view.data + at * step) {
      return {};
    }
    at += sizes[i];
  }
  Dims whole = first.sizes();
  whole[d] = at;
  return make_view(first, whole, first.strides());
}

// The gradient of split; a piece without one counts as zeros.
Tensor joined(std::span<const Tensor> dys, const std::vector<int64_t>& sizes, int d, Needs needs) {
  if (grad_enabled()) {
    const auto given = std::find_if(dys.begin(), dys.end(), [](auto& dy) { return dy.defined(); });
    std::vector<Tensor> parts(dys.begin(), dys.end());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].defined()) {
        Dims missing = given->sizes();
        missing[d] = sizes[i];
        parts[i] = zeros(missing, given->dtype(), given->device());
      }
    }
    return cat(parts, d);
  }
  if (Tensor whole = whole_of(dys, sizes, d); whole.defined()) {
    return whole;
  }
  Tensor dx = needs.out(0);
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor piece = piece_of(dx, d, at, sizes[i]);
    if (dys[i].defined()) {
      kernels::copy({.x = dys[i], .y = piece});
    } else {
      kernels::fill({.y = piece, .value = 0});
    }
    at += sizes[i];
  }
  return dx;
}

constexpr Op kCat{"cat", OpClass::movement, true};

// The sizes of the parts joined along d. Errors are in the name of `op`.
Dims joined_sizes(const char* op, const std::vector<Tensor>& parts, int d) {
  const Tensor& first = parts[0];
  Dims sizes = first.sizes();
  sizes[d] = 0;
  for (const Tensor& part : parts) {
    check_one_device(op, {&first, &part});
    check(part.defined() && part.dim() == first.dim() && part.dtype() == first.dtype(), op,
          ": got ", part.defined() ? text(part.dtype(), " ", part.sizes()) : "an undefined tensor",
          " beside ", first.dtype(), " ", first.sizes(),
          ", expected equal dtypes and ranks; convert with to(), add a dimension with unsqueeze()");
    for (int i = 0; i < first.dim(); ++i) {
      check(i == d || part.sizes()[i] == first.sizes()[i], op, ": got shapes ", first.sizes(),
            " and ", part.sizes(), ", expected equal sizes but in dimension ", d,
            "; choose another dim, or slice() and pad()");
    }
    sizes[d] += part.sizes()[d];
  }
  return sizes;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& parts_, int dim) {
  check(!parts_.empty(), "cat: got no tensors, expected at least one");
  const bool policy = detail::thread_state.precision;
  const std::vector<Tensor> joined =
      policy ? detail::enter_joined(kCat, parts_) : std::vector<Tensor>{};
  const std::vector<Tensor>& parts = policy ? joined : parts_;
  const Tensor& first = parts[0];
  check(first.defined() && first.dim() > 0, "cat: got a scalar or an undefined tensor");
  const int d = wrap_dim("cat", dim, first.dim());
  const Dims sizes = joined_sizes(kCat.name, parts, d);
  Tensor y = empty(sizes, first.dtype(), first.device());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    kernels::copy({.x = part, .y = make_view(y, part.sizes(), y.strides(), at * y.strides()[d])});
    at += part.sizes()[d];
  }
  std::vector<int64_t> lengths;
  for (const Tensor& part : parts) {
    lengths.push_back(part.sizes()[d]);
  }
  kCat.record_many(
      parts, std::span(&y, 1), {},
      [d, lengths](std::span<const Tensor> dys, Needs, std::span<const Tensor>) -> Grads {
        std::vector<Tensor> out;
        int64_t at = 0;
        for (int64_t length : lengths) {
          out.push_back(slice(dys[0], d, at, at + length));
          at += length;
        }
        return Grads(std::move(out));
      });
  return y;
}

Tensor stack(const std::vector<Tensor>& parts, int dim) {
  check(!parts.empty(), "stack: got no tensors, expected at least one");
  for (const Tensor& part : parts) {
    check_one_device("stack", {&parts[0], &part});
  }
  check_defined("stack", parts[0]);
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) {
    check_defined("stack", part);
    const bool joins = part.dtype() == parts[0].dtype() || detail::thread_state.precision;
    check(part.sizes() == parts[0].sizes() && joins, "stack: got ", parts[0].dtype(), " ",
          parts[0].sizes(), " and ", part.dtype(), " ", part.sizes(),
          ", expected equal dtypes and shapes");
    rows.push_back(unsqueeze(part, wrap_dim("stack", dim, part.dim() + 1)));
  }
  return cat(rows, wrap_dim("stack", dim, parts[0].dim() + 1));
}

namespace {

// hstack and vstack: the parts with at least `rank` dimensions, joined along d.
Tensor stacked(const char* op, const std::vector<Tensor>& parts, int rank) {
  check(!parts.empty(), op, ": got no tensors, expected at least one");
  std::vector<Tensor> raised;
  for (const Tensor& part : parts) {
    check_defined(op, part);
    const Tensor vector = part.dim() == 0 ? unsqueeze(part, 0) : part;
    raised.push_back(vector.dim() < rank ? unsqueeze(vector, 0) : vector);
  }
  if (detail::thread_state.precision) {
    raised = detail::enter_joined(kCat, raised);
  }
  const int d = rank == 1 && raised[0].dim() > 1 ? 1 : 0;
  static_cast<void>(joined_sizes(op, raised, d));  // names the op
  return cat(raised, d);
}

}  // namespace

Tensor hstack(const std::vector<Tensor>& parts) { return stacked("hstack", parts, 1); }
Tensor vstack(const std::vector<Tensor>& parts) { return stacked("vstack", parts, 2); }

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim) {
  static constexpr Op kOp{"split", OpClass::movement, true};
  check_defined("split", x);
  check(x.dim() > 0, "split: got a scalar, expected a dimension");
  const int d = wrap_dim("split", dim, x.dim());
  int64_t left = x.sizes()[d];
  for (int64_t size : sizes) {
    check(size >= 0 && size <= left, "split: got sizes that are negative or exceed the ",
          x.sizes()[d], " of dimension ", d, " of shape ", x.sizes());
    left -= size;
  }
  check(left == 0, "split: got sizes that leave ", left, " of the ", x.sizes()[d], " of dimension ",
        d, ", expected all");
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t size : sizes) {
    pieces.push_back(piece_of(x, d, at, size));
    at += size;
  }
  kOp.record_many(
      std::span(&x, 1), pieces, {},
      [d, sizes](std::span<const Tensor> dys, Needs needs, std::span<const Tensor>) -> Grads {
        return {joined(dys, sizes, d, needs)};
      });
  return pieces;
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int dim) {
  check_defined("split", x);
  check(x.dim() > 0 && size >= 1, "split: got shape ", x.sizes(), " and size ", size,
        ", expected a dimension and a size of at least 1");
  const int64_t whole = x.sizes()[wrap_dim("split", dim, x.dim())];
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < std::max<int64_t>(whole, 1); at += size) {
    sizes.push_back(std::min(size, whole - at));
  }
  return split(x, sizes, dim);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int dim) {
  check_defined("chunk", x);
  check(x.dim() > 0 && chunks >= 1, "chunk: got shape ", x.sizes(), " and ", chunks,
        " chunks, expected a dimension and at least one chunk");
  const int64_t size = x.sizes()[wrap_dim("chunk", dim, x.dim())];
  if (size == 0) {  // that many empty pieces
    return split(x, std::vector<int64_t>(static_cast<size_t>(chunks), 0), dim);
  }
  return split(x, (size - 1) / chunks + 1, dim);
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  check_defined("unbind", x);
  check(x.dim() > 0, "unbind: got a scalar, expected a dimension");
  const int d = wrap_dim("unbind", dim, x.dim());
  std::vector<Tensor> parts = split(x, 1, d);
  parts.resize(static_cast<size_t>(x.size(d)));  // split of nothing is one empty part
  for (Tensor& part : parts) {
    part = squeeze(part, d);
  }
  return parts;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, std::string_view indexing) {
  check(!tensors.empty() && tensors.size() <= kMaxDims, "meshgrid: got ", tensors.size(),
        " tensors, expected 1 to ", kMaxDims);
  check(indexing == "ij" || indexing == "xy", "meshgrid: got indexing '", indexing,
        "', expected ij or xy");
  const int rank = static_cast<int>(tensors.size());
  const auto place = [&](int i) { return indexing == "xy" && rank > 1 && i < 2 ? 1 - i : i; };
  Dims sizes = Dims::of(rank);
  for (int i = 0; i < rank; ++i) {
    const Tensor& t = tensors[static_cast<size_t>(i)];
    check(t.defined() && t.dim() <= 1, "meshgrid: got tensor ", i, " ",
          t.defined() ? text("of shape ", t.sizes()) : "undefined", ", expected one dimension");
    check_one_device("meshgrid", {&tensors[0], &t});
    sizes[place(i)] = t.numel();
  }
  std::vector<Tensor> grids;
  for (int i = 0; i < rank; ++i) {
    Dims own = Dims::of(rank, 1);
    own[place(i)] = sizes[place(i)];
    grids.push_back(expand(reshape(tensors[static_cast<size_t>(i)], own), sizes));
  }
  return grids;
}

}  // namespace binade
