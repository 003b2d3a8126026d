// cat and stack.
#include <binade/core/autograd/op.h>
#include <binade/core/ops/checks_internal.h>
#include <binade/core/ops/join.h>
#include <binade/core/ops/shape.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>

namespace binade {

Tensor cat(const std::vector<Tensor>& parts_, int dim) {
  static constexpr Op kOp{"cat", OpClass::movement, true};
  check(!parts_.empty(), "cat: got no tensors, expected at least one");
  const bool policy = detail::thread_state.precision;
  const std::vector<Tensor> joined =
      policy ? detail::enter_joined(kOp, parts_) : std::vector<Tensor>{};
  const std::vector<Tensor>& parts = policy ? joined : parts_;
  const Tensor& first = parts[0];
  check(first.defined() && first.dim() > 0, "cat: got a scalar or an undefined tensor");
  const int d = wrap_dim("cat", dim, first.dim());
  Dims sizes = first.sizes();
  sizes[d] = 0;
  for (const Tensor& part : parts) {
    check(part.defined() && part.dim() == first.dim() && part.dtype() == first.dtype(), "cat: got ",
          part.defined() ? text(part.dtype(), " ", part.sizes()) : "an undefined tensor",
          " beside ", first.dtype(), " ", first.sizes(), ", expected equal dtypes and ranks");
    for (int i = 0; i < first.dim(); ++i) {
      check(i == d || part.sizes()[i] == first.sizes()[i], "cat: got shapes ", first.sizes(),
            " and ", part.sizes(), ", expected equal sizes but in dimension ", d);
    }
    sizes[d] += part.sizes()[d];
  }
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
  kOp.record_many(
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

}  // namespace binade
