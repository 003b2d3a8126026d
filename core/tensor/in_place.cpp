// x += y, -=, *= and /=: in place, or as x = x + y if a gradient is recorded. Also x[i] = y.
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <functional>

namespace binade {
namespace {

using kernels::Binary;
using kernels::Unary;

struct Update {
  const char* name;
  Binary kernel;
  Tensor (*op)(const Tensor&, const Tensor&);
  Unary number_kernel;
  Tensor (*number_op)(const Tensor&, double);
};
constexpr Update kAdd{"+=", Binary::add, add, Unary::add_scalar, add};
constexpr Update kSub{"-=", Binary::sub, sub, Unary::add_scalar, add};  // of the negative number
constexpr Update kMul{"*=", Binary::mul, mul, Unary::mul_scalar, mul};
constexpr Update kDiv{"/=", Binary::div, div, Unary::div_scalar, div};

// The result must replace x. Under a precision policy it may have another floating dtype.
void check_result(const char* name, const Tensor& x, const Tensor& result) {
  const bool floats = is_floating(x.dtype()) && is_floating(result.dtype());
  check(result.sizes() == x.sizes() && (floats || result.dtype() == x.dtype()), name,
        ": got a result ", result.dtype(), " ", result.sizes(), " for a tensor ", x.dtype(), " ",
        x.sizes(), ", expected its sizes and dtype; write x = x ", std::string(1, name[0]),
        " y for a new tensor");
}

// x must be a variable that can take the new value, holds all of its memory and is no leaf.
void check_recorded(const char* name, const Tensor& x, bool rebinds) {
  const bool leaf = x.history() && x.history()->leaf;
  if (leaf) {
    detail::check_in_place(name, x);
  }
  const size_t bytes = static_cast<size_t>(x.numel()) * size_of(x.dtype());
  check(rebinds && bytes >= x.handle()->storage->bytes, name, ": got ",
        rebinds ? "a part of a larger tensor" : "a temporary or a const handle",
        " and a gradient is recorded, so the result would be lost; write z = x ",
        std::string(1, name[0]), " y for a new tensor");
}

// x's memory must not hold one element at several indices.
void check_writable(const char* name, const Tensor& x) {
  detail::check_in_place(name, x);
  for (int d = 0; d < x.dim(); ++d) {
    check(x.numel() == 0 || x.sizes()[d] == 1 || x.strides()[d] != 0, name,
          ": got an expanded tensor of shape ", x.sizes(),
          ", whose elements share memory; call clone() first");
  }
}

void write(const Update& update, const Tensor& x, const Tensor& result) {
  check_result(update.name, x, result);
  kernels::copy({.x = result, .y = x});
}

// True if a kernel may read y while it writes x.
bool may_overwrite(const Tensor& x, const Tensor& y) {
  const Storage &a = *x.handle()->storage, &b = *y.handle()->storage;
  const std::less_equal<const std::byte*> before;
  return before(a.data + a.bytes, b.data) || before(b.data + b.bytes, a.data) ||
         (x.view().data == y.view().data && x.sizes() == y.sizes() && x.strides() == y.strides());
}

void change(const Update& update, Tensor& x, const Tensor& y, bool rebinds) {
  check(x.defined() && y.defined(), update.name, ": got an undefined tensor");
  if (grad_enabled() && (x.requires_grad() || y.requires_grad())) {
    check_recorded(update.name, x, rebinds);
    Tensor result = update.op(x, y);
    check_result(update.name, x, result);
    x = std::move(result);
    return;
  }
  check_writable(update.name, x);
  const bool plain = is_floating(x.dtype()) && y.dtype() == x.dtype() && y.device() == x.device();
  if (plain && can_broadcast(x.sizes(), y.sizes()) &&
      broadcast_sizes(update.name, x.sizes(), y.sizes()) == x.sizes() && may_overwrite(x, y)) {
    kernels::binary_forward({.op = update.kernel, .a = x, .b = y, .y = x});
  } else {
    write(update, x, update.op(x.detach(), y.detach()));
  }
  x.bump_version();
}

void change(const Update& update, Tensor& x, double y, bool rebinds) {
  check(x.defined(), update.name, ": got an undefined tensor");
  if (grad_enabled() && x.requires_grad()) {
    check_recorded(update.name, x, rebinds);
    x = update.number_op(x, y);
    return;
  }
  check_writable(update.name, x);
  if (is_floating(x.dtype())) {
    kernels::unary_forward({.op = update.number_kernel, .x = x, .y = x, .alpha = y});
  } else {
    write(update, x, update.number_op(x.detach(), y));
  }
  x.bump_version();
}

// The same for a const handle, which cannot be rebound.
template <class Y>
void change_fixed(const Update& update, Tensor x, const Y& y) {
  change(update, x, y, false);
}

// x must be a part of another tensor, which takes the values.
void check_part(const char* name, const Tensor& x) {
  check(x.defined(), name, ": got an undefined tensor on the left, expected a part of another one");
  check(!x.sole_owner(), name,
        ": got a temporary on the left that no other tensor shares, so the values would be lost, "
        "expected a view such as x[0]; use index_put_() for masks and index tensors");
}

// The same for a temporary, which must be a part of another tensor.
template <class Y>
void change_part(const Update& update, Tensor& x, const Y& y) {
  if (!x.requires_grad()) {
    check(x.defined(), update.name, ": got an undefined tensor");
    check_writable(update.name, x);
    check_part(update.name, x);
  }
  change(update, x, y, false);
}

}  // namespace

void Tensor::operator=(const Tensor& y) && {  // NOLINT
  check_part("x[i] = y", *this);
  check_writable("x[i] = y", *this);
  check(!grad_enabled() || !y.requires_grad(),
        "x[i] = y: got a y whose gradient is recorded, which a write in place would lose, expected "
        "one without; write y.detach(), or make a new tensor with index_put(), cat() or stack()");
  copy_(y);
}
void Tensor::operator=(double value) && {  // NOLINT
  check_part("x[i] = y", *this);
  check_writable("x[i] = y", *this);
  fill_(value);
}

Tensor& Tensor::operator+=(const Tensor& y) & {
  change(kAdd, *this, y, true);
  return *this;
}
Tensor& Tensor::operator-=(const Tensor& y) & {
  change(kSub, *this, y, true);
  return *this;
}
Tensor& Tensor::operator*=(const Tensor& y) & {
  change(kMul, *this, y, true);
  return *this;
}
Tensor& Tensor::operator/=(const Tensor& y) & {
  change(kDiv, *this, y, true);
  return *this;
}
Tensor& Tensor::operator+=(double y) & {
  change(kAdd, *this, y, true);
  return *this;
}
Tensor& Tensor::operator-=(double y) & {
  change(kSub, *this, -y, true);
  return *this;
}
Tensor& Tensor::operator*=(double y) & {
  change(kMul, *this, y, true);
  return *this;
}
Tensor& Tensor::operator/=(double y) & {
  change(kDiv, *this, y, true);
  return *this;
}
void Tensor::operator+=(const Tensor& y) const& { change_fixed(kAdd, *this, y); }
void Tensor::operator-=(const Tensor& y) const& { change_fixed(kSub, *this, y); }
void Tensor::operator*=(const Tensor& y) const& { change_fixed(kMul, *this, y); }
void Tensor::operator/=(const Tensor& y) const& { change_fixed(kDiv, *this, y); }
void Tensor::operator+=(double y) const& { change_fixed(kAdd, *this, y); }
void Tensor::operator-=(double y) const& { change_fixed(kSub, *this, -y); }
void Tensor::operator*=(double y) const& { change_fixed(kMul, *this, y); }
void Tensor::operator/=(double y) const& { change_fixed(kDiv, *this, y); }

void Tensor::operator+=(const Tensor& y) && { change_part(kAdd, *this, y); }
void Tensor::operator-=(const Tensor& y) && { change_part(kSub, *this, y); }
void Tensor::operator*=(const Tensor& y) && { change_part(kMul, *this, y); }
void Tensor::operator/=(const Tensor& y) && { change_part(kDiv, *this, y); }
void Tensor::operator+=(double y) && { change_part(kAdd, *this, y); }
void Tensor::operator-=(double y) && { change_part(kSub, *this, -y); }
void Tensor::operator*=(double y) && { change_part(kMul, *this, y); }
void Tensor::operator/=(double y) && { change_part(kDiv, *this, y); }

}  // namespace binade
