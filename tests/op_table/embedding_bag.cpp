// Rows of embedding_bag: every mode, matrices and offsets, padding, weights of the entries.
#include <tests/op_table/index_row.h>

#include <binade/core/ops/index.h>

#include <algorithm>

namespace binade::op_table {
namespace {

struct Bags {
  BagMode mode;
  std::optional<int64_t> padding = {};
  bool offsets = true, weighted = false, last = false;
};

// Drawn numbers as offsets: ascending, with 0 before them and, if wanted, n after them.
std::vector<double> limits_of(std::vector<double> drawn, const Bags& bags, int64_t n) {
  std::sort(drawn.begin(), drawn.end());
  drawn.insert(drawn.begin(), 0);
  if (bags.last) {
    drawn.push_back(double(n));
  }
  for (double& limit : drawn) {
    limit = limit < 10 ? std::min(limit, double(n)) : limit;  // drawn ones are below 10
  }
  return drawn;
}

Array reduced(const Arrays& x, const Bags& bags) {
  const Array &weight = x[0], &index = x[1];
  const int64_t n = index.numel(), columns = weight.sizes[1];
  std::vector<double> limits;
  if (bags.offsets) {
    limits = limits_of(x[2].values, bags, n);
    if (!bags.last) {
      limits.push_back(double(n));
    }
  } else {
    for (int64_t b = 0; b <= index.sizes[0]; ++b) {
      limits.push_back(double(b * index.sizes[1]));
    }
  }
  const int64_t rows = weight.sizes[0], exempt = (bags.padding.value_or(-1) + rows) % rows;
  return generate({int64_t(limits.size()) - 1, columns}, [&](const Dims& y) {
    double sum = 0, largest = 0;
    int64_t count = 0;
    for (auto e = size_t(limits[size_t(y[0])]); e < size_t(limits[size_t(y[0]) + 1]); ++e) {
      const int64_t row = whole(index.values[e]);
      if (bags.padding && row == exempt) {
        continue;
      }
      const double v = weight.at({row, y[1]});
      sum += bags.weighted ? v * x.back().values[e] : v;
      largest = count == 0 ? v : std::max(largest, v);
      ++count;
    }
    return bags.mode == BagMode::max    ? largest
           : bags.mode == BagMode::mean ? sum / double(std::max<int64_t>(count, 1))
                                        : sum;
  });
}

OpRow bag_row(const std::string& attributes, const Bags& bags) {
  std::vector<Shapes> shapes = {
      {{3, 4}, {2, 5}}, {{7, 33}, {3, 1}}, {{5, 1}, {2, 0}}, {{3, 2}, {1, 70}}, {{4, 3}, {0, 2}}};
  std::vector<Domain> domains = {{.distinct = bags.mode == BagMode::max}, indices(3)};
  if (bags.offsets) {
    shapes = {{{3, 4}, {9}, {3}}, {{7, 33}, {5}, {0}}, {{5, 1}, {0}, {2}}, {{3, 2}, {70}, {6}}};
    domains.push_back(indices(10));
  }
  if (bags.weighted) {
    for (Shapes& s : shapes) {
      s.push_back(s[1]);
    }
    domains.emplace_back();
  }
  OpRow row = index_row("embedding_bag", attributes, shapes, domains);
  row.timed = {{8192, 64}, {512, 8}};
  if (bags.offsets) {
    row.timed = {{8192, 64}, {4096}, {511}};
  }
  if (bags.weighted) {
    row.timed.push_back(row.timed[1]);
  }
  row.timed_domains = domains;
  row.timed_domains[0] = {};
  row.timed_domains[1] = indices(8192);
  if (bags.offsets) {
    row.timed_domains[2] = indices(4096);
  }
  row.any_dtype = false;
  row.many_zeros = true;  // empty bags
  row.accuracy = bags.mode == BagMode::max ? Accuracy::exact : Accuracy::sums;
  row.function = [=](const Tensors& x) {
    Tensor offsets;
    if (bags.offsets && x[2].defined() && x[2].dtype() != DType::i64) {
      offsets = x[2];  // is refused
    } else if (bags.offsets) {
      const std::vector<int64_t> whole_numbers = x[2].to_vector<int64_t>();
      const std::vector<double> drawn(whole_numbers.begin(), whole_numbers.end());
      const std::vector<double> limits = limits_of(drawn, bags, x[1].numel());
      offsets = from_values(limits, {int64_t(limits.size())}, DType::i64, x[2].device());
    }
    return Tensors{embedding_bag(x[0], x[1], offsets, bags.weighted ? x.back() : Tensor(),
                                 {bags.mode, bags.padding, bags.last})};
  };
  row.reference = [=](const Arrays& x) { return Arrays{reduced(x, bags)}; };
  return row;
}

std::vector<ErrorCase> bag_errors() {
  const auto bag = [](const Tensor& index, const Tensor& offsets, bool last = false) {
    embedding_bag(ones({5, 3}), index, offsets, {}, {.include_last_offset = last});
  };
  const Tensor four = index_of({0, 1, 2, 4}, {4});
  return {fails("index out of range",
                [=] {
                  bag(index_of({0, 5}, {1, 2}), {});
                }),
          fails("negative index",
                [=] {
                  bag(index_of({-1}, {1, 1}), {});
                }),
          fails("float index",
                [=] {
                  bag(ones({2, 2}), {});
                }),
          fails("undefined index", [=] { bag({}, {}); }),
          fails("no offsets", [=] { bag(four, {}); }),
          fails("offsets of a matrix",
                [=] {
                  bag(index_of({0, 1}, {1, 2}), index_of({0}, {1}));
                }),
          fails("three dims",
                [=] {
                  bag(index_of({0, 1}, {1, 1, 2}), {});
                }),
          fails("float offsets", [=] { bag(four, zeros({2})); }),
          fails("no bag", [=] { bag(four, index_of({}, {0})); }),
          fails("a first offset after 0",
                [=] {
                  bag(four, index_of({1, 2}, {2}));
                }),
          fails("offsets that descend",
                [=] {
                  bag(four, index_of({0, 3, 2}, {3}));
                }),
          fails("an offset after the end",
                [=] {
                  bag(four, index_of({0, 5}, {2}));
                }),
          fails("a negative offset",
                [=] {
                  bag(four, index_of({0, -2, 3}, {3}));
                }),
          fails("a last offset before the end",
                [=] {
                  bag(four, index_of({0, 3}, {2}), true);
                }),
          fails("no last offset", [=] { bag(four, index_of({}, {0}), true); }),
          fails("weight of one dim",
                [] {
                  embedding_bag(ones({5}), index_of({0}, {1, 1}));
                }),
          fails("weight of integers",
                [] {
                  embedding_bag(index_of({0}, {1, 1}), index_of({0}, {1, 1}));
                }),
          fails("padding out of range",
                [] {
                  embedding_bag(ones({5, 3}), index_of({0}, {1, 1}), {}, {}, {.padding_idx = 5});
                }),
          fails("weights of a mean",
                [] {
                  embedding_bag(ones({5, 3}), index_of({0}, {1, 1}), {}, ones({1, 1}));
                }),
          fails("weights of another shape",
                [] {
                  embedding_bag(ones({5, 3}), index_of({0}, {1, 1}), {}, ones({1}),
                                {.mode = BagMode::sum});
                }),
          fails("weights of another dtype",
                [] {
                  embedding_bag(ones({5, 3}), index_of({0}, {1, 1}), {}, ones({1, 1}, DType::f64),
                                {.mode = BagMode::sum});
                }),
          fails("undefined weight", [] {
            embedding_bag(Tensor(), index_of({0}, {1, 1}));
          })};
}

}  // namespace

std::vector<OpRow> embedding_bag_rows() {
  std::vector<OpRow> rows = {
      bag_row("sum of a matrix", {.mode = BagMode::sum, .offsets = false}),
      bag_row("mean of a matrix", {.mode = BagMode::mean, .padding = 1, .offsets = false}),
      bag_row("max of a matrix", {.mode = BagMode::max, .padding = -1, .offsets = false}),
      bag_row("weighted sum of a matrix",
              {.mode = BagMode::sum, .padding = 0, .offsets = false, .weighted = true}),
      bag_row("sum", {.mode = BagMode::sum, .padding = 1}),
      bag_row("weighted sum", {.mode = BagMode::sum, .weighted = true, .last = true}),
      bag_row("mean", {.mode = BagMode::mean, .last = true}),
      bag_row("mean without padding", {.mode = BagMode::mean, .padding = 2}),
      bag_row("max", {.mode = BagMode::max}),
  };
  rows[0].errors = bag_errors();
  return rows;
}

}  // namespace binade::op_table
