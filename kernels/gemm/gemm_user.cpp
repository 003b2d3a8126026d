// Matrix products by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/gemm/user_epilogue_internal.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade::kernels {

const char* user_epilogue_refusal(const Epilogue& epilogue) {
  return epilogue.scale || epilogue.residual || epilogue.factor || epilogue.slope
             ? "a product with a factor, a slope, a scale or a residual"
             : nullptr;
}

void apply_user_epilogue(const Epilogue& epilogue, const View& bias, const View& sums,
                         const View& y) {
  if (epilogue.accumulate) {
    add_into({.x = sums, .y = y});
  }
  if (bias) {
    binary_forward({.op = Binary::add, .a = y, .b = bias, .y = y});
  }
  switch (epilogue.activation) {
    case Activation::none: return;
    case Activation::relu: return unary_forward({.op = Unary::relu, .x = y, .y = y});
    case Activation::gelu: return unary_forward({.op = Unary::gelu, .x = y, .y = y});
    case Activation::gelu_tanh: return unary_forward({.op = Unary::gelu_tanh, .x = y, .y = y});
  }
}

namespace {

// A matrix as a batch of one.
View in_batch(View v) {
  if (v.dim() == 2) {
    const Dims sizes{1, v.sizes[0], v.sizes[1]}, strides{0, v.strides[0], v.strides[1]};
    View batch = view_of(v.data, v.dtype, sizes, strides);
    batch.device = v.device;
    return batch;
  }
  return v;
}

View dense_like(const View& y, const Workspace& memory) {
  View view = view_of(memory.as<void>(), y.dtype, y.sizes);
  view.device = y.device;
  return view;
}

}  // namespace

bool run_by_user(const Gemm& g) {
  if (!has_user_function(UserFunction::gemm, g.y.device)) {
    return false;
  }
  check_arguments(g);
  if (g.a.numel == 0 || g.b.numel == 0) {
    return false;
  }
  const bool adds = g.epilogue.accumulate;
  const Workspace memory(adds ? static_cast<size_t>(g.y.numel) * size_of(g.y.dtype) : 1,
                         g.y.device);
  const View sums = adds ? dense_like(g.y, memory) : g.y;
  const View* outputs[] = {&sums};
  const bool done =
      run_user({.function = UserFunction::gemm,
                .decisive = g.y,
                .refused = user_epilogue_refusal(g.epilogue),
                .outputs = outputs,
                .own = [&](std::span<const View> out) { gemm({.a = g.a, .b = g.b, .y = out[0]}); }},
               binade_gemm_call{user_tensor(in_batch(g.a)), user_tensor(in_batch(g.b)),
                                user_tensor(in_batch(sums))});
  if (done) {
    apply_user_epilogue(g.epilogue, g.epilogue.bias, sums, g.y);
  }
  return done;
}

}  // namespace binade::kernels
