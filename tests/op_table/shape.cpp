// Rows of the ops that move data: exact in every dtype.
#include <tests/op_table/op_table.h>

#include <binade/core/create.h>

#include <algorithm>

namespace binade::op_table {
namespace {

using Move = std::function<Tensor(const Tensor&)>;

OpRow move_row(const std::string& name, const std::string& attributes,
               const std::vector<Shapes>& shapes, const Move& op,
               const std::function<Array(const Array&)>& reference) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = shapes;
  row.function = [op](const Tensors& x) { return Tensors{op(x[0])}; };
  row.reference = [reference](const Arrays& x) { return Arrays{reference(x[0])}; };
  row.any_dtype = true;
  row.large = shapes[0];
  row.errors = {{"undefined operand", [op] { op(Tensor()); }}};
  return row;
}

// Same order of elements, other sizes.
Array renamed(const Array& x, const Dims& sizes) { return {sizes, x.values}; }

ErrorCase fails(const char* what, const std::function<void()>& run) { return {what, run}; }

void add_errors(OpRow& row, const std::vector<ErrorCase>& errors) {
  row.errors.insert(row.errors.end(), errors.begin(), errors.end());
}

OpRow reshape_row(const Dims& wanted, const Dims& sizes, const std::vector<Shapes>& shapes) {
  return move_row(
      "reshape", text("to ", wanted), shapes, [=](const Tensor& x) { return reshape(x, wanted); },
      [=](const Array& x) { return renamed(x, sizes); });
}

void append_reshapes(std::vector<OpRow>& rows) {
  rows.push_back(reshape_row({6, 4}, {6, 4}, {{{4, 6}}, {{2, 3, 4}}, {{24}}, {{2, 1, 3, 2, 2}}}));
  add_errors(rows.back(), {
                              fails("size that differs",
                                    [] {
                                      reshape(ones({3, 4}), {5, 2});
                                    }),
                              fails("two inferred sizes",
                                    [] {
                                      reshape(ones({3, 4}), {-1, -1});
                                    }),
                              fails("size that does not divide",
                                    [] {
                                      reshape(ones({3, 4}), {-1, 5});
                                    }),
                              fails("negative size",
                                    [] {
                                      reshape(ones({3, 4}), {-2, -6});
                                    }),
                              fails("inferred beside zero",
                                    [] {
                                      reshape(ones({0, 4}), {-1, 0});
                                    }),
                              fails("product near 2^64",
                                    [] {
                                      reshape(ones({0}), {INT64_MAX, INT64_MAX, 0});
                                    }),
                          });
  rows.push_back(reshape_row({2, -1, 2}, {2, 6, 2}, {{{4, 6}}, {{2, 3, 4}}, {{24}}}));
  rows.push_back(reshape_row({}, {}, {{{1}}, {{1, 1}}, {{}}}));
  rows.push_back(reshape_row({0, 5}, {0, 5}, {{{0, 3}}, {{2, 0}}}));
  rows.push_back(move_row(
      "flatten", "all", {{{4, 6}}, {{2, 1, 3, 2, 2}}, {{7}}, {{}}, {{0, 3}}},
      [](const Tensor& x) { return flatten(x); },
      [](const Array& x) { return renamed(x, {x.numel()}); }));
  rows.push_back(move_row(
      "flatten", "1 to 2", {{{2, 3, 4, 2}}, {{2, 1, 3}}},
      [](const Tensor& x) { return flatten(x, 1, 2); },
      [](const Array& x) {
        Dims sizes{x.sizes[0], x.sizes[1] * x.sizes[2]};
        for (int i = 3; i < x.dim(); ++i) {
          sizes.push_back(x.sizes[i]);
        }
        return renamed(x, sizes);
      }));
  add_errors(rows.back(), {
                              fails("dim out of range",
                                    [] {
                                      flatten(ones({3, 4}), 0, 2);
                                    }),
                              fails("dims in wrong order",
                                    [] {
                                      flatten(ones({3, 4}), 1, 0);
                                    }),
                          });
  rows.push_back(move_row(
      "unsqueeze", "-1", {{{4, 6}}, {{}}, {{0}}, {{2, 1, 3, 2, 2}}},
      [](const Tensor& x) { return unsqueeze(x, -1); },
      [](const Array& x) {
        Dims sizes = x.sizes;
        sizes.push_back(1);
        return renamed(x, sizes);
      }));
  add_errors(rows.back(), {
                              fails("dim out of range",
                                    [] {
                                      unsqueeze(ones({3, 4}), 4);
                                    }),
                              fails("too many dims", [] { unsqueeze(ones(Dims::of(8, 1)), 0); }),
                          });
  rows.push_back(move_row(
      "squeeze", "1", {{{4, 1}}, {{3, 1, 2}}, {{3, 2, 2}}, {{0, 1}}},
      [](const Tensor& x) { return squeeze(x, 1); },
      [](const Array& x) {
        Dims sizes;
        for (int i = 0; i < x.dim(); ++i) {
          if (i != 1 || x.sizes[i] != 1) {
            sizes.push_back(x.sizes[i]);
          }
        }
        return renamed(x, sizes);
      }));
  add_errors(rows.back(), {fails("dim out of range", [] { squeeze(ones({3, 4}), 3); })});
}

Array permuted(const Array& x, const Dims& order) {
  Dims sizes;
  for (int64_t dim : order) {
    sizes.push_back(x.sizes[static_cast<int>(dim)]);
  }
  return generate(sizes, [&](const Dims& y) {
    Dims at = Dims::of(x.dim());
    for (int i = 0; i < x.dim(); ++i) {
      at[static_cast<int>(order[i])] = y[i];
    }
    return x.at(at);
  });
}

void append_views(std::vector<OpRow>& rows) {
  const std::vector<Shapes> solids = {{{2, 3, 4}}, {{1, 5, 1}}, {{0, 3, 2}}};
  rows.push_back(move_row(
      "transpose", "0, -1", solids, [](const Tensor& x) { return transpose(x, 0, -1); },
      [](const Array& x) {
        return permuted(x, {2, 1, 0});
      }));
  add_errors(rows.back(), {fails("dim out of range", [] { transpose(ones({3, 4}), 0, 2); })});
  rows.push_back(move_row(
      "permute", "2, 0, 1", solids,
      [](const Tensor& x) {
        return permute(x, {2, 0, 1});
      },
      [](const Array& x) {
        return permuted(x, {2, 0, 1});
      }));
  add_errors(rows.back(), {
                              fails("repeated dim",
                                    [] {
                                      permute(ones({3, 4}), {0, 0});
                                    }),
                              fails("too few dims",
                                    [] {
                                      permute(ones({3, 4}), {0});
                                    }),
                              fails("dim out of range",
                                    [] {
                                      permute(ones({3, 4}), {0, 2});
                                    }),
                          });
  rows.push_back(move_row(
      "expand", "to 2, 4, 3", {{{4, 3}}, {{4, 1}}, {{1, 1}}, {{}}, {{3}}, {{2, 1, 3}}},
      [](const Tensor& x) {
        return expand(x, {2, 4, 3});
      },
      [](const Array& x) {
        return generate({2, 4, 3}, [&](const Dims& y) { return x.at(y); });
      }));
  add_errors(rows.back(), {
                              fails("size that does not expand",
                                    [] {
                                      expand(ones({3, 4}), {3, 5});
                                    }),
                              fails("too few sizes",
                                    [] {
                                      expand(ones({3, 4}), {4});
                                    }),
                              fails("nothing to keep",
                                    [] {
                                      expand(ones({4}), {-1, 4});
                                    }),
                              fails("negative size",
                                    [] {
                                      expand(ones({1, 4}), {-2, 4});
                                    }),
                          });
  rows.push_back(move_row(
      "slice", "dim 1, 1:9:2", {{{3, 6}}, {{2, 5, 2}}, {{2, 1}}, {{3, 0}}, {{2, 4, 3, 2, 2}}},
      [](const Tensor& x) { return slice(x, 1, 1, std::min<int64_t>(9, x.size(1)), 2); },
      [](const Array& x) {
        Dims sizes = x.sizes;
        sizes[1] /= 2;
        return generate(sizes, [&](Dims y) {
          y[1] = 2 * y[1] + 1;
          return x.at(y);
        });
      }));
  rows.back().attributes = "odd elements of dim 1";
  add_errors(rows.back(), {
                              fails("zero step",
                                    [] {
                                      slice(ones({3, 4}), 0, 0, 3, 0);
                                    }),
                              fails("negative step",
                                    [] {
                                      slice(ones({3, 4}), 0, 3, 0, -1);
                                    }),
                              fails("dim out of range",
                                    [] {
                                      slice(ones({3, 4}), 2, 0, 1);
                                    }),
                          });
  rows.push_back(move_row(
      "select", "dim 1, -1", {{{3, 6}}, {{2, 5, 2}}, {{0, 2}}, {{2, 4, 3, 2, 2}}},
      [](const Tensor& x) { return select(x, 1, -1); },
      [](const Array& x) {
        Dims sizes;
        for (int i = 0; i < x.dim(); ++i) {
          if (i != 1) {
            sizes.push_back(x.sizes[i]);
          }
        }
        return generate(sizes, [&](const Dims& y) {
          Dims at{y[0], x.sizes[1] - 1};
          for (int i = 1; i < y.size(); ++i) {
            at.push_back(y[i]);
          }
          return x.at(at);
        });
      }));
  add_errors(rows.back(), {
                              fails("index out of range",
                                    [] {
                                      select(ones({3, 4}), 1, 4);
                                    }),
                              fails("negative index out of range",
                                    [] {
                                      select(ones({3, 4}), 1, -5);
                                    }),
                              fails("dim out of range",
                                    [] {
                                      select(ones({3, 4}), 2, 0);
                                    }),
                              fails("0-d operand", [] { select(ones({}), 0, 0); }),
                          });
}

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

// Each input element occurs once per summed dimension: the gradient's way back from a broadcast.
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

void append_conversions(std::vector<OpRow>& rows) {
  const auto same = [](const Array& x) { return x; };
  const std::vector<Shapes> any = {{{4, 6}}, {{}}, {{0, 3}}, {{2, 3, 2, 2}}, {{2, 1, 3, 2, 2}}};
  rows.push_back(move_row("contiguous", "", any, contiguous, same));
  rows.push_back(move_row("channels_last", "",
                          {{{2, 3, 2, 4}}, {{2, 3, 4}}, {{2, 1, 3, 2, 2}}, {{0, 2, 3, 3}}},
                          channels_last, same));
  add_errors(rows.back(), {fails("two dims", [] { channels_last(ones({3, 4})); })});
  // There and back: to f64 nothing is lost, so the result is the input in any dtype.
  rows.push_back(move_row(
      "cast", "to f64 and back", any,
      [](const Tensor& x) { return cast(cast(x, DType::f64), x.dtype()); }, same));
  rows.push_back(move_row(
      "cast", "to f32", any, [](const Tensor& x) { return cast(x, DType::f32); },
      [](const Array& x) { return round_to(DType::f32, x); }));
  rows.back().output_dtype = DType::f32;
  rows.back().differentiable = false;  // f32 results are too coarse for differences
  for (DType dtype : {DType::f16, DType::bf16}) {
    rows.push_back(move_row(
        "cast", text("to ", dtype), any, [dtype](const Tensor& x) { return cast(x, dtype); },
        [dtype](const Array& x) { return round_to(dtype, x); }));
    rows.back().output_dtype = dtype;
    rows.back().differentiable = false;
  }
}

}  // namespace

std::vector<OpRow> shape_rows() {
  std::vector<OpRow> rows;
  append_reshapes(rows);
  append_views(rows);
  rows.push_back(
      join_row(false, 0, {{{3, 4}, {2, 4}, {1, 4}}, {{3}, {0}}, {{0, 2}, {2, 2}}, {{5}}}));
  rows.push_back(join_row(false, 1, {{{3, 4}, {3, 1}}, {{2, 1, 3, 2, 2}, {2, 2, 3, 2, 2}}}));
  rows.push_back(join_row(true, 0, {{{3, 4}, {3, 4}, {3, 4}}, {{}, {}}, {{0}, {0}}, {{5}}}));
  rows.push_back(join_row(true, 1, {{{3, 4}, {3, 4}}, {{2, 3, 2}, {2, 3, 2}}}));
  rows.push_back(split_row());
  rows.push_back(sum_to_row());
  append_conversions(rows);
  return rows;
}

}  // namespace binade::op_table
