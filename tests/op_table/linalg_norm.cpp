// Rows of matrix norms.
#include <binade/core/linalg/linalg.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

#include <tests/op_table/linalg_row.h>

namespace binade::op_table {
namespace {

OpRow frobenius_row() {
  OpRow row = matrix_row(
      "matrix_norm", Form::plain,
      [](const Tensors& x) {
        return Tensors{linalg::matrix_norm(x[0], "fro", {.row = 0, .column = -1})};
      },
      [](const Arrays& x) {
        Dims sizes(std::span(x[0].sizes.begin() + 1, static_cast<size_t>(x[0].dim() - 2)));
        return Arrays{generate(sizes, [&](const Dims& at) {
          double sum = 0;
          Dims index{0};
          for (int64_t size : at) {
            index.push_back(size);
          }
          index.push_back(0);
          for (int64_t i = 0; i < x[0].sizes[0]; ++i) {
            for (int64_t j = 0; j < x[0].sizes.back(); ++j) {
              index[0] = i;
              index[index.size() - 1] = j;
              sum += x[0].at(index) * x[0].at(index);
            }
          }
          return std::sqrt(sum);
        })};
      });
  row.attributes = "fro";
  row.domains = {{.avoid = {0}}};
  row.shapes = {{{3, 4}}, {{2, 3, 4}}, {{0, 3}}, {{1, 1}}};
  add_errors(row, {fails("unknown order",
                         [] {
                           linalg::matrix_norm(ones({2, 2}), "two");
                         }),
                   fails("one dimension for both", [] {
                     linalg::matrix_norm(ones({2, 2}), "fro", {.row = 1});
                   })});
  return row;
}

OpRow norm_row(double order) {
  const bool of_columns = std::fabs(order) == 1;
  OpRow row = matrix_row(
      "matrix_norm", Form::spread,
      [=](const Tensors& x) { return Tensors{linalg::matrix_norm(x[0], order)}; },
      [=](const Arrays& x) {
        return for_matrices({x[0]}, {Dims{}}, [=](const auto& m) {
          const Matrix a = of_columns ? transposed(m[0]) : m[0];
          std::vector<double> all;
          for (int64_t i = 0; i < a.rows; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < a.columns; ++j) {
              sum += std::fabs(a(i, j));
            }
            all.push_back(sum);
          }
          const double largest = all.empty() ? 0 : *std::max_element(all.begin(), all.end());
          const double value = std::fabs(order) == 2 ? (a.rows ? thin_svd(a).s(0, 0) : 0) : largest;
          return std::vector{Matrix{1, 1, {value}}};
        });
      });
  row.attributes = text(order);
  row.number = true;
  row.domains = {{.low = 0.25, .high = 1}};
  add_errors(row, {fails("unknown order",
                         [] {
                           linalg::matrix_norm(ones({2, 2}), 3);
                         }),
                   fails("smallest of nothing", [] {
                     linalg::matrix_norm(ones({0, 0}), -2);
                   })});
  return row;
}

}  // namespace

std::vector<OpRow> matrix_norm_rows() {
  return {frobenius_row(), norm_row(1), norm_row(2), norm_row(INFINITY)};
}

}  // namespace binade::op_table
