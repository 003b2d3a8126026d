// Rows of searchsorted, bucketize and histc.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

Tensor in_order(const Tensor& x) { return x.defined() ? sort(x).values : x; }

// The places of values in the sorted lines of a sequence.
Array places(const Array& sequence, const Array& values, bool right) {
  return generate(values.sizes, [&](const Dims& at) {
    Dims element = sequence.dim() == 1 ? Dims{0} : at;
    int64_t before = 0;
    for (int64_t i = 0; i < sequence.sizes.back(); ++i) {
      element[element.size() - 1] = i;
      const double s = sequence.at(element), v = values.at(at);
      before += right ? s <= v : s < v;
    }
    return double(before);
  });
}

OpRow search_row(bool right, bool buckets) {
  OpRow row;
  row.name = buckets ? "bucketize" : "searchsorted";
  row.attributes = right ? "right" : "left";
  const auto op = [=](const Tensor& sequence, const Tensor& values) {
    return buckets ? bucketize(values, sequence, right) : searchsorted(sequence, values, right);
  };
  row.shapes = {{{7}, {3, 4}}, {{33}, {}}, {{0}, {3}}, {{5}, {0, 2}}};
  if (!buckets) {
    row.shapes.push_back({{2, 5}, {2, 3}});
    row.shapes.push_back({{2, 3, 4}, {2, 3, 9}});
    row.shapes.push_back({{2, 0, 4}, {2, 0, 3}});
  }
  row.domains = {{.low = -6, .high = 6, .whole = true}};
  row.function = [=](const Tensors& x) { return Tensors{op(in_order(x[0]), x[1])}; };
  row.reference = [=](const Arrays& x) {  // the number of smaller elements needs no order
    return Arrays{places(x[0], x[1], right)};
  };
  row.differentiable = false;
  row.any_dtype = true;
  row.many_zeros = true;
  row.output_dtype = DType::i64;
  row.large = {{1000}, {257, 31}};
  row.timed = {{1024}, {512, 512}};
  row.errors = {{"a scalar sequence", [=] { op(ones({}), ones({3})); }},
                {"leading sizes that differ",
                 [=] {
                   op(ones({2, 4}), ones({3, 4}));
                 }},
                {"ranks that differ",
                 [=] {
                   op(ones({2, 4}), ones({4}));
                 }},
                {"two floating dtypes", [=] { op(ones({4}, DType::f64), ones({4})); }},
                {"undefined values", [=] { op(ones({4}), Tensor()); }},
                {"undefined sequence", [=] { op(Tensor(), ones({4})); }}};
  return row;
}

// The counts of the parts of [low, high]; low = high is the range of x.
Array histogram(const Array& x, int64_t bins, double low, double high) {
  Array counts{{bins}, std::vector<double>(size_t(bins))};
  if (low == high && x.numel() > 0) {
    low = *std::min_element(x.values.begin(), x.values.end());
    high = *std::max_element(x.values.begin(), x.values.end());
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  for (double v : x.values) {
    if (v >= low && v <= high) {
      const auto bin = int64_t((v - low) * double(bins) / (high - low));
      ++counts.values[size_t(std::min(bin, bins - 1))];
    }
  }
  return counts;
}

OpRow histc_row(int64_t bins, double low, double high) {
  OpRow row;
  row.name = "histc";
  row.attributes = text(bins, " bins of ", low, " to ", high);
  row.shapes = {{{4, 6}}, {{}}, {{33}}, {{2, 3, 2, 2}}, {{0, 3}}};
  row.domains = {
      {.low = -3, .high = 3, .avoid = {-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2}, .gap = 0.05}};
  row.function = [=](const Tensors& x) { return Tensors{histc(x[0], bins, low, high)}; };
  row.reference = [=](const Arrays& x) { return Arrays{histogram(x[0], bins, low, high)}; };
  row.differentiable = false;
  row.many_zeros = true;
  row.wide_output = true;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  row.errors = {{"no bins", [] { histc(ones({3}), 0); }},
                {"more bins than memory", [] { histc(ones({3}), INT64_MAX); }},
                {"a range in descending order", [] { histc(ones({3}), 4, 1, 0); }},
                {"an infinite range", [] { histc(ones({3}), 4, 0, INFINITY); }},
                {"the range of NaN", [] { histc(full({3}, NAN)); }},
                {"integers", [] { histc(zeros({3}, DType::i64)); }},
                {"undefined operand", [] { histc(Tensor()); }}};
  return row;
}

}  // namespace

std::vector<OpRow> search_rows() {
  return {search_row(false, false), search_row(true, false), search_row(false, true),
          search_row(true, true),   histc_row(8, -2, 2),     histc_row(5, 0, 0)};
}

}  // namespace binade::op_table
