// recompute(): activations that are computed again in backward instead of being kept (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016).
//
//   Tensor y = recompute(std::ref(block), x);     // of what block computes only x is saved
//   Tensor z = recompute([&](const Tensor& a, const Tensor& b) { return head(a * b); }, x, y);
//
// The function runs once without recording, and once more, recorded, in backward: with the same
// random numbers, precision policy and module path. Gradients reach its arguments and every tensor
// that it captured, parameters included, as if it had been called directly; backward is another
// such op, so recompute() may be nested and differentiated twice.
//
// The function and the variables that it captures by reference must live until backward is done. It
// must compute the same both times: other shapes are an error, and so is an input that was changed
// in place meanwhile. Running statistics of batch norm are updated the first time only.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <concepts>
#include <utility>
#include <vector>

namespace binade {

using ManyToMany = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
std::vector<Tensor> recompute_many(ManyToMany function, const std::vector<Tensor>& inputs);

namespace detail {
template <class F, size_t... I>
Tensor spread(F& function, const std::vector<Tensor>& in, std::index_sequence<I...>) {
  return function(in[I]...);
}
}  // namespace detail

template <class F, std::same_as<Tensor>... T>
Tensor recompute(F function, const T&... inputs) {
  ManyToMany many = [function](const std::vector<Tensor>& in) mutable {
    return std::vector<Tensor>{
        detail::spread(function, in, std::make_index_sequence<sizeof...(T)>{})};
  };
  return recompute_many(std::move(many), {inputs...})[0];
}

// True while recompute() runs a function on this thread for the second time. For functions with
// side effects.
inline bool is_recomputing() { return detail::thread_state.recomputing; }

}  // namespace binade
