// Compares recurrent cells with plain f64 formulas, forward and backward.
#include <binade/kernels/rnn/rnn_cell.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::rnn_cell_test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One element of a cell; `gate` and `product` are the inputs of the step.
struct Element {
  RNNCell cell;
  double gate[4], product[3], h_before, c_before;
  double value[4], h, c;                               // after
  double dgate[4], dproduct[3], dh_before, dc_before;  // gradients

  void run(double dh, double dc) {
    if (is_plain(cell)) {
      h = cell == RNNCell::tanh ? std::tanh(gate[0]) : std::max(gate[0], 0.0);
      dgate[0] = dh * (cell == RNNCell::tanh ? 1 - h * h : h > 0);
      return;
    }
    cell == RNNCell::lstm ? lstm(dh, dc) : gru(dh);
  }

 private:
  void lstm(double dh, double dc) {
    for (int k = 0; k < 4; ++k) {
      value[k] = k == 2 ? std::tanh(gate[k]) : sigmoid(gate[k]);
    }
    c = value[1] * c_before + value[0] * value[2];
    h = value[3] * std::tanh(c);
    const double t = std::tanh(c), d = dc + dh * value[3] * (1 - t * t);
    const double inner[4] = {d * value[2], d * c_before, d * value[0], dh * t};
    for (int k = 0; k < 4; ++k) {
      dgate[k] = inner[k] * (k == 2 ? 1 - value[2] * value[2] : value[k] * (1 - value[k]));
    }
    dc_before = d * value[1];
  }
  void gru(double dh) {
    const double r = sigmoid(gate[0] + product[0]), z = sigmoid(gate[1] + product[1]);
    const double n = std::tanh(gate[2] + r * product[2]);
    value[0] = r, value[1] = z, value[2] = n;
    h = (1 - z) * n + z * h_before;
    dgate[2] = dh * (1 - z) * (1 - n * n);
    dgate[1] = dproduct[1] = dh * (h_before - n) * z * (1 - z);
    dgate[0] = dproduct[0] = dgate[2] * product[2] * r * (1 - r);
    dproduct[2] = dgate[2] * r;
    dh_before = dh * z;
  }
};

struct Problem {
  RNNCell cell;
  DType dtype;
  int64_t batch, hidden;
  bool out = true, next = true;  // which parts of dh exist
  int64_t gates = gate_count(cell);
  Dims state{batch, hidden}, wide{batch, gates*hidden};
  DType compute = compute_dtype(dtype);
  StridedArray gate = random(dtype, wide, 1), product = random(dtype, wide, 2),
               h_before = random(dtype, state, 3), c_before = random(compute, state, 4),
               dh_out = make_array(dtype, state, random_values(size(), 5), {1, 0}, 2),
               dh_next = random(dtype, state, 6), dc = random(compute, state, 7);
  StridedArray h{dtype, state}, c{compute, state}, dgates{dtype, wide}, dproducts{dtype, wide},
      dh_before{dtype, state};

  size_t size() const { return static_cast<size_t>(batch * hidden); }
  static StridedArray random(DType dtype, const Dims& sizes, uint32_t seed) {
    return make_array(dtype, sizes, random_values(static_cast<size_t>(element_count(sizes)), seed));
  }

