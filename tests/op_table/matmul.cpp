// Rows of matrix products besides matmul and linear: bmm, addmm, outer, einsum, and the forms of
// matmul with vectors and batches that broadcast.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace binade::op_table {
namespace {

// Sums over every letter that is not in `out`, for operands of one or two terms; no "...".
Array einsum_of(const std::vector<std::string>& terms, const std::string& out, const Arrays& x) {
  std::map<char, int64_t> size;
  std::string summed;
  for (size_t k = 0; k < terms.size(); ++k) {
    for (size_t i = 0; i < terms[k].size(); ++i) {
      int64_t& known = size[terms[k][i]];
      known = std::max(known, x[k].sizes[int(i)]);
    }
  }
  Dims sizes, inner;
  for (const char c : out) {
    sizes.push_back(size[c]);
  }
  for (const auto& [c, n] : size) {
    if (out.find(c) == std::string::npos) {
      summed.push_back(c);
      inner.push_back(n);
    }
  }
  return generate(sizes, [&](const Dims& outer) {
    double sum = 0;
    for_each(inner, [&](const Dims& in) {
      double product = 1;
      for (size_t k = 0; k < terms.size(); ++k) {
        Dims at;
        for (const char c : terms[k]) {
          const size_t kept = out.find(c);
          at.push_back(kept != std::string::npos ? outer[int(kept)] : in[int(summed.find(c))]);
        }
        product *= x[k].at(at);
      }
      sum += product;
    });
    return sum;
  });
}

struct EinsumCase {
  std::string equation;  // as given to the op
  std::vector<std::string> terms;
  std::string out;  // the same without "..."
  std::vector<Shapes> shapes;
  Shapes large = {};
};

// Sizes of the operands if all letters have one size, and the operations to multiply them from left
// to right: two for every combination of the letters of a product and its operands.
Shapes timed_operands(const EinsumCase& c) {
  const std::string all = std::accumulate(c.terms.begin(), c.terms.end(), std::string());
  const size_t letters = std::set<char>(all.begin(), all.end()).size();
  const int64_t size = letters <= 2 ? 1024 : letters == 3 ? 256 : letters == 4 ? 64 : 24;
  Shapes shapes;
  for (const std::string& term : c.terms) {
    Dims sizes;
    for (size_t i = 0; i < term.size(); ++i) {
      sizes.push_back(size);
    }
    shapes.push_back(sizes);
  }
  return shapes;
}
double operations(const EinsumCase& c, const Shapes& shapes) {
  double sum = 0;
  std::set<char> open(c.terms[0].begin(), c.terms[0].end());
  for (size_t k = 1; k < c.terms.size(); ++k) {
    open.insert(c.terms[k].begin(), c.terms[k].end());
    sum += 2 * std::pow(double(shapes[0][0]), double(open.size()));
    const std::string needed =
        std::accumulate(c.terms.begin() + std::ptrdiff_t(k) + 1, c.terms.end(), c.out);
    std::erase_if(open, [&](char letter) { return needed.find(letter) == std::string::npos; });
  }
  return sum;
}

OpRow contraction_row(const std::string& name, const EinsumCase& c,
                      std::function<Tensor(const Tensors&)> op) {
  OpRow row;
  row.name = name;
  row.attributes = c.equation;
  row.shapes = c.shapes;
  row.large = c.large.empty() ? c.shapes[0] : c.large;
  row.timed = timed_operands(c);
  if (c.terms.size() > 1) {
    row.flops = [c](const Shapes& s) { return operations(c, s); };
  }
  row.function = [op](const Tensors& x) { return Tensors{op(x)}; };
  row.reference = [c](const Arrays& x) { return Arrays{einsum_of(c.terms, c.out, x)}; };
  row.accuracy = Accuracy::sums;
  return row;
}

void add_plain(std::vector<OpRow>& rows) {
  OpRow row =
      contraction_row("bmm",
                      {"bmm",
                       {"bij", "bjk"},
                       "bik",
                       {{{2, 3, 4}, {2, 4, 5}}, {{0, 2, 3}, {0, 3, 4}}, {{1, 1, 1}, {1, 1, 1}}},
                       {{5, 31, 65}, {5, 65, 33}}},
                      [](const Tensors& x) { return bmm(x[0], x[1]); });
  row.depth = [](const Shapes& s) { return s[0].back(); };
  row.exact_shapes = {{{3, 17, 129}, {3, 129, 5}}, {{2, 1, 7}, {2, 7, 1}}};
  row.errors = {
      {"operands of two dimensions",
       [] {
         bmm(ones({3, 4}), ones({4, 5}));
       }},
      {"batch sizes that differ",
       [] {
         bmm(ones({1, 3, 4}), ones({2, 4, 5}));
       }},
      {"inner sizes that differ",
       [] {
         bmm(ones({2, 3, 4}), ones({2, 3, 5}));
       }},
      {"dtypes that differ",
       [] {
         bmm(ones({2, 3, 4}), ones({2, 4, 5}, DType::f64));
       }},
      {"undefined operand",
       [] {
         bmm(Tensor(), ones({2, 4, 5}));
       }},
  };
  rows.push_back(row);
  row = contraction_row(
      "outer", {"outer", {"i", "j"}, "ij", {{{5}, {7}}, {{1}, {1}}, {{0}, {3}}}, {{257}, {129}}},
      [](const Tensors& x) { return outer(x[0], x[1]); });
  row.errors = {
      {"an operand of two dimensions",
       [] {
         outer(ones({3, 1}), ones({4}));
       }},
      {"a scalar", [] { outer(ones({}), ones({4})); }},
      {"dtypes that differ", [] { outer(ones({3}), ones({4}, DType::f64)); }},
      {"undefined operand", [] { outer(ones({3}), Tensor()); }},
  };
  rows.push_back(row);
}

// Sums of products in batches that broadcast, and with vectors: gradients are sums over batches.
void add_matmul_forms(std::vector<OpRow>& rows) {
  const auto op = [](const Tensors& x) { return matmul(x[0], x[1]); };
  for (const EinsumCase& c : std::vector<EinsumCase>{
           {"batches crosswise",
            {"abcij", "abcjk"},
            "abcik",
            {{{3, 1, 2, 2, 4}, {1, 5, 2, 4, 3}}, {{2, 2, 1, 2, 3}, {2, 1, 3, 3, 2}}}},
           {"b and 2-d",
            {"abij", "jk"},
            "abik",
            {{{2, 3, 4, 5}, {5, 6}}},
            {{7, 5, 9, 33}, {33, 17}}},
           {"2-d and b", {"ij", "bjk"}, "bik", {{{3, 4}, {2, 4, 5}}}, {{31, 65}, {7, 65, 9}}},
           {"3-d and 4-d", {"bij", "abjk"}, "abik", {{{3, 2, 4}, {2, 3, 4, 5}}}},
           {"vectors", {"i", "i"}, "", {{{7}, {7}}, {{0}, {0}}}, {{300}, {300}}},
           {"vector and matrices", {"j", "bjk"}, "bk", {{{4}, {2, 4, 3}}, {{4}, {1, 4, 3}}}},
           {"matrices and vector", {"abij", "j"}, "abi", {{{2, 3, 2, 4}, {4}}}},
       }) {
    rows.push_back(contraction_row("matmul", c, op));
  }
}

void add_addmm(std::vector<OpRow>& rows) {
  for (const AddmmOptions& options : {AddmmOptions{},
                                      {.beta = 0.5, .alpha = -2},
                                      {.beta = 0, .alpha = 1},
                                      {.beta = 2, .alpha = 1}}) {
    OpRow row;
    row.name = "addmm";
    row.attributes = text("beta ", options.beta, " alpha ", options.alpha);
    row.shapes = {{{4, 6}, {4, 5}, {5, 6}}, {{6}, {4, 5}, {5, 6}},    {{4, 1}, {4, 5}, {5, 6}},
                  {{}, {4, 5}, {5, 6}},     {{1, 6}, {4, 5}, {5, 6}}, {{1}, {1, 3}, {3, 1}},
                  {{0, 3}, {0, 2}, {2, 3}}, {{3}, {2, 0}, {0, 3}}};
    row.large = {{131, 129}, {131, 65}, {65, 129}};
    row.timed = {{512, 512}, {512, 512}, {512, 512}};
    row.flops = [](const Shapes& x) { return 2.0 * double(element_count(x[1]) * x[2][1]); };
    row.function = [options](const Tensors& x) {
      return Tensors{addmm(x[0], x[1], x[2], options)};
    };
    row.reference = [options](const Arrays& x) {
      const Array product = einsum_of({"ij", "jk"}, "ik", {x[1], x[2]});
      return Arrays{generate(product.sizes, [&](const Dims& i) {
        const Array& in = x[0];
        const double start =
            options.beta == 0
                ? 0
                : in.at(Dims(std::span(i.begin() + (2 - in.dim()), size_t(in.dim()))));
        return options.beta * start + options.alpha * product.at(i);
      })};
    };
    row.accuracy = Accuracy::sums;
    rows.push_back(row);
  }
  rows.back().errors = {
      {"input that does not broadcast",
       [] {
         addmm(ones({3}), ones({2, 4}), ones({4, 5}));
       }},
      {"input of three dimensions",
       [] {
         addmm(ones({1, 2, 5}), ones({2, 4}), ones({4, 5}));
       }},
      {"inner sizes that differ",
       [] {
         addmm(ones({5}), ones({2, 4}), ones({3, 5}));
       }},
      {"operands of three dimensions",
       [] {
         addmm(ones({5}), ones({1, 2, 4}), ones({4, 5}));
       }},
      {"dtypes that differ",
       [] {
         addmm(ones({5}, DType::f64), ones({2, 4}), ones({4, 5}));
       }},
      {"undefined input",
       [] {
         addmm(Tensor(), ones({2, 4}), ones({4, 5}));
       }},
  };
}

void add_baddbmm(std::vector<OpRow>& rows) {
  OpRow row = rows.back();
  row.name = "baddbmm";
  row.attributes = "beta 0.5 alpha -2";
  row.shapes = {{{2, 4, 6}, {2, 4, 5}, {2, 5, 6}},
                {{6}, {3, 4, 5}, {3, 5, 6}},
                {{2, 1, 1}, {2, 1, 5}, {2, 5, 3}},
                {{}, {1, 3, 2}, {1, 2, 3}},
                {{3}, {2, 2, 0}, {2, 0, 3}}};
  row.large = {{3, 65, 129}, {3, 65, 65}, {3, 65, 129}};
  row.timed = {{4, 256, 256}, {4, 256, 256}, {4, 256, 256}};
  row.flops = [](const Shapes& x) { return 2.0 * double(element_count(x[1]) * x[2][2]); };
  const AddmmOptions options = {.beta = 0.5, .alpha = -2};
  row.function = [=](const Tensors& x) { return Tensors{baddbmm(x[0], x[1], x[2], options)}; };
  row.reference = [](const Arrays& x) {
    const Array product = einsum_of({"bij", "bjk"}, "bik", {x[1], x[2]});
    return Arrays{generate(product.sizes, [&](const Dims& i) {
      const Array& in = x[0];
      const Dims at(std::span(i.begin() + (3 - in.dim()), size_t(in.dim())));
      return 0.5 * in.at(at) - 2 * product.at(i);
    })};
  };
  row.errors = {{"input that does not broadcast",
                 [] {
                   baddbmm(ones({3}), ones({1, 2, 4}), ones({1, 4, 5}));
                 }},
                {"matrices",
                 [] {
                   baddbmm(ones({5}), ones({2, 4}), ones({4, 5}));
                 }},
                {"batches that differ",
                 [] {
                   baddbmm(ones({5}), ones({2, 2, 4}), ones({3, 4, 5}));
                 }},
                {"undefined input", [] {
                   baddbmm(Tensor(), ones({1, 2, 4}), ones({1, 4, 5}));
                 }}};
  rows.push_back(row);
}

void add_tensordot(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "tensordot";
  row.attributes = "dims 2, 0 with 1, 2";
  row.shapes = {{{3, 4, 5}, {2, 5, 3}}, {{2, 1, 3}, {4, 3, 2}}, {{2, 3, 0}, {1, 0, 2}}};
  row.large = {{17, 33, 9}, {31, 9, 17}};
  row.timed = {{64, 64, 16}, {64, 16, 64}};
  row.flops = [](const Shapes& x) { return 2.0 * double(element_count(x[0]) * x[1][0]); };
  row.function = [](const Tensors& x) { return Tensors{tensordot(x[0], x[1], {2, 0}, {1, 2})}; };
  row.reference = [](const Arrays& x) { return Arrays{einsum_of({"iaj", "bji"}, "ab", x)}; };
  row.accuracy = Accuracy::sums;
  row.many_zeros = true;
  row.errors = {{"sizes that differ",
                 [] {
                   tensordot(ones({3, 4}), ones({3, 4}), {1}, {0});
                 }},
                {"more dims of one",
                 [] {
                   tensordot(ones({3, 4}), ones({3, 4}), {1, 0}, {1});
                 }},
                {"too many dims", [] { tensordot(ones({3}), ones({3})); }},
                {"undefined operand", [] { tensordot(Tensor(), ones({3}), 1); }}};
  rows.push_back(row);
  row.attributes = "1 dim";
  row.shapes = {{{3, 4}, {4, 2, 2}}, {{5}, {5}}};
  row.function = [](const Tensors& x) { return Tensors{tensordot(x[0], x[1], 1)}; };
  row.reference = [](const Arrays& x) {
    return Arrays{x[0].dim() == 1 ? einsum_of({"a", "a"}, "", x)
                                  : einsum_of({"ij", "jkl"}, "ikl", x)};
  };
  row.large = row.shapes[0];
  row.timed = {};
  row.flops = nullptr;
  rows.push_back(row);
}

void add_einsum(std::vector<OpRow>& rows) {
  const std::vector<EinsumCase> cases = {
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{{3, 4}, {4, 5}}}, {{65, 129}, {129, 33}}},
      {"ij,jk", {"ij", "jk"}, "ik", {{{3, 4}, {4, 5}}}},
      {"bhqd,bhkd->bhqk", {"bhqd", "bhkd"}, "bhqk", {{{2, 3, 4, 5}, {2, 3, 2, 5}}}},
      {"bij,kj->bik", {"bij", "kj"}, "bik", {{{2, 3, 5}, {4, 5}}}},
      {"bi,bij->bj", {"bi", "bij"}, "bj", {{{3, 4}, {3, 4, 5}}, {{1, 4}, {3, 4, 5}}}},
      {"i,j->ji", {"i", "j"}, "ji", {{{5}, {7}}}},
      {"ij,ij->ij", {"ij", "ij"}, "ij", {{{3, 4}, {3, 4}}}},
      {"ij,ij->", {"ij", "ij"}, "", {{{3, 4}, {3, 4}}, {{0, 4}, {0, 4}}}},
      {"ijk,kli->lj", {"ijk", "kli"}, "lj", {{{2, 3, 4}, {4, 5, 2}}}},
      {"ij,k->k", {"ij", "k"}, "k", {{{2, 3}, {4}}}},
      {"...ij,jk->...ik", {"abij", "jk"}, "abik", {{{2, 3, 2, 4}, {4, 5}}}},
      {"b...,b...->b...", {"bij", "bij"}, "bij", {{{2, 3, 4}, {2, 3, 4}}}},
      {"ij->ji", {"ij"}, "ji", {{{4, 7}}}},
      {"ij->", {"ij"}, "", {{{4, 7}}}},
      {"bij->bi", {"bij"}, "bi", {{{2, 3, 9}}}},
      {" a b , b c , c d -> d a ", {"ab", "bc", "cd"}, "da", {{{2, 3}, {3, 4}, {4, 5}}}},
  };
  for (const EinsumCase& c : cases) {
    rows.push_back(contraction_row(
        "einsum", c, [equation = c.equation](const Tensors& x) { return einsum(equation, x); }));
  }
  const auto with = [](const std::string& equation, const std::vector<Dims>& shapes) {
    return [=] {
      Tensors operands;
      for (const Dims& shape : shapes) {
        operands.push_back(ones(shape));
      }
      einsum(equation, operands);
    };
  };
  rows.back().errors = {
      {"inner sizes that differ", with("ij,jk->ik", {{3, 4}, {5, 6}})},
      {"fewer operands than terms", with("ij,jk->ik", {{3, 4}})},
      {"more operands than terms", with("ij->ji", {{3, 4}, {3, 4}})},
      {"no operands", with("->", {})},
      {"fewer letters than dimensions", with("i,jk->ik", {{3, 4}, {4, 5}})},
      {"more letters than dimensions", with("ijk->ik", {{3, 4}})},
      {"a letter twice", with("ii->i", {{3, 3}})},
      {"a letter twice in the result", with("ij->iij", {{3, 3}})},
      {"a letter of the result that is unknown", with("ij->ik", {{3, 4}})},
      {"a digit", with("i1->i", {{3, 4}})},
      {"a lone dot", with("i.->i", {{3, 4}})},
      {"dots in the result alone", with("ij->...ij", {{3, 4}})},
      {"dtypes that differ",
       [] {
         einsum("ij,jk->ik", {ones({3, 4}), ones({4, 5}, DType::f64)});
       }},
      {"integer operands",
       [] {
         einsum("ij->ji", {zeros({3, 4}, DType::i64)});
       }},
      {"undefined operand", [] { einsum("ij->ji", {Tensor()}); }},
  };
}

}  // namespace

std::vector<OpRow> matmul_rows() {
  std::vector<OpRow> rows;
  add_plain(rows);
  add_matmul_forms(rows);
  add_addmm(rows);
  add_baddbmm(rows);
  add_tensordot(rows);
  add_einsum(rows);
  return rows;
}

}  // namespace binade::op_table
