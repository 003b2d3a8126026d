// References of linear algebra, and what its rows share.
#include <binade/core/tensor/create.h>

#include <cmath>
#include <numeric>

#include <tests/op_table/linalg_row.h>

namespace binade::op_table {
namespace {

// Gauss and Jordan with row exchanges: a becomes the identity, b the solution. The determinant.
double eliminate(Matrix a, Matrix& b) {
  double det = 1;
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < a.rows; ++i) {
      pivot = std::fabs(a(i, k)) > std::fabs(a(pivot, k)) ? i : pivot;
    }
    det *= pivot == k ? a(k, k) : -a(pivot, k);
    for (Matrix* m : {&a, &b}) {
      for (int64_t j = 0; j < m->columns && pivot != k; ++j) {
        std::swap((*m)(k, j), (*m)(pivot, j));
      }
    }
    for (int64_t i = 0; i < a.rows; ++i) {
      const double factor = i == k ? 1 - 1 / a(k, k) : a(i, k) / a(k, k);
      for (Matrix* m : {&a, &b}) {
        for (int64_t j = 0; j < m->columns; ++j) {
          (*m)(i, j) -= factor * (*m)(k, j);
        }
      }
    }
  }
  return det;
}

// Rotates pairs of columns of a, and of v with them, until the columns of a are orthogonal
// (Hestenes, 1958).
void orthogonalize(Matrix& a, Matrix& v) {
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (int64_t p = 0; p < a.columns; ++p) {
      for (int64_t q = p + 1; q < a.columns; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < a.rows; ++i) {
          pp += a(i, p) * a(i, p);
          qq += a(i, q) * a(i, q);
          pq += a(i, p) * a(i, q);
        }
        const double angle = 0.5 * std::atan2(2 * pq, pp - qq);
        const double c = std::cos(angle), s = std::sin(angle);
        for (Matrix* m : {&a, &v}) {
          for (int64_t i = 0; i < m->rows; ++i) {
            const double x = (*m)(i, p), y = (*m)(i, q);
            (*m)(i, p) = c * x + s * y;
            (*m)(i, q) = c * y - s * x;
          }
        }
      }
    }
  }
}

// The thin factors of a with at least as many rows as columns.
Factors tall_svd(Matrix a) {
  Matrix v = identity(a.columns);
  orthogonalize(a, v);
  std::vector<double> norms(static_cast<size_t>(a.columns));
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      norms[static_cast<size_t>(j)] = std::hypot(norms[static_cast<size_t>(j)], a(i, j));
    }
  }
  std::vector<int64_t> order(norms.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
    return norms[static_cast<size_t>(x)] > norms[static_cast<size_t>(y)];
  });
  Factors f{Matrix{a.rows, a.columns}, Matrix{a.columns, 1}, Matrix{a.columns, a.columns}};
  for (int64_t j = 0; j < a.columns; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    f.s(j, 0) = norms[static_cast<size_t>(from)];
    for (int64_t i = 0; i < a.rows; ++i) {
      f.u(i, j) = a(i, from) / f.s(j, 0);
    }
    for (int64_t i = 0; i < a.columns; ++i) {
      f.vh(j, i) = v(i, from);
    }
  }
  return f;
}

Dims batch_of(const Dims& sizes) {
  return Dims(std::span(sizes.begin(), static_cast<size_t>(sizes.size() - 2)));
}

double shift_of(Form form, int64_t i) {
  return form == Form::plain ? 0 : form == Form::spread ? 4.0 * static_cast<double>(i + 1) : 6;
}

}  // namespace

Matrix transposed(const Matrix& a) {
  Matrix t{a.columns, a.rows};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      t(j, i) = a(i, j);
    }
  }
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y{a.rows, b.columns};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) {
        y(i, j) += a(i, k) * b(k, j);
      }
    }
  }
  return y;
}

Matrix squared(Matrix a) {
  for (double& x : a.values) {
    x *= x;
  }
  return a;
}

Matrix identity(int64_t n) {
  Matrix y{n, n};
  for (int64_t i = 0; i < n; ++i) {
    y(i, i) = 1;
  }
  return y;
}

Matrix solution(const Matrix& a, Matrix b) {
  eliminate(a, b);
  return b;
}

double determinant(const Matrix& a) {
  Matrix nothing{a.rows, 0};
  return eliminate(a, nothing);
}