  void check_all(const std::string& what) {
    const bool lstm = cell == RNNCell::lstm, gru = cell == RNNCell::gru;
    std::vector<Element> elements = before();
    const View cv = lstm ? c.view() : kNoView, cb = lstm ? c_before.view() : kNoView;
    const View pv = gru ? product.view() : kNoView, hb = gru ? h_before.view() : kNoView;
    const View hv = h.view(), gv = gate.view();
    rnn_cell_forward({.cell = cell,
                      .gates = gv,
                      .h = hv,
                      .c = cv,
                      .c_before = cb,
                      .products = pv,
                      .h_before = hb});
    const Values dh1 = values_of(dh_out), dh2 = values_of(dh_next), dcs = values_of(dc);
    const View ov = out ? dh_out.view() : kNoView, nv = next ? dh_next.view() : kNoView;
    const View dgv = dgates.view(), dcv = lstm ? dc.view() : kNoView;
    const View dpv = gru ? dproducts.view() : kNoView, dhb = gru ? dh_before.view() : kNoView;
    rnn_cell_backward({.cell = cell,
                       .gates = gv,
                       .h = hv,
                       .c = cv,
                       .c_before = cb,
                       .products = pv,
                       .h_before = hb,
                       .dh_out = ov,
                       .dh_next = nv,
                       .dgates = dgv,
                       .dc = dcv,
                       .dproducts = dpv,
                       .dh_before = dhb});
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i].run((out ? dh1[i] : 0) + (next ? dh2[i] : 0), dcs[i]);
    }
    compare(elements, what);
  }

 private:
  // The index of gate k of element i in an array with all gates.
  size_t at(size_t i, size_t k) const {
    const auto n = static_cast<size_t>(hidden);
    return (i / n * static_cast<size_t>(gates) + k) * n + i % n;
  }
  std::vector<Element> before() {
    const Values g = values_of(gate), p = values_of(product), hb = values_of(h_before),
                 cb = values_of(c_before);
    std::vector<Element> elements(size());
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i].cell = cell;
      for (size_t k = 0; k < static_cast<size_t>(gates); ++k) {
        elements[i].gate[k] = g[at(i, k)];
        elements[i].product[k < 3 ? k : 0] = p[at(i, k < 3 ? k : 0)];
      }
      elements[i].h_before = hb[i];
      elements[i].c_before = cb[i];
    }
    return elements;
  }
  void compare(const std::vector<Element>& elements, const std::string& what) const {
    Values vh, vc, vdh, vdc, vg(values_of(dgates).size()), vp(vg.size()), values(vg.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      const Element& e = elements[i];
      vh.push_back(e.h);
      vc.push_back(e.c);
      vdh.push_back(e.dh_before);
      vdc.push_back(e.dc_before);
      for (size_t k = 0; k < static_cast<size_t>(gates); ++k) {
        vg[at(i, k)] = e.dgate[k];
        vp[at(i, k)] = e.dproduct[k < 3 ? k : 0];
        values[at(i, k)] = e.value[k];
      }
    }
    // The backward reads gate values that were rounded to the dtype.
    const double units = 8 + 4 * epsilon(dtype) / epsilon(compute);
    expect_close(h, dtype, vh, 8, what + " h", 1);
    expect_close(dgates, dtype, vg, units, what + " dgates", 1);
    if (cell == RNNCell::lstm) {
      expect_close(c, compute, vc, 8, what + " c", 1);
      expect_close(dc, compute, vdc, units, what + " dc", 1);
    } else if (cell == RNNCell::gru) {
      expect_close(dproducts, dtype, vp, units, what + " dproducts", 1);
      expect_close(dh_before, dtype, vdh, units, what + " dh_before", 1);
    }
    if (!is_plain(cell)) {
      expect_close(gate, dtype, values, 8, what + " gates", 1);
    }
  }
};

constexpr RNNCell kCells[] = {RNNCell::tanh, RNNCell::relu, RNNCell::lstm, RNNCell::gru};

TEST(RNNCell, MatchesFormulasForAllSizesAndDTypes) {
  for (DType dtype : floating_dtypes()) {
    for (RNNCell cell : kCells) {
      for (const Dims& sizes : {Dims{1, 1}, {3, 7}, {5, 33}, {2, 300}}) {
        const std::string what = text("cell ", static_cast<int>(cell), " ", sizes);
        Problem{cell, dtype, sizes[0], sizes[1]}.check_all(what);
      }
      Problem{cell, dtype, 3, 5, true, false}.check_all("only dh_out");
      Problem{cell, dtype, 3, 5, false, true}.check_all("only dh_next");
    }
  }
}

TEST(RNNCell, EmptyBatch) {
  for (RNNCell cell : kCells) {
    Problem{cell, DType::f32, 0, 5}.check_all("empty");
  }
}

TEST(RNNCell, SameBitsForAnyThreadCount) {
  for (RNNCell cell : kCells) {
    expect_thread_invariant([cell] {
      Problem p{cell, DType::f32, 64, 130};
      p.check_all("threads");
      std::vector<std::byte> all;
      append(all, p.h);
      append(all, p.dgates);
      return all;
    });
  }
}

TEST(RNNCell, ErrorsNameTheProblem) {
  StridedArray h(DType::f32, {2, 3}), gates(DType::f32, {2, 6});
  const View hv = h.view(), gv = gates.view();
  EXPECT_EQ(error_of([&] { rnn_cell_forward({.cell = RNNCell::lstm, .gates = gv, .h = hv}); }),
            "rnn_cell: got gates f32 [2, 6], expected f32 [2, 12], contiguous");
}

TEST(RNNCell, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::rnn_cell_test
