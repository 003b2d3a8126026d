// Rows of singular values, pseudoinverses, eigenvalues and their vectors, which are squared, since
// their signs are arbitrary.
#include <binade/core/linalg/linalg.h>
#include <binade/core/tensor/create.h>

#include <cmath>

#include <tests/op_table/linalg_row.h>

namespace binade::op_table {
namespace {

OpRow svd_row(const char* name, const std::vector<Shapes>& shapes) {
  OpRow row = matrix_row(
      "svd", Form::spread,
      [](const Tensors& x) {
        const auto [u, s, vh] = linalg::svd(x[0], false);
        return Tensors{mul(u, u), s, mul(vh, vh)};
      },
      [](const Arrays& x) {
        const int64_t m = x[0].sizes[x[0].dim() - 2], n = x[0].sizes.back(), k = std::min(m, n);
        return for_matrices({x[0]}, {{m, k}, {k}, {k, n}}, [](const auto& a) {
          const Factors f = thin_svd(a[0]);
          return std::vector{squared(f.u), f.s, squared(f.vh)};
        });
      });
  row.attributes = name;
  row.shapes = shapes;
  add_errors(row, {fails("NaN", [] { linalg::svd(full({2, 2}, NAN)); })});
  return row;
}

Arrays singular_values(const Arrays& x) {
  const int64_t m = x[0].sizes[x[0].dim() - 2], n = x[0].sizes.back();
  return for_matrices({x[0]}, {{std::min(m, n)}},
                      [](const auto& a) { return std::vector{thin_svd(a[0]).s}; });
}

OpRow svdvals_row() {
  OpRow row = matrix_row(
      "svdvals", Form::spread, [](const Tensors& x) { return Tensors{linalg::svdvals(x[0])}; },
      singular_values);
  row.shapes.push_back({{2, 5, 3}});
  row.shapes.push_back({{2, 4}});
  return row;
}

OpRow pinv_row(const char* name, const std::vector<Shapes>& shapes) {
  OpRow row = matrix_row(
      "pinv", Form::spread, [](const Tensors& x) { return Tensors{linalg::pinv(x[0])}; },
      [](const Arrays& x) {
        const int64_t m = x[0].sizes[x[0].dim() - 2], n = x[0].sizes.back();
        return for_matrices({x[0]}, {{n, m}}, [](const auto& a) {
          const Factors f = thin_svd(a[0]);
          Matrix v = transposed(f.vh);
          for (int64_t i = 0; i < v.rows; ++i) {
            for (int64_t j = 0; j < v.columns; ++j) {
              v(i, j) /= f.s(j, 0);
            }
          }
          return std::vector{product(v, transposed(f.u))};
        });
      });
  row.attributes = name;
  row.shapes = shapes;
  add_errors(row, {fails("infinities",
                         [] {
                           linalg::pinv(full({2, 3}, INFINITY));
                         }),
                   fails("rcond that is not a number", [] {
                     linalg::pinv(ones({2, 3}), {.rcond = NAN});
                   })});
  return row;
}

// Eigenvalues and squared eigenvectors of a positive definite matrix by its singular values.
Arrays eigenvectors(const Arrays& x) {
  const int64_t n = x[0].sizes.back();
  return for_matrices({x[0]}, {{n}, {n, n}}, [n](const auto& a) {
    const Factors f = thin_svd(a[0]);
    Matrix values{n, 1}, columns{n, n};
    for (int64_t j = 0; j < n; ++j) {
      values(j, 0) = f.s(n - 1 - j, 0);
      for (int64_t i = 0; i < n; ++i) {
        columns(i, j) = f.u(i, n - 1 - j);
      }
    }
    return std::vector{values, squared(columns)};
  });
}

Tensor even(const Tensor& x) {
  const NoPolicy no_policy;
  return x.defined() && is_floating(x.dtype()) && x.dim() >= 2 && x.size(-1) == x.size(-2)
             ? mul(add(x, x.transpose(-1, -2)), 0.5)
             : x;
}
Array even(const Array& x) {
  Array y = formed(Form::definite, x);
  const int rank = x.dim();
  int64_t position = 0;
  for_each(x.sizes, [&](const Dims& at) {
    y.values[static_cast<size_t>(position++)] -= at[rank - 1] == at[rank - 2] ? 6 : 0;
  });
  return y;
}

OpRow eigh_row() {
  OpRow row = matrix_row(
      "eigh", Form::spread,
      [](const Tensors& x) {
        const auto [l, v] = linalg::eigh(even(x[0]));
        return Tensors{l, mul(v, v)};
      },
      [](const Arrays& x) { return eigenvectors({even(x[0])}); });
  add_errors(row, {fails("not square",
                         [] {
                           linalg::eigh(ones({2, 3}));
                         }),
                   fails("unknown triangle", [] {
                     linalg::eigh(ones({2, 2}), "lower");
                   })});
  return row;
}

OpRow eigvalsh_row() {
  OpRow row = matrix_row(
      "eigvalsh", Form::spread,
      [](const Tensors& x) { return Tensors{linalg::eigvalsh(even(x[0]))}; },
      [](const Arrays& x) { return Arrays{eigenvectors({even(x[0])})[0]}; });
  add_errors(row, {fails("not square", [] { linalg::eigvalsh(ones({2, 3})); })});
  return row;
}

}  // namespace

std::vector<OpRow> spectral_rows() {
  const std::vector<Shapes> tall = {{{3, 3}}, {{2, 4, 2}}, {{3, 0}}},
                            wide = {{{2, 3}}, {{2, 1, 2, 4}}, {{0, 2}}};
  return {svd_row("tall", tall), svd_row("wide", wide),  svdvals_row(),         eigh_row(),
          eigvalsh_row(),        pinv_row("tall", tall), pinv_row("wide", wide)};
}

}  // namespace binade::op_table
