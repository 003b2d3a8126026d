// Cosine similarity against a naive f64 reference.
#include <binade/kernels/reduce/cosine_similarity.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::cosine_similarity_test {
namespace {

struct Case {
  DType dtype;
  Dims sizes;
  int dim;
  double eps;
  ArrayLayout layout;
  double scale1 = 1, scale2 = 1;  // scales of the operands
};

void check_case(const Case& c) {
  const DType compute = compute_dtype(c.dtype);
  const auto count = static_cast<size_t>(element_count(c.sizes));
  Dims kept;
  size_t outer = 1, inner = 1;
  for (int d = 0; d < c.sizes.size(); ++d) {
    if (d != c.dim) {
      kept.push_back(c.sizes[d]);
      (d < c.dim ? outer : inner) *= static_cast<size_t>(c.sizes[d]);
    }
  }
  const size_t lines = outer * inner, length = static_cast<size_t>(c.sizes[c.dim]);
  StridedArray a = make_array(c.dtype, c.sizes, random_values(count, 1, 0, c.scale1),
                              c.layout.order, c.layout.gap);
  StridedArray b = make_array(c.dtype, c.sizes, random_values(count, 2, 0, c.scale2));
  StridedArray da(c.dtype, c.sizes), db(c.dtype, c.sizes, c.layout.order, c.layout.gap);
  StridedArray y(compute, kept), inverse1(compute, kept), inverse2(compute, kept);
  StridedArray dy = make_array(compute, kept, random_values(lines, 3));
  cosine_similarity_forward({.x1 = a.view(),
                             .x2 = b.view(),
                             .y = y.view(),
                             .inverse1 = inverse1.view(),
                             .inverse2 = inverse2.view(),
                             .dim = c.dim,
                             .eps = c.eps});
  cosine_similarity_backward({.x1 = a.view(),
                              .x2 = b.view(),
                              .y = y.view(),
                              .inverse1 = inverse1.view(),
                              .inverse2 = inverse2.view(),
                              .dy = dy.view(),
                              .dx1 = da.view(),
                              .dx2 = db.view(),
                              .dim = c.dim});
  const Values as = values_of(a), bs = values_of(b), up = values_of(dy);
  Values want, want_da(count), want_db(count);
  for (size_t line = 0; line < lines; ++line) {
    const size_t start = line / inner * length * inner + line % inner;
    double product = 0, square1 = 0, square2 = 0;
    for (size_t i = start; i < start + length * inner; i += inner) {
      product += as[i] * bs[i];
      square1 += as[i] * as[i];
      square2 += bs[i] * bs[i];
    }
    const double n1 = std::max(std::sqrt(square1), c.eps), n2 = std::max(std::sqrt(square2), c.eps);
    const double cosine = product / (n1 * n2);
    want.push_back(cosine);
    for (size_t i = start; i < start + length * inner; i += inner) {
      const double along1 = std::sqrt(square1) < c.eps ? 0 : cosine * as[i] / (n1 * n1);
      const double along2 = std::sqrt(square2) < c.eps ? 0 : cosine * bs[i] / (n2 * n2);
      want_da[i] = up[line] * (bs[i] / (n1 * n2) - along1);
      want_db[i] = up[line] * (as[i] / (n1 * n2) - along2);
    }
  }
  const std::string what = to_string(c.sizes) + " dim " + std::to_string(c.dim) + " " +
                           c.layout.name + " eps " + std::to_string(c.eps);
  const double units = 8 + std::sqrt(static_cast<double>(length)) / 4;
  expect_close(y, compute, want, units, what, 1);
  expect_close(da, c.dtype, want_da, units, what + " d x1", 1 / c.scale1);
  expect_close(db, c.dtype, want_db, units, what + " d x2", 1 / c.scale2);
}

TEST(CosineSimilarity, MatchesReference) {
  for (const DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      for (int dim = 0; dim < 4; ++dim) {
        check_case({dtype, {3, 5, 4, 7}, dim, 1e-8, layout});
      }
    }
    check_case({dtype, {5, 33}, 1, 5, {"row-major", {}, 0}});
    check_case({dtype, {1}, 0, 1e-8, {"one", {}, 0}});
    check_case({dtype, {0, 3}, 1, 1e-8, {"no lines", {}, 0}});
    check_case({dtype, {3, 0}, 1, 1e-8, {"empty lines", {}, 0}});
    check_case({dtype, {2, 2500}, 1, 1e-8, {"row-major", {}, 0}});
    check_case({dtype, {300, 3}, 0, 1e-8, {"row-major", {}, 0}});
  }
}

