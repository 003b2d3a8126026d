// Rows of linear algebra.
#include <binade/core/linalg/linalg.h>
#include <binade/core/tensor/create.h>

#include <cmath>

#include <tests/op_table/linalg_row.h>

namespace binade::op_table {
namespace {

OpRow with_right_side(OpRow row) {
  row.shapes = {{{3, 3}, {3, 2}},    {{2, 1, 4, 4}, {3, 4, 1}}, {{3, 3}, {2, 3, 2}},
                {{2, 3, 3}, {3, 2}}, {{0, 2, 2}, {2, 3}},       {{2, 2}, {2, 0}},
                {{0, 0}, {0, 3}},    {{3, 3}, {3, 3}}};
  row.large = {{250, 8, 8}, {250, 8, 2}};
  row.timed = {{1024, 8, 8}, {1024, 8, 2}};
  const auto op = row.function;
  add_errors(row, {fails("other rows",
                         [=] {
                           op({ones({3, 3}), ones({2, 2})});
                         }),
                   fails("batches that do not broadcast",
                         [=] {
                           op({ones({2, 3, 3}), ones({4, 3, 2})});
                         }),
                   fails("two dtypes", [=] {
                     op({ones({3, 3}), ones({3, 2}, DType::f64)});
                   })});
  return row;
}

OpRow solve_row() {
  OpRow row = with_right_side(matrix_row(
      "solve", Form::regular, [](const Tensors& x) { return Tensors{linalg::solve(x[0], x[1])}; },
      [](const Arrays& x) {
        return for_matrices(x, {{x[1].sizes[x[1].dim() - 2], x[1].sizes.back()}},
                            [](const auto& m) { return std::vector{solution(m[0], m[1])}; });
      }));
  add_not_square(row);
  add_errors(row, {fails("singular", [] { linalg::solve(ones({2, 2}), ones({2, 2})); })});
  return row;
}

OpRow triangular_row(bool upper) {
  OpRow row = with_right_side(matrix_row(
      "solve_triangular", Form::regular,
      [=](const Tensors& x) {
        return Tensors{linalg::solve_triangular(x[0], x[1], {.upper = upper})};
      },
      [=](const Arrays& x) {
        return for_matrices(x, {{x[1].sizes[x[1].dim() - 2], x[1].sizes.back()}},
                            [upper](std::vector<Matrix> m) {
                              for (int64_t i = 0; i < m[0].rows; ++i) {
                                for (int64_t j = 0; j < m[0].rows; ++j) {
                                  m[0](i, j) *= (upper ? j >= i : j <= i) ? 1 : 0;
                                }
                              }
                              return std::vector{solution(m[0], m[1])};
                            });
      }));
  row.attributes = upper ? "upper" : "lower";
  add_not_square(row);
  add_errors(row, {fails("singular", [] {
               linalg::solve_triangular(zeros({2, 2}), ones({2, 2}), {.upper = true});
             })});
  return row;
}

OpRow inv_row() {
  OpRow row = matrix_row(
      "inv", Form::regular, [](const Tensors& x) { return Tensors{linalg::inv(x[0])}; },
      [](const Arrays& x) {
        const int64_t n = x[0].sizes.back();
        return for_matrices({x[0]}, {{n, n}}, [n](const auto& m) {
          return std::vector{solution(m[0], identity(n))};
        });
      });
  add_not_square(row);
  add_errors(row, {fails("singular", [] { linalg::inv(ones({2, 2})); })});
  return row;
}

OpRow det_row() {
  OpRow row = matrix_row(
      "det", Form::regular, [](const Tensors& x) { return Tensors{linalg::det(x[0])}; },
      [](const Arrays& x) {
        return for_matrices({x[0]}, {Dims{}}, [](const auto& m) {
          return std::vector{Matrix{1, 1, {determinant(m[0])}}};
        });
      });
  add_not_square(row);
  return row;
}

OpRow slogdet_row() {
  OpRow row = matrix_row(
      "slogdet", Form::regular,
      [](const Tensors& x) {
        const linalg::SignLogDet y = linalg::slogdet(x[0]);
        return Tensors{y.logabsdet, y.sign};
      },
      [](const Arrays& x) {
        return for_matrices({x[0]}, {Dims{}, Dims{}}, [](const auto& m) {
          const double det = determinant(m[0]);
          return std::vector{Matrix{1, 1, {std::log(std::fabs(det))}},
                             Matrix{1, 1, {det < 0 ? -1.0 : 1.0}}};
        });
      });
  row.outputs_with_gradient = 1;
  add_not_square(row);
  return row;
}

OpRow cholesky_row() {
  OpRow row = matrix_row(
      "cholesky", Form::definite, [](const Tensors& x) { return Tensors{linalg::cholesky(x[0])}; },
      [](const Arrays& x) {
        const int64_t n = x[0].sizes.back();
        return for_matrices({x[0]}, {{n, n}},
                            [](const auto& m) { return std::vector{lower_factor(m[0])}; });
      });
  add_errors(row, {fails("not square",
                         [] {
                           linalg::cholesky(ones({2, 3}));
                         }),
                   fails("not definite", [] {
                     linalg::cholesky(ones({2, 2}));
                   })});
  return row;
}

// The factor r has a positive diagonal where the columns of q take its signs.
OpRow qr_row(const char* name, const std::vector<Shapes>& shapes) {
  OpRow row = matrix_row(
      "qr", Form::regular,
      [](const Tensors& x) {
        const auto [q, r] = linalg::qr(x[0]);
        const Tensor signs = sign(diagonal(r.detach(), 0, -2, -1));
        return Tensors{mul(q, unsqueeze(signs, -2)), mul(r, unsqueeze(signs, -1))};
      },
      [](const Arrays& x) {
        const int64_t m = x[0].sizes[x[0].dim() - 2], n = x[0].sizes.back(), k = std::min(m, n);
        return for_matrices({x[0]}, {{m, k}, {k, n}}, [=](const auto& a) {
          Matrix first{m, k};
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < k; ++j) {
              first(i, j) = a[0](i, j);
            }
          }
          const Matrix l = lower_factor(product(transposed(first), first));  // r^T of the first k
          const Matrix q = transposed(solution(l, transposed(first)));
          return std::vector{q, product(transposed(q), a[0])};
        });
      });
  row.attributes = name;
  row.shapes = shapes;
  add_errors(row, {fails("unknown mode", [] { linalg::qr(ones({2, 2}), "full"); })});
  return row;
}

