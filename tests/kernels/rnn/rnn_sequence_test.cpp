// Compares a whole sequence with a product and a cell per step: the same bits in f32 and f64, which
// round nothing in between, else close.
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/rnn/rnn_sequence.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::rnn_sequence_test {
namespace {

constexpr RNNCell kCells[] = {RNNCell::tanh, RNNCell::relu, RNNCell::lstm, RNNCell::gru};

struct Sequence {
  RNNCell cell;
  DType dtype;
  int64_t steps, batch, hidden;
  bool reverse = false, bias = true, out = true, last = true;
  std::vector<int> weight_order = {0, 1};

  bool lstm() const { return cell == RNNCell::lstm; }
  bool gru() const { return cell == RNNCell::gru; }
  RNNOrder order() const { return {.reverse = reverse, .steps = steps}; }
};

StridedArray random(DType dtype, const Dims& sizes, uint32_t seed, double deviation = 1,
                    const std::vector<int>& order = {}) {
  const auto count = static_cast<size_t>(element_count(sizes));
  return make_array(dtype, sizes, random_values(count, seed, 0, deviation), order);
}

View at_place(const View& v, int64_t i) {
  if (!v) {
    return kNoView;
  }
  const int64_t bytes = i * v.strides[0] * static_cast<int64_t>(size_of(v.dtype));
  return view_of(v.data + bytes, v.dtype, Dims{v.size(1), v.size(2)},
                 Dims{v.strides[1], v.strides[2]});
}

// The arrays of one computation. The inputs have fixed seeds.
struct Computation {
  Sequence s;
  DType compute = compute_dtype(s.dtype);
  int64_t gates = gate_count(s.cell) * s.hidden;
  Dims wide{s.steps, s.batch, gates}, states{s.steps + 1, s.batch, s.hidden},
      state{s.batch, s.hidden};
  StridedArray gate = random(s.dtype, wide, 1), h = random(s.dtype, states, 2),
               c = random(compute, states, 3), product{s.dtype, wide},
               weight = random(s.dtype, {gates, s.hidden}, 4,
                               1 / std::sqrt(static_cast<double>(s.hidden)), s.weight_order),
               bias = random(s.dtype, {gates}, 5),
               dh_out = random(s.dtype, {s.steps, s.batch, s.hidden}, 6, 1, {1, 0, 2}),
               dh_last = random(s.dtype, state, 7), dc = random(compute, state, 8),
               dgate{s.dtype, wide}, dproduct{s.dtype, wide}, dh_before{s.dtype, state};
  View gv = gate.view(), hv = h.view(), wv = weight.view(), dgv = dgate.view(),
       dhv = dh_before.view(), bv = s.bias ? bias.view() : kNoView,
       cv = s.lstm() ? c.view() : kNoView, pv = s.gru() ? product.view() : kNoView,
       dov = s.out ? dh_out.view() : kNoView, dlv = s.last ? dh_last.view() : kNoView,
       dcv = s.lstm() ? dc.view() : kNoView, dpv = s.gru() ? dproduct.view() : kNoView;

  explicit Computation(const Sequence& sequence) : s(sequence) {}

  void at_once() {
    cpu::rnn_sequence_forward({.cell = s.cell,
                               .order = s.order(),
                               .gates = gv,
                               .h = hv,
                               .c = cv,
                               .products = pv,
                               .weight = wv,
                               .bias = bv});
    cpu::rnn_sequence_backward({.cell = s.cell,
                                .order = s.order(),
                                .gates = gv,
                                .h = hv,
                                .c = cv,
                                .products = pv,
                                .weight = wv,
                                .dh_out = dov,
                                .dh_last = dlv,
                                .dgates = dgv,
                                .dproducts = dpv,
                                .dc = dcv,
                                .dh_before = dhv});
  }

  void step_by_step() {
    const RNNOrder order = s.order();
    const View transposed = view_of(wv.data, wv.dtype, Dims{wv.size(1), wv.size(0)},
                                    Dims{wv.strides[1], wv.strides[0]});
    for (int64_t i = 0; i < s.steps; ++i) {
      const View gates = at_place(gv, order.step(i)), before = at_place(hv, order.before(i)),
                 after = at_place(hv, order.after(i)), products = at_place(pv, order.step(i)),
                 c_after = at_place(cv, order.after(i)), c_before = at_place(cv, order.before(i));
      cpu::gemm({.a = before,
                 .b = transposed,
                 .y = s.gru() ? products : gates,
                 .epilogue = {.bias = bv, .accumulate = !s.gru()}});
      cpu::rnn_cell_forward({.cell = s.cell,
                             .gates = gates,
                             .h = after,
                             .c = c_after,
                             .c_before = c_before,
                             .products = products,
                             .h_before = s.gru() ? before : kNoView});
    }
    back(order);
  }

  std::vector<StridedArray*> results() {
    std::vector<StridedArray*> all{&h, &dgate};
    if (s.lstm()) {
      all.insert(all.end(), {&c, &dc});
    } else if (s.gru()) {
      all.insert(all.end(), {&product, &dproduct, &dh_before});
    }
    return all;
  }

 private:
  void back(const RNNOrder& order) {
    StridedArray carried = s.last ? dh_last : StridedArray(s.dtype, state);
    const View next = carried.view();
    for (int64_t i = s.steps - 1; i >= 0; --i) {
      const int64_t step = order.step(i);
      const View gates = at_place(gv, step), after = at_place(hv, order.after(i)),
                 before = at_place(hv, order.before(i)), products = at_place(pv, step),
                 c_after = at_place(cv, order.after(i)), c_before = at_place(cv, order.before(i)),
                 dgates = at_place(dgv, step), dproducts = at_place(dpv, step),
                 out = at_place(dov, step);
      const bool none = i == s.steps - 1 && !s.last;
      cpu::rnn_cell_backward({.cell = s.cell,
                              .gates = gates,
                              .h = after,
                              .c = c_after,
                              .c_before = c_before,
                              .products = products,
                              .h_before = s.gru() ? before : kNoView,
                              .dh_out = out,
                              .dh_next = none ? kNoView : next,
                              .dgates = dgates,
                              .dc = dcv,
                              .dproducts = dproducts,
                              .dh_before = !s.gru() ? kNoView
                                           : i == 0 ? dhv
                                                    : next});
      if (i > 0) {
        cpu::gemm({.a = s.gru() ? dproducts : dgates,
                   .b = wv,
                   .y = next,
                   .epilogue = {.accumulate = s.gru()}});
      }
    }
  }
};

void compare(const Sequence& s, const std::string& what) {
  Computation got(s), expected(s);
  got.at_once();
  expected.step_by_step();
  const std::vector<StridedArray*> a = got.results(), b = expected.results();
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string name =
        text(what, " ", s.dtype, " cell ", static_cast<int>(s.cell), " result ", i);
    if (compute_dtype(s.dtype) == s.dtype) {
      ASSERT_TRUE(a[i]->bytes() == b[i]->bytes()) << name;
    } else {  // states and gradients are rounded elsewhere
      expect_close(*a[i], s.dtype, values_of(*b[i]), 8 * epsilon(s.dtype) / epsilon(DType::f32),
                   name, 1);
    }
  }
}

// Covers sizes around vectors, panels, tiles, and one block of k.
TEST(RNNSequence, HasTheBitsOfSteps) {
  for (DType dtype : floating_dtypes()) {
    for (RNNCell cell : kCells) {
      for (const auto& [batch, hidden] :
           {std::pair<int64_t, int64_t>{1, 1}, {1, 40}, {4, 16}, {7, 33}, {15, 9}, {50, 17}}) {
        compare({cell, dtype, 3, batch, hidden}, text(batch, " x ", hidden));
      }
      compare({cell, dtype, 2, 3, 401}, "two blocks of k");
      compare({cell, dtype, 1, 5, 12}, "one step");
      compare({.cell = cell, .dtype = dtype, .steps = 4, .batch = 5, .hidden = 19, .reverse = true},
              "reverse");
      compare({.cell = cell,
               .dtype = dtype,
               .steps = 3,
               .batch = 2,
               .hidden = 24,
               .bias = false,
               .last = false},
              "no bias, no gradient of the last state");
      compare({.cell = cell,
               .dtype = dtype,
               .steps = 3,
               .batch = 2,
               .hidden = 8,
               .out = false,
               .weight_order = {1, 0}},
              "no outer gradient, transposed weight");
    }
  }
}

TEST(RNNSequence, SameBitsForAnyThreadCount) {
  for (RNNCell cell : kCells) {
    expect_thread_invariant([cell] {
      Computation run({cell, DType::f32, 3, 100, 130});
      run.at_once();
      std::vector<std::byte> all;
      for (const StridedArray* array : run.results()) {
        append(all, *array);
      }
      return all;
    });
  }
}

TEST(RNNSequence, EmptyBatch) {
  Computation run({RNNCell::lstm, DType::f32, 2, 0, 5});
  run.at_once();
}

TEST(RNNSequence, ErrorsNameTheProblem) {
  Computation run({RNNCell::lstm, DType::f32, 2, 3, 5});
  StridedArray wrong(DType::f32, {20, 4});
  run.wv = wrong.view();
  EXPECT_EQ(error_of([&] { run.at_once(); }),
            "rnn_sequence: got gates [2, 3, 20], h [3, 3, 5] and weight f32 [20, 4], which do not "
            "fit each other");
}

TEST(RNNSequence, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::rnn_sequence_test
