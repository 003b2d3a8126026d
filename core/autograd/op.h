// Op: the one definition of an operation. Its form is the same everywhere (core/ops/*.cpp):
//
//   static constexpr Op kSoftmax{"softmax", OpClass::reduction};
//
//   Tensor softmax(const Tensor& x_) {            // y_i = exp(x_i) / sum_j exp(x_j)
//     auto [x] = kSoftmax.enter(x_);              // precision policy
//     check(...);
//     Tensor y = empty_like(x);
//     kernels::softmax_forward({.x = x, .y = y});
//     return kSoftmax.record(
//         {x}, y, save(y), [](const Tensor& dy, Needs needs, const Tensor& y) -> Grads {
//       Tensor dx = needs.out(0);                 // dx = y * (dy - sum(dy * y))
//       kernels::softmax_backward({.y = y, .dy = dy, .dx = dx});
//       return {dx};
//     });
//   }
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/core/precision/precision.h>
#include <binade/kernels/base/kernel.h>

#include <tuple>
#include <vector>

namespace binade {

template <size_t N>
class Entered;

struct Op {
  const char* name;
  OpClass op_class;
  bool twice = false;  // the backward is made of ops, so it can be differentiated again

  // The inputs as the op takes them: cast as the thread's precision policy asks. Casts are
  // differentiable. Undefined (optional) inputs pass through.
  template <class... T>
  Entered<sizeof...(T)> enter(const T&... inputs) const;
  // The same for inputs that broadcast: then the inputs from number kFirst on are converted to one
  // dtype by the rule of type promotion (docs/dtypes.md). An undefined one is an error.
  template <size_t kFirst = 0, class... T>
  Entered<sizeof...(T)> enter_promoted(const T&... inputs) const;

  // Records the op and returns its result; y is moved from, so a result is recorded once.
  template <size_t kInputs, size_t kSaved, class F>
  Tensor record(const detail::Input (&inputs)[kInputs], Tensor& y,
                const std::array<detail::ToSave, kSaved>& keep, const F& backward) const {
    return detail::record(this, inputs, y, keep, backward);
  }
  // A result that has no gradient.
  template <size_t kInputs>
  Tensor plain(const detail::Input (&inputs)[kInputs], Tensor& y) const {
    if (!y.defined()) [[unlikely]] {
      detail::refuse_result(*this);
    }
    if (detail::thread_state.observers) [[unlikely]] {
      detail::notify_result(*this, inputs, kInputs, y);
    }
    uint8_t bits = 0;
    for (const detail::Input& input : inputs) {
      bits |= detail::untracked_from(input.tensor, detail::kPlainOp);
    }
    detail::set_untracked_result(y, bits);
    return std::move(y);
  }
  void record_many(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                   std::span<const Tensor> keep, detail::ManyBackward backward) const {
    detail::record_many(this, inputs, outputs, keep, std::move(backward));
  }
};

namespace detail {
// Tells the observers that an op begins (core/observe/observer.h).
void notify_enter(const Op& op);
inline void begin_op(const Op& op) {
  if (thread_state.observers) [[unlikely]] {
    notify_enter(op);
  }
}
// Checks that all inputs of an op are on one device.
void check_devices(const Op& op, const Tensor* const* inputs, size_t count);
// Casts the inputs to one dtype if a policy acts: to the widest dtype among them.
std::vector<Tensor> enter_joined(const Op& op, const std::vector<Tensor>& inputs);

// Holds what an op's inputs were cast to. Most ops cast nothing, so each cast has its own memory.
class Casts {
 public:
  Casts() = default;
  Casts(Casts&& other) noexcept : last_(std::exchange(other.last_, nullptr)) {}
  Casts& operator=(Casts&& other) noexcept {
    std::swap(last_, other.last_);
    return *this;
  }
  ~Casts() {
    if (last_) [[unlikely]] {
      release(last_);
    }
  }
  // Returns the address of the cast, which is valid as long as this object.
  const Tensor* keep(Tensor cast);

 private:
  struct Cast;
  static void release(Cast* last) noexcept;
  Cast* last_ = nullptr;
};

void enter_policy(const Op& op, const PrecisionScope& scope, std::span<const Tensor*> inputs,
                  Casts& casts);
// Converts the inputs to one dtype by the rule of type promotion.
void promote(const Op& op, std::span<const Tensor*> inputs, Casts& casts);
}  // namespace detail

template <size_t N>
class Entered {
 public:
  template <class... T>
  explicit Entered(const Op& op, const T&... inputs) : at_{&inputs...} {
    detail::begin_op(op);
    if constexpr (kernels::kWithCuda && N > 1) {
      detail::check_devices(op, at_.data(), N);
    }
    if (const PrecisionScope* scope = detail::thread_state.precision) [[unlikely]] {
      cast([&](auto inputs, detail::Casts& casts) {
        detail::enter_policy(op, *scope, inputs, casts);
      });
    }
  }
  template <size_t kFirst, class... T>
  Entered(std::integral_constant<size_t, kFirst>, const Op& op, const T&... inputs)
      : Entered(op, inputs...) {
    bool equal = at_[kFirst]->defined();
    for (size_t i = kFirst + 1; i < N; ++i) {
      equal = equal && at_[i]->defined() && at_[i]->dtype() == at_[kFirst]->dtype();
    }
    if (!equal) [[unlikely]] {
      cast([&](auto inputs, detail::Casts& casts) {
        detail::promote(op, inputs.subspan(kFirst), casts);
      });
    }
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  template <size_t I>
  const Tensor& get() const {
    return *at_[I];
  }

 private:
  // Works on copies: if no function gets the address of the members, they can be in registers.
  template <class F>
  void cast(F change) {
    std::array<const Tensor*, N> at = at_;
    detail::Casts casts = std::move(casts_);
    change(std::span<const Tensor*>(at), casts);
    at_ = at;
    casts_ = std::move(casts);
  }

  std::array<const Tensor*, N> at_;
  detail::Casts casts_;
};

template <class... T>
Entered<sizeof...(T)> Op::enter(const T&... inputs) const {
  return Entered<sizeof...(T)>(*this, inputs...);
}
template <size_t kFirst, class... T>
Entered<sizeof...(T)> Op::enter_promoted(const T&... inputs) const {
  return Entered<sizeof...(T)>(std::integral_constant<size_t, kFirst>(), *this, inputs...);
}

}  // namespace binade

template <size_t N>
struct std::tuple_size<binade::Entered<N>> : std::integral_constant<size_t, N> {};
template <size_t I, size_t N>
struct std::tuple_element<I, binade::Entered<N>> {
  using type = const binade::Tensor;
};