// By the normal equations, with a step of refinement.
Matrix least_squares(const Matrix& a, const Matrix& b) {
  const Matrix t = transposed(a);
  const bool tall = a.rows >= a.columns;
  const Matrix normal = tall ? product(t, a) : product(a, t);
  const auto solved = [&](const Matrix& right) {
    return tall ? solution(normal, product(t, right)) : product(t, solution(normal, right));
  };
  Matrix x = solved(b), rest = b;
  const Matrix reached = product(a, x);
  for (size_t i = 0; i < rest.values.size(); ++i) {
    rest.values[i] -= reached.values[i];
  }
  const Matrix step = solved(rest);
  for (size_t i = 0; i < x.values.size(); ++i) {
    x.values[i] += step.values[i];
  }
  return x;
}

OpRow lstsq_row(const char* name, const std::vector<Shapes>& shapes) {
  OpRow row = matrix_row(
      "lstsq", Form::regular,
      [](const Tensors& x) { return Tensors{linalg::lstsq(x[0], x[1]).solution}; },
      [](const Arrays& x) {
        return for_matrices(x, {{x[0].sizes.back(), x[1].sizes.back()}},
                            [](const auto& m) { return std::vector{least_squares(m[0], m[1])}; });
      });
  row.attributes = name;
  row.shapes = shapes;
  row.large = {{250, 9, 8}, {250, 9, 2}};
  row.timed = {{1024, 9, 8}, {1024, 9, 2}};
  add_errors(row, {fails("other rows", [] { linalg::lstsq(ones({3, 2}), ones({2, 2})); })});
  return row;
}

}  // namespace

std::vector<OpRow> linalg_rows() {
  if (!linalg::is_available()) {
    return {};
  }
  const std::vector<Shapes> tall = {{{3, 3}}, {{2, 4, 2}}, {{3, 0}}},
                            wide = {{{2, 3}}, {{2, 1, 2, 4}}, {{0, 2}}};
  std::vector<OpRow> rows = {
      solve_row(),
      triangular_row(true),
      triangular_row(false),
      inv_row(),
      det_row(),
      slogdet_row(),
      cholesky_row(),
      qr_row("tall", tall),
      qr_row("wide", wide),
      lstsq_row("tall", {{{4, 2}, {4, 3}}, {{2, 3, 2}, {3, 1}}, {{0, 2}, {0, 1}}}),
      lstsq_row("wide", {{{2, 4}, {2, 3}}, {{2, 3}, {2, 2, 1}}})};
  for (const auto& more : {spectral_rows(), matrix_norm_rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace binade::op_table
