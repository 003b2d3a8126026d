// det and slogdet.
#include <binade/core/autograd/op.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/linalg/matrices_internal.h>
#include <binade/core/ops.h>

namespace binade::linalg {
namespace {

// One number per matrix, in a shape that multiplies the matrices.
Tensor for_matrices(const Tensor& numbers) { return unsqueeze(unsqueeze(numbers, -1), -1); }

// det(a) a^-T, computed without history; works for a singular a too.
Tensor cofactors(const Tensor& a) {
  const Tensor host = to_host(a);
  check_done(host::cofactors(batch(host)), "det", batch_of(a), "a matrix with NaN or infinities",
             "finite elements for its gradient");
  return from_host(host, a);
}

}  // namespace

Tensor det(const Tensor& a_, SourceLine where) {
  static constexpr Op kOp{"det", OpClass::reduction, true};
  const detail::HostSyncCall waits("det", where);
  auto [a] = kOp.enter(a_);
  check_square("det", a);
  const Tensor matrices = to_host(a), host = host_memory(batch_of(a), a);
  host::determinant(batch(matrices), nothing(host), vectors(unsqueeze(host, -1)), false);
  Tensor y = from_host(host, a);
  return kOp.record({a}, y, save(a, y),
                    [](const Tensor& dy, const Tensor& a, const Tensor& y) -> Grads {
                      const Tensor g = for_matrices(wide(dy));
                      if (!grad_enabled()) {
                        return {narrow_to(mul(g, cofactors(wide(a))), a)};
                      }
                      const Tensor scale = mul(g, for_matrices(wide(y)));
                      return {narrow_to(mul(scale, mt(inv(wide(a), {}))), a)};
                    });
}

SignLogDet slogdet(const Tensor& a_, SourceLine where) {
  static constexpr Op kOp{"slogdet", OpClass::reduction, true};
  const detail::HostSyncCall waits("slogdet", where);
  auto [a] = kOp.enter(a_);
  check_square("slogdet", a);
  const Tensor matrices = to_host(a), sign = host_memory(batch_of(a), a),
               logarithm = host_memory(batch_of(a), a);
  host::determinant(batch(matrices), vectors(unsqueeze(sign, -1)),
                    vectors(unsqueeze(logarithm, -1)), true);
  Tensor y = from_host(logarithm, a), s = from_host(sign, a);
  SignLogDet result;
  result.sign = kOp.plain({a}, s);
  result.logabsdet = kOp.record({a}, y, save(a), [](const Tensor& dy, const Tensor& a) -> Grads {
    return {narrow_to(mul(for_matrices(wide(dy)), mt(inv(wide(a), {}))), a)};
  });
  return result;
}

}  // namespace binade::linalg