Matrix lower_factor(const Matrix& a) {
  Matrix l{a.rows, a.rows};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) {
        sum -= l(i, k) * l(j, k);
      }
      l(i, j) = i == j ? std::sqrt(sum) : sum / l(j, j);
    }
  }
  return l;
}

Factors thin_svd(const Matrix& a) {
  if (a.rows >= a.columns) {
    return tall_svd(a);
  }
  const Factors t = tall_svd(transposed(a));
  return {transposed(t.vh), t.s, transposed(t.u)};
}

Arrays for_matrices(const Arrays& inputs, const std::vector<Dims>& shapes,
                    const std::function<std::vector<Matrix>(const std::vector<Matrix>&)>& f) {
  Dims batch = batch_of(inputs[0].sizes);
  for (const Array& x : inputs) {
    batch = broadcast(batch, batch_of(x.sizes));
  }
  Arrays results;
  for (const Dims& shape : shapes) {
    Array y{batch, {}};
    for (int64_t size : shape) {
      y.sizes.push_back(size);
    }
    results.push_back(y);
  }
  for_each(batch, [&](const Dims& at) {
    std::vector<Matrix> matrices;
    for (const Array& x : inputs) {
      Matrix m{x.sizes[x.dim() - 2], x.sizes[x.dim() - 1]};
      for (int64_t i = 0; i < m.rows; ++i) {
        for (int64_t j = 0; j < m.columns; ++j) {
          Dims index = at;
          index.push_back(i);
          index.push_back(j);
          m(i, j) = x.at(index);
        }
      }
      matrices.push_back(m);
    }
    const std::vector<Matrix> ys = f(matrices);
    for (size_t k = 0; k < ys.size(); ++k) {
      results[k].values.insert(results[k].values.end(), ys[k].values.begin(), ys[k].values.end());
    }
  });
  return results;
}

Array formed(Form form, const Array& x) {
  Array y = x;
  const int rank = x.dim();
  int64_t position = 0;
  for_each(x.sizes, [&](const Dims& at) {
    Dims mirrored = at;
    std::swap(mirrored[rank - 1], mirrored[rank - 2]);
    double& value = y.values[static_cast<size_t>(position++)];
    value = form == Form::definite ? (x.at(at) + x.at(mirrored)) / 2 : value;
    value += at[rank - 1] == at[rank - 2] ? shift_of(form, at[rank - 1]) : 0;
  });
  return y;
}

Tensor formed(Form form, const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype()) || x.dim() < 2 || form == Form::plain) {
    return x;
  }
  const NoPolicy no_policy;
  const int64_t m = x.size(-2), n = x.size(-1);
  if (form == Form::definite && m != n) {
    return x;  // for the op to refuse
  }
  std::vector<double> shifts(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < std::min(m, n); ++i) {
    shifts[static_cast<size_t>(i * n + i)] = shift_of(form, i);
  }
  const Tensor even = form == Form::definite ? mul(add(x, x.transpose(-1, -2)), 0.5) : x;
  return add(even, from_values(shifts, {m, n}, x.dtype(), x.device()));
}

OpRow matrix_row(const char* name, Form form, const std::function<Tensors(const Tensors&)>& op,
                 const std::function<Arrays(const Arrays&)>& reference) {
  OpRow row;
  row.name = name;
  row.shapes = {{{3, 3}}, {{2, 1, 4, 4}}, {{1, 1}}, {{0, 2, 2}}, {{2, 0, 0}}};
  row.domains = {{.low = -1, .high = 1}, {.low = -2, .high = 2}};
  row.function = [=](const Tensors& x) {
    Tensors all = x;
    all[0] = formed(form, x[0]);
    return op(all);
  };
  row.reference = [=](const Arrays& x) {
    Arrays all = x;
    all[0] = formed(form, x[0]);
    return reference(all);
  };
  row.accuracy = Accuracy::sums;
  row.many_zeros = true;
  row.large = {{250, 8, 8}};
  row.timed = {{1024, 8, 8}};
  row.errors = {fails("undefined input",
                      [=] {
                        op({Tensor(), ones({2, 2})});
                      }),
                fails("integers",
                      [=] {
                        op({zeros({2, 2}, DType::i64), ones({2, 2})});
                      }),
                fails("a vector", [=] {
                  op({ones({2}), ones({2, 2})});
                })};
  return row;
}

void add_not_square(OpRow& row) {
  const auto op = row.function;
  add_errors(row, {fails("not square", [=] { op({ones({2, 3}), ones({2, 2})}); })});
}

}  // namespace binade::op_table
