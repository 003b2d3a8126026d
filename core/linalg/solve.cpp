// solve, solve_triangular, inv and lstsq. Their backward uses these functions again.
#include <binade/core/autograd/op.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/linalg/matrices_internal.h>
#include <binade/core/ops.h>

#include <algorithm>
#include <utility>

namespace binade::linalg {
namespace {

// a on the host: a single matrix if a holds only one, else broadcast to the batch.
Tensor factor_to_host(const Tensor& a, const Dims& batch) {
  if (element_count(batch_of(a)) == 1) {
    return to_host(a, {a.size(-2), a.size(-1)});
  }
  Dims sizes = batch;
  sizes.push_back(a.size(-2));
  sizes.push_back(a.size(-1));
  return to_host(a, sizes);
}

Dims with_matrix(Dims batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

// True if b has a vector for each matrix a, by PyTorch's rule.
bool is_vectors(const Tensor& a, const Tensor& b) {
  const Dims without_last = a.defined() && a.dim() >= 2
                                ? Dims(std::span(a.sizes().begin(), size_t(a.dim() - 1)))
                                : Dims();
  return b.defined() && (b.dim() == 1 || (a.defined() && b.sizes() == without_last));
}

// x of a x = b: a [.., n, n], b [.., n, k].
Tensor solve_matrices(const Tensor& a_, const Tensor& b_) {
  static constexpr Op kOp{"solve", OpClass::reduction, true};
  auto [a, b] = kOp.enter(a_, b_);
  check_square("solve", a);
  check_operands("solve", a, b);
  const Dims batch_sizes = broadcast_sizes("solve", batch_of(a), batch_of(b));
  const Tensor factor = factor_to_host(a, batch_sizes);
  const Tensor host = to_host(b, with_matrix(batch_sizes, b.size(-2), b.size(-1)));
  check_done(host::solve(batch(factor), batch(host)), "solve",
             factor.dim() == 2 ? batch_of(a) : batch_sizes, "a singular matrix",
             "an invertible one; lstsq solves such systems");
  Tensor x = from_host(host, b);
  return kOp.record({a, b}, x, save(a, x),
                    [](const Tensor& dx, Needs needs, const Tensor& a, const Tensor& x) -> Grads {
                      const Tensor db = solve_matrices(mt(wide(a)), wide(dx));  // da = -db x^T
                      return {needs[0] ? narrow_to(neg(matmul(db, mt(wide(x)))), a) : Tensor(),
                              needs[1] ? narrow_to(db, a) : Tensor()};
                    });
}

// The same with a triangle of a.
Tensor solve_triangle(const Tensor& a_, const Tensor& b_, bool upper, bool unitriangular) {
  static constexpr Op kOp{"solve_triangular", OpClass::reduction, true};
  auto [a, b] = kOp.enter(a_, b_);
  check_square("solve_triangular", a);
  check_operands("solve_triangular", a, b);
  const Dims batch_sizes = broadcast_sizes("solve_triangular", batch_of(a), batch_of(b));
  const Tensor factor = factor_to_host(a, batch_sizes);
  const Tensor host = to_host(b, with_matrix(batch_sizes, b.size(-2), b.size(-1)));
  check_done(host::solve_triangular(batch(factor), batch(host), upper, unitriangular),
             "solve_triangular", factor.dim() == 2 ? batch_of(a) : batch_sizes,
             "a matrix with a 0 on its diagonal", "an invertible one");
  Tensor x = from_host(host, b);
  return kOp.record({a, b}, x, save(a, x),
                    [upper, unitriangular](const Tensor& dx, Needs needs, const Tensor& a,
                                           const Tensor& x) -> Grads {
                      const Tensor db =
                          solve_triangle(mt(wide(a)), wide(dx), !upper, unitriangular);
                      Tensor da;
                      if (needs[0]) {
                        const Tensor full = neg(matmul(db, mt(wide(x))));
                        const int64_t diagonal = unitriangular ? 1 : 0;
                        da = narrow_to(upper ? triu(full, diagonal) : tril(full, -diagonal), a);
                      }
                      return {da, needs[1] ? narrow_to(db, a) : Tensor()};
                    });
}

// The x of least norm; `rank` receives the ranks of a.
Tensor least_squares(const Tensor& a_, const Tensor& b_, double rcond, Tensor& rank) {
  static constexpr Op kOp{"lstsq", OpClass::reduction, true};
  auto [a, b] = kOp.enter(a_, b_);
  check_matrices("lstsq", a);
  check_operands("lstsq", a, b);
  const int64_t m = a.size(-2), n = a.size(-1), k = b.size(-1);
  const Dims batch_sizes = broadcast_sizes("lstsq", batch_of(a), batch_of(b));
  const Tensor factor = to_host(a, with_matrix(batch_sizes, m, n)),
               right = to_host(b, with_matrix(batch_sizes, m, k)),
               host = host_memory(with_matrix(batch_sizes, n, k), a);
  rank = empty(batch_sizes, DType::i64);
  const double least =
      rcond >= 0 ? rcond : epsilon(factor.dtype()) * static_cast<double>(std::max(m, n));
  check_done(host::lstsq(batch(factor), batch(right), batch(host), rank.data<int64_t>(), least),
             "lstsq", batch_sizes, "a matrix with NaN or infinities", "finite elements");
  Tensor x = from_host(host, a);
  return kOp.record(
      {a, b}, x, save(a, b, x),
      [rcond](const Tensor& dx_, Needs needs, const Tensor& a_, const Tensor& b_,
              const Tensor& x_) -> Grads {
        const Tensor a = wide(a_), b = wide(b_), dx = wide(dx_);
        Tensor ranks;
        const Tensor z = least_squares(mt(a), dx, rcond, ranks);  // db = a+^T dx
        Tensor da;
        if (needs[0]) {  // Golub and Pereyra, 1973
          const Tensor x = is_half(x_.dtype()) ? least_squares(a, b, rcond, ranks) : x_;
          const Tensor residual = sub(b, matmul(a, x));
          const Tensor along = least_squares(a, z, rcond, ranks);
          const Tensor across = least_squares(mt(a), x, rcond, ranks);
          da = add(sub(matmul(residual, mt(along)), matmul(z, mt(x))),
                   matmul(across, mt(sub(dx, matmul(mt(a), z)))));
        }
        return {da.defined() ? narrow_to(da, a_) : da, needs[1] ? narrow_to(z, b_) : Tensor()};
      });
}

// |a x - b|^2 of each column, where every rank is n < m.
Tensor residuals_of(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& rank) {
  const int64_t n = a.size(-1);
  const int64_t* ranks = rank.data<int64_t>();
  const bool full = std::all_of(ranks, ranks + rank.numel(), [n](int64_t r) { return r == n; });
  if (a.size(-2) <= n || !full) {
    return empty({0}, x.dtype(), x.device());
  }
  // No policy acts on these steps: it has acted on a, b and x already.
  struct NoPolicy {
    const PrecisionScope* before = std::exchange(detail::thread_state.precision, nullptr);
    ~NoPolicy() { detail::thread_state.precision = before; }
  } no_policy;
  const Tensor off = sub(matmul(wide(a), wide(x)), wide(b));
  return cast(sum(mul(off, off), {-2}), x.dtype());
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b, const SolveOptions& options, SourceLine where) {
  const detail::HostSyncCall waits("solve", where);
  check_square("solve", a);
  check(b.defined(), "solve: got an undefined b, expected [..., n, k] or [..., n]");
  if (is_vectors(a, b)) {
    const Tensor x = solve_matrices(options.left ? a : mt(a), unsqueeze(b, -1));
    return squeeze(x, -1);
  }
  check_matrices("solve", b);
  return options.left ? solve_matrices(a, b) : mt(solve_matrices(mt(a), mt(b)));
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options,
                        SourceLine where) {
  const detail::HostSyncCall waits("solve_triangular", where);
  const auto [upper, left, unitriangular] = options;
  if (left) {
    return solve_triangle(a, b, upper, unitriangular);
  }
  check_square("solve_triangular", a);
  check_matrices("solve_triangular", b);
  return mt(solve_triangle(mt(a), mt(b), !upper, unitriangular));
}

Tensor inv(const Tensor& a_, SourceLine where) {
  static constexpr Op kOp{"inv", OpClass::reduction, true};
  const detail::HostSyncCall waits("inv", where);
  auto [a] = kOp.enter(a_);
  check_square("inv", a);
  const Tensor host = to_host(a);
  check_done(host::invert(batch(host)), "inv", batch_of(a), "a singular matrix",
             "an invertible one");
  Tensor y = from_host(host, a);
  return kOp.record({a}, y, save(a, y),
                    [](const Tensor& dy, const Tensor& a, const Tensor& y) -> Grads {
                      const Tensor t = mt(is_half(a.dtype()) ? inv(wide(a), {}) : y);
                      return {narrow_to(neg(matmul(matmul(t, wide(dy)), t)), a)};
                    });
}

Lstsq lstsq(const Tensor& a, const Tensor& b, const LstsqOptions& options, SourceLine where) {
  const detail::HostSyncCall waits("lstsq", where);
  check_matrices("lstsq", a);
  check(b.defined(), "lstsq: got an undefined b, expected [..., m, k] or [..., m]");
  check(options.rcond == options.rcond, "lstsq: got rcond = nan, expected a number");
  const bool vectors = is_vectors(a, b);
  const Tensor right = vectors ? unsqueeze(b, -1) : b;
  Lstsq result;
  const Tensor x = least_squares(a, right, options.rcond, result.rank);
  result.residuals = residuals_of(a, right, x, result.rank);
  result.rank = to_device(result.rank, x.device());
  result.solution = vectors ? squeeze(x, -1) : x;
  if (vectors && result.residuals.dim() > 0 && result.residuals.sizes() != Dims{0}) {
    result.residuals = squeeze(result.residuals, -1);
  }
  return result;
}

}  // namespace binade::linalg
