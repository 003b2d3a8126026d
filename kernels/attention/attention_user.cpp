// Attention by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/attention/attention.h>
#include <binade/kernels/attention/attention_internal.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade::kernels {
namespace {

const char* attention_refusal(const AttentionVisibility& visible, const AttentionDropout& dropout) {
  return visible.mask ? "a mask" : dropout.p > 0 ? "dropout" : nullptr;
}

}  // namespace

bool run_by_user(const AttentionForward& a) {
  if (!has_user_function(UserFunction::attention_forward, a.out.device)) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.out, &a.lse};
  binade_attention_forward_call arguments{};
  arguments.q = user_tensor(a.q);
  arguments.k = user_tensor(a.k);
  arguments.v = user_tensor(a.v);
  arguments.out = user_tensor(a.out);
  arguments.lse = user_tensor(a.lse);
  arguments.scale = a.scale;
  arguments.causal = a.visible.causal;
  if (a.k.numel == 0) {
    return false;
  }
  return run_user({.function = UserFunction::attention_forward,
                   .decisive = a.out,
                   .refused = attention_refusal(a.visible, a.dropout),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         attention_forward({.q = a.q,
                                            .k = a.k,
                                            .v = a.v,
                                            .out = out[0],
                                            .lse = out[1],
                                            .scale = a.scale,
                                            .visible = a.visible});
                       }},
                  arguments);
}

bool run_by_user(const AttentionBackward& a) {
  if (!has_user_function(UserFunction::attention_backward, a.q.device) || a.k.numel == 0) {
    return false;
  }
  checked_sizes(a);
  const View* outputs[] = {&a.dq, &a.dk, &a.dv};
  binade_attention_backward_call arguments{};
  arguments.q = user_tensor(a.q);
  arguments.k = user_tensor(a.k);
  arguments.v = user_tensor(a.v);
  arguments.out = user_tensor(a.out);
  arguments.lse = user_tensor(a.lse);
  arguments.dout = user_tensor(a.dout);
  arguments.dq = user_tensor(a.dq);
  arguments.dk = user_tensor(a.dk);
  arguments.dv = user_tensor(a.dv);
  arguments.scale = a.scale;
  arguments.causal = a.visible.causal;
  return run_user({.function = UserFunction::attention_backward,
                   .decisive = a.q,
                   .refused = attention_refusal(a.visible, a.dropout),
                   .outputs = outputs,
                   .own =
                       [&](std::span<const View> out) {
                         attention_backward({.q = a.q,
                                             .k = a.k,
                                             .v = a.v,
                                             .out = a.out,
                                             .lse = a.lse,
                                             .dout = a.dout,
                                             .dq = out[0],
                                             .dk = out[1],
                                             .dv = out[2],
                                             .dmask = kNoView,
                                             .scale = a.scale,
                                             .visible = a.visible});
                       }},
                  arguments);
}

}  // namespace binade::kernels