TEST(CosineSimilarity, SquaresDoNotLeaveTheRange) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const ArrayLayout& layout :
         {ArrayLayout{"row-major", {}, 0}, ArrayLayout{"transposed", {1, 0}, 0}}) {
      for (int64_t cols : {3, 37, 3000}) {
        check_case({dtype, {4, cols}, 1, 1e-8, layout, 1e25, 1e24});
        check_case({dtype, {4, cols}, 1, 1e-8, layout, 1e25, 1e-3});
        check_case({dtype, {4, cols}, 1, 1e-34, layout, 1e-25, 1e-20});
      }
    }
  }
}

TEST(CosineSimilarity, OneGradientAndRepeatedOperand) {
  StridedArray a = make_array(DType::f32, {3, 4}, random_values(12, 1));
  StridedArray b = make_array(DType::f32, {4}, random_values(4, 2));
  View row = b.view();
  row.sizes = {3, 4};
  row.strides = {0, 1};
  row.numel = 12;
  row.contiguous = false;
  StridedArray y(DType::f32, {3}), i1 = y, i2 = y, dy = make_array(DType::f32, {3}, {1, 2, 3});
  StridedArray da(DType::f32, {3, 4});
  cosine_similarity_forward({.x1 = a.view(),
                             .x2 = row,
                             .y = y.view(),
                             .inverse1 = i1.view(),
                             .inverse2 = i2.view(),
                             .dim = 1,
                             .eps = 1e-8});
  cosine_similarity_backward({.x1 = a.view(),
                              .x2 = row,
                              .y = y.view(),
                              .inverse1 = i1.view(),
                              .inverse2 = i2.view(),
                              .dy = dy.view(),
                              .dx1 = da.view(),
                              .dx2 = kNoView,
                              .dim = 1});
  double product = 0, square = 0;
  for (int64_t i = 0; i < 4; ++i) {
    product += a.get({1, i}) * da.get({1, i});  // the gradient is orthogonal to x1
    square += b.get({i}) * b.get({i});
  }
  EXPECT_NEAR(product, 0, 1e-6);
  EXPECT_NEAR(i2.get({1}), 1 / std::sqrt(square), 1e-6);
}

TEST(CosineSimilarity, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    StridedArray a = make_array(DType::f32, {501, 103}, random_values(501 * 103, 1));
    StridedArray y(DType::f32, {501}), i1 = y, i2 = y;
    cosine_similarity_forward({.x1 = a.view(),
                               .x2 = a.view(),
                               .y = y.view(),
                               .inverse1 = i1.view(),
                               .inverse2 = i2.view(),
                               .dim = 1,
                               .eps = 1e-8});
    std::vector<std::byte> all;
    append(all, y);
    return all;
  });
}

TEST(CosineSimilarity, ErrorsNameTheProblem) {
  StridedArray a(DType::f32, {2, 3}), b(DType::f32, {2, 4}), y(DType::f32, {2});
  const auto run = [&](StridedArray& other, int dim) {
    return error_of([&] {
      cosine_similarity_forward({.x1 = a.view(),
                                 .x2 = other.view(),
                                 .y = y.view(),
                                 .inverse1 = y.view(),
                                 .inverse2 = y.view(),
                                 .dim = dim,
                                 .eps = 1e-8});
    });
  };
  EXPECT_EQ(run(b, 1), "cosine_similarity: got x2 f32 [2, 4], expected f32 [2, 3]");
  EXPECT_EQ(run(a, 0),
            "cosine_similarity: got a result or statistic f32 [2], expected a contiguous f32 [3]");
  EXPECT_EQ(run(a, 2),
            "cosine_similarity: got x1 f32 [2, 3] and dimension 2, expected a floating tensor with "
            "it");
}

TEST(CosineSimilarity, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::cosine_similarity_test
