// Optimizer steps that update each element independently: one pass over memory. A thread takes the
// adjacent elements that fill 16 bytes of the parameter's type (8 of f16, 4 of f32) and reads
// gradient, parameter or master, and state; unscaling, clipping, decay and update happen in
// registers; it writes state, master and the rounded parameter. The scalars of the step come by
// value or, if the host does not know them, from device memory; if these say skip, the step ends at
// once.
//
// An optimizer is a rule: the arrays of its state, its numbers, and
//   C decay;  // times the parameter, added to the gradient
//   Now now(const RangeScalars&) const;  // the same for all elements of a step
//   void update(const Now&, at, C (&p)[n], C (&g)[n]) const;  // parameters and state
#pragma once
#include <binade/kernels/optimizer/step_rule.h>
#include <binade/kernels/optimizer/step_arrays.cuh>

namespace binade::kernels::dev {

inline constexpr int kStepThreads = 256;

template <class T, template <class> class Rule>
struct Step {
  VectorSpan span;
  Arrays<T> arrays;
  Rule<Compute<T>> rule;
  RangeScalars given;
  const RangeScalars* step_scalars;
};

template <class T, template <class> class Rule>
__device__ __forceinline__ void run_step(const Step<T, Rule>& s) {
  using C = Compute<T>;
  const RangeScalars w = s.step_scalars ? *s.step_scalars : s.given;
  if (w.apply == 0) {
    return;
  }
  const C scale = static_cast<C>(w.multiplier), decay = s.rule.decay;
  const auto now = s.rule.now(w);
  for_each_vector<kVectorOf<T>>(s.span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    C p[kWidth], g[kWidth];
    load_parameters(s.arrays, at, p);
    load_as(s.arrays.grad + at, g);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g[i] *= scale;
      if (decay != 0) {
        g[i] += decay * p[i];
      }
    }
    s.rule.update(now, at, p, g);
    store_parameters(s.arrays, at, p, s.step_scalars ? static_cast<int64_t>(w.update) : -1);
  });
}

// a: arguments with param, master, grad and step_scalars; state: the arrays of the rule, or null.
template <class T, template <class> class Rule, class Args, class... S>
void launch_step(const char* name, void (*kernel)(Step<T, Rule>), const Args& a,
                 const Rule<Compute<T>>& rule, S*... state) {
  if (a.param.numel == 0) {
    return;
  }
  constexpr int kVector = kVectorOf<T>;
  const Arrays<T> own = arrays<T>(a.param, a.master, a.grad, a.low);
  const VectorSpan span = vector_span<kVector>(a.param.numel, own.param, own.master, own.grad,
                                               own.compensation, state...);
  launch({name, grid_blocks(span, kVector, kStepThreads), kStepThreads}, kernel,
         Step<T, Rule>{span, own, rule, step_scalars_of(a),
                       a.step_scalars.template as<RangeScalars>()});
}

}  // namespace binade::kernels::dev
