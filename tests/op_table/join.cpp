// Rows of the ops that join, split and sum back: cat, stack, hstack, vstack, split, sum_to.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>

namespace binade::op_table {
namespace {

Array joined(const Arrays& parts, int dim, bool stack) {
  Arrays flat = parts;
  for (Array& part : flat) {
    if (stack) {
      Dims sizes;
      for (int i = 0; i <= part.dim(); ++i) {
        if (i == dim) {
          sizes.push_back(1);
        }
        if (i < part.dim()) {
          sizes.push_back(part.sizes[i]);
        }
      }
      part.sizes = sizes;
    }
  }
  Dims sizes = flat[0].sizes;
  for (size_t i = 1; i < flat.size(); ++i) {
    sizes[dim] += flat[i].sizes[dim];
  }
  return generate(sizes, [&](Dims y) {
    size_t part = 0;
    while (y[dim] >= flat[part].sizes[dim]) {
      y[dim] -= flat[part++].sizes[dim];
    }
    return flat[part].at(y);
  });
}

OpRow join_row(bool is_stack, int dim, const std::vector<Shapes>& shapes) {
  OpRow row;
  row.name = is_stack ? "stack" : "cat";
  row.attributes = text("dim ", dim);
  row.shapes = shapes;
  row.function = [=](const Tensors& x) { return Tensors{is_stack ? stack(x, dim) : cat(x, dim)}; };
  row.reference = [=](const Arrays& x) { return Arrays{joined(x, dim, is_stack)}; };
  row.any_dtype = true;
  row.large = shapes[0];
  row.timed.assign(shapes[0].size(), Dims{512, 1024});
  const auto op = [=](const Tensors& x, int d) { is_stack ? stack(x, d) : cat(x, d); };
  row.errors = {
      {"sizes that differ",
       [=] {
         op({ones({3, 4}), ones(is_stack ? Dims{4, 3} : Dims{3, 5})}, 0);
       }},
      {"ranks that differ",
       [=] {
         op({ones({3, 4}), ones({3})}, 0);
       }},
      {"no parts", [=] { op({}, 0); }},
      {"dtypes that differ",
       [=] {
         op({ones({3}), ones({3}, DType::f64)}, 0);
       }},
      {"dim out of range",
       [=] {
         op({ones({3, 4}), ones({3, 4})}, 3);
       }},
      {"undefined part",
       [=] {
         op({ones({3}), Tensor()}, 0);
       }},
  };
  return row;
}

// hstack and vstack: scalars and vectors as parts of `rank` dimensions.
OpRow stacked_row(const char* name, int rank, const std::function<Tensor(const Tensors&)>& op) {
  OpRow row;
  row.name = name;
  row.shapes = {{{3, 4}, {3, 4}, {3, 4}}, {{5}, {5}}, {{}, {}}, {{7}}, {{2, 1, 3}, {2, 1, 3}}};
  row.shapes.push_back(rank == 1 ? Shapes{{3, 4}, {3, 0}, {3, 2}} : Shapes{{3, 4}, {4}, {0, 4}});
  row.shapes.push_back(rank == 1 ? Shapes{{2}, {}, {0}} : Shapes{{2, 1, 3}, {1, 1, 3}});
  row.function = [op](const Tensors& x) { return Tensors{op(x)}; };
  row.reference = [rank](const Arrays& x) {
    Arrays raised = x;
    for (Array& part : raised) {
      while (part.dim() < rank) {
        part.sizes = part.dim() == 0 ? Dims{1} : Dims{1, part.sizes[0]};
      }
    }
    return Arrays{joined(raised, rank == 1 && raised[0].dim() > 1 ? 1 : 0, false)};
  };
  row.any_dtype = true;
  row.large = row.shapes[0];
  row.timed.assign(3, Dims{512, 1024});
  row.errors = {{"sizes that differ",
                 [op] {
                   op({ones({3, 4}), ones({2, 5})});
                 }},
                {"ranks that differ",
                 [op] {
                   op({ones({3, 4, 2}), ones({3, 4})});
                 }},
                {"no parts", [op] { op({}); }},
                {"dtypes that differ",
                 [op] {
                   op({ones({3}), ones({3}, DType::f64)});
                 }},
                {"undefined part", [op] {
                   op({ones({3}), Tensor()});
                 }}};
  return row;
}

OpRow split_row() {
  OpRow row;
  row.name = "split";
  row.attributes = "2 of dim 1";
  row.shapes = {{{3, 5}}, {{2, 4, 3}}, {{2, 1}}, {{0, 3}}, {{2, 3, 1, 2, 2}}};
  row.function = [](const Tensors& x) { return split(x[0], 2, 1); };
  row.reference = [](const Arrays& x) {
    Arrays parts;
    for (int64_t start = 0; start < x[0].sizes[1]; start += 2) {
      Dims sizes = x[0].sizes;
      sizes[1] = std::min<int64_t>(2, sizes[1] - start);
      parts.push_back(generate(sizes, [&](Dims y) {
        y[1] += start;
        return x[0].at(y);
      }));
    }
    return parts;
  };
  row.any_dtype = true;
  row.large = {{3, 5}};
  row.timed = {{131072, 8}};
  row.errors = {
      {"zero size",
       [] {
         split(ones({3, 4}), 0, 0);
       }},
      {"negative size",
       [] {
         split(ones({3, 4}), -1, 0);
       }},
      {"dim out of range",
       [] {
         split(ones({3, 4}), 1, 2);
       }},
      {"undefined operand", [] { split(Tensor(), 1, 0); }},
  };
  return row;
}

// sum_to is the gradient of a broadcast.
OpRow sum_to_row() {
  OpRow row;
  row.name = "sum_to";
  row.attributes = "3, 1";
  row.shapes = {{{3, 5}}, {{2, 3, 4}}, {{3, 1}}, {{2, 1, 3, 5}}, {{0, 3, 2}}};
  row.function = [](const Tensors& x) { return Tensors{sum_to(x[0], {3, 1})}; };
  row.reference = [](const Arrays& x) {
    Array y{{3, 1}, {0, 0, 0}};
    for_each(x[0].sizes, [&](const Dims& index) {
      y.values[static_cast<size_t>(index[index.size() - 2])] += x[0].at(index);
    });
    return Arrays{y};
  };
  row.accuracy = Accuracy::sums;
  row.differentiable = false;
  row.many_zeros = true;
  row.large = {{40, 3, 301}};
  row.timed = {{350, 3, 1000}};
  row.errors = {
      {"sizes that do not broadcast",
       [] {
         sum_to(ones({3, 4}), {2, 1});
       }},
      {"more sizes than dims",
       [] {
         sum_to(ones({4}), {3, 4});
       }},
      {"undefined operand",
       [] {
         sum_to(Tensor(), {3, 1});
       }},
  };
  return row;
}

}  // namespace

std::vector<OpRow> join_rows() {
  std::vector<OpRow> rows;
  rows.push_back(
      join_row(false, 0, {{{3, 4}, {2, 4}, {1, 4}}, {{3}, {0}}, {{0, 2}, {2, 2}}, {{5}}}));
  rows.push_back(join_row(false, 1, {{{3, 4}, {3, 1}}, {{2, 1, 3, 2, 2}, {2, 2, 3, 2, 2}}}));
  rows.push_back(join_row(true, 0, {{{3, 4}, {3, 4}, {3, 4}}, {{}, {}}, {{0}, {0}}, {{5}}}));
  rows.push_back(join_row(true, 1, {{{3, 4}, {3, 4}}, {{2, 3, 2}, {2, 3, 2}}}));
  rows.push_back(stacked_row("hstack", 1, [](const Tensors& x) { return hstack(x); }));
  rows.push_back(stacked_row("vstack", 2, [](const Tensors& x) { return vstack(x); }));
  rows.push_back(split_row());
  rows.push_back(sum_to_row());
  return rows;
}

}  // namespace binade::op_table
