// Rows of the ops that move data: exact in every dtype.
#include <tests/op_table/move_row.h>

#include <binade/core/tensor/create.h>

#include <algorithm>

namespace binade::op_table {
namespace {

OpRow reshape_row(const Dims& wanted, const Dims& sizes, const std::vector<Shapes>& shapes) {
  OpRow row = move_row(
      "reshape", text("to ", wanted), shapes, [=](const Tensor& x) { return reshape(x, wanted); },
      [=](const Array& x) { return renamed(x, sizes); });
  row.timed = std::count(wanted.begin(), wanted.end(), -1) > 0 ? lengthened(shapes[0]) : shapes[0];
  return row;
}

// Transfers to the tensor's own device and to the CPU: every build has these two.
void append_transfers(std::vector<OpRow>& rows) {
  rows.push_back(move_row(
      "to_device", "its own", {{{4, 6}}, {{2, 3, 4}}, {{}}, {{0, 3}}},
      [](const Tensor& x) { return to_device(x, x.defined() ? x.device() : Device{}); },
      [](const Array& x) { return x; }));
  rows.push_back(move_row(
      "to_device", "cpu and back", {{{4, 6}}, {{2, 3, 4}}, {{}}, {{0, 3}}},
      [](const Tensor& x) {
        const Tensor on_cpu = to_device(x, Device{});
        return to_device(on_cpu, x.device());
      },
      [](const Array& x) { return x; }));
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
      "expand", "to 2, -1, 3", {{{4, 3}}, {{5, 1}}, {{1, 3}}},
      [](const Tensor& x) {
        return expand(x, {2, -1, 3});
      },
      [](const Array& x) {
        return generate({2, x.sizes[0], 3}, [&](const Dims& y) { return x.at(y); });
      }));
  rows.push_back(move_row(
      "expand", "to 2, 4, 3", {{{4, 3}}, {{4, 1}}, {{1, 1}}, {{}}, {{3}}, {{2, 1, 3}}},
      [](const Tensor& x) {
        return expand(x, {2, 4, 3});
      },
      [](const Array& x) {
        return generate({2, 4, 3}, [&](const Dims& y) { return x.at(y); });
      }));
  rows.back().timed = rows.back().shapes[0];
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
      "slice", "odd elements of dim 1",
      {{{3, 6}}, {{2, 5, 2}}, {{2, 1}}, {{3, 0}}, {{2, 4, 3, 2, 2}}},
      [](const Tensor& x) { return slice(x, 1, 1, INT64_MAX, 2); },
      [](const Array& x) {
        Dims sizes = x.sizes;
        sizes[1] /= 2;
        return generate(sizes, [&](Dims y) {
          y[1] = 2 * y[1] + 1;
          return x.at(y);
        });
      }));
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

void append_conversions(std::vector<OpRow>& rows) {
  const auto same = [](const Array& x) { return x; };
  const std::vector<Shapes> any = {{{4, 6}}, {{}}, {{0, 3}}, {{2, 3, 2, 2}}, {{2, 1, 3, 2, 2}}};
  rows.push_back(move_row("clone", "", any, clone, same));
  rows.push_back(move_row("contiguous", "", any, contiguous, same));
  rows.push_back(move_row("channels_last", "",
                          {{{2, 3, 2, 4}}, {{2, 3, 4}}, {{2, 1, 3, 2, 2}}, {{0, 2, 3, 3}}},
                          channels_last, same));
  add_errors(rows.back(), {fails("two dims", [] { channels_last(ones({3, 4})); })});
  // A cast to f64 and back loses nothing, so the result is the input in every dtype.
  rows.push_back(move_row(
      "cast", "to f64 and back", any,
      [](const Tensor& x) { return cast(cast(x, DType::f64), x.dtype()); }, same));
  rows.back().errors = {fails("undefined operand", [] { cast(Tensor(), DType::f64); })};
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
  append_transfers(rows);
  append_reshapes(rows);
  append_views(rows);
  append_conversions(rows);
  return rows;
}

}  // namespace binade::op_table
