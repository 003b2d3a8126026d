// The loop over the steps of a sequence. A step is cut into panels of hidden units and ranges of
// rows; all of a step end before the next one begins.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <binade/kernels/rnn/rnn_sequence.h>
#include <binade/kernels/rnn/rnn_sequence_isa_internal.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace binade::kernels {
namespace {

constexpr int64_t kRowsOfTask = 48;
// A thread gets at least kGrain multiplications. Fewer rows than kReadRows count as kReadRows,
// since then reading the weights takes most of the time.
constexpr int64_t kGrain = 200'000, kReadRows = 4;

struct Sizes {
  int64_t steps, batch, hidden, gates;  // gates: columns of the gates
};

// Place i of an array over time.
std::byte* place(const View& v, int64_t i) {
  return v ? v.data + i * v.strides[0] * static_cast<int64_t>(size_of(v.dtype)) : nullptr;
}

Sizes checked_sizes(const char* op, RNNCell cell, const View& gates, const View& h,
                    const View& weight) {
  check(
      gates.dim() == 3 && h.dim() == 3 && weight.dim() == 2 && gates.contiguous && h.contiguous, op,
      ": got gates ", gates.sizes, ", h ", h.sizes, " and weight ", weight.sizes,
      ", expected contiguous [steps, batch, gates * hidden] and [steps + 1, batch, hidden], and a "
      "matrix");
  const Sizes n{gates.size(0), gates.size(1), h.size(2), gates.size(2)};
  check(n.gates == gate_count(cell) * n.hidden && h.size(0) == n.steps + 1 &&
            h.size(1) == n.batch && weight.size(0) == n.gates && weight.size(1) == n.hidden &&
            weight.dtype == h.dtype && gates.dtype == h.dtype,
        op, ": got gates ", gates.sizes, ", h ", h.sizes, " and weight ", weight.dtype, " ",
        weight.sizes, ", which do not fit each other");
  return n;
}

void check_sequence(const char* op, const char* name, const View& v, DType dtype, Dims sizes) {
  check(v && v.contiguous && v.dtype == dtype && v.sizes == sizes, op, ": got ", name, " ", v.dtype,
        " ", v.sizes, ", expected ", dtype, " ", sizes, ", contiguous");
}

void check_rows(const char* op, const RNNOrder& order, int64_t batch) {
  int64_t before = batch;
  check(order.rows.empty() || (static_cast<int64_t>(order.rows.size()) == order.steps &&
                               order.rows[0] == batch && !order.reverse),
        op, ": got numbers of rows for ", order.rows.size(), " steps, expected ", order.steps,
        " of them, from ", batch, " down, and steps in their order");
  for (const int64_t rows : order.rows) {
    check(rows >= 0 && rows <= before, op, ": got ", rows, " rows after ", before,
          ", expected no more than before");
    before = rows;
  }
}

// The recurrent weights in panels of hidden units.
class Panels {
 public:
  Panels(bool forward, RNNCell cell, const View& weight)
      : forward_(forward),
        gates_(forward ? gate_count(cell) : 1),
        k_(weight.size(forward ? 1 : 0)),
        hidden_(weight.size(1)),
        weight_(weight),
        compute_(compute_dtype(weight.dtype)) {
    RNNPanelUnits units;
    rnn_panel_units_best(forward, cell, units);
    units_ = compute_ == DType::f64 ? units.f64 : units.f32;
  }
  int64_t count() const { return ceil_div(hidden_, units_); }
  int64_t multiplications() const { return k_ * gates_ * units_; }  // of a row

  // Packs the weights, or takes the packed weights that `packing` keeps.
  void pack(WeightPacking* packing) {
    const size_t bytes = static_cast<size_t>(weight_.numel) * size_of(compute_);
    const auto fill = [this](std::byte* target) { pack_to(target); };
    data_ = packing ? packing->get({.order = PackingFormat::Order::recurrent_gates, .bytes = bytes},
                                   fill)
                    : nullptr;
    if (!data_) {
      own_.emplace(bytes + WeightPacking::kPadding);
      fill(own_->as<std::byte>());
      data_ = own_->as<std::byte>();
    }
  }
  // Panel i, without its operand a.
  RNNStepPanel panel(int64_t i) const {
    return {.a_row = k_,
            .k = k_,
            .weight = data_ + i * units_ * gates_ * k_ * static_cast<int64_t>(size_of(compute_)),
            .unit = i * units_,
            .units = std::min(units_, hidden_ - i * units_)};
  }

 private:
  void pack_to(std::byte* target) {
    const int64_t row = weight_.strides[0], column = weight_.strides[1];
    const auto size = static_cast<int64_t>(size_of(weight_.dtype)),
               packed = static_cast<int64_t>(size_of(compute_));
    parallel_for(count(), ceil_div(32'768, multiplications()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t unit = i * units_, units = std::min(units_, hidden_ - unit);
        copy_strided_best(StridedCopy{
            .source = weight_.data + unit * (forward_ ? row : column) * size,
            .from = weight_.dtype,
            .to = compute_,
            .source_strides = {hidden_ * row, forward_ ? column : row, forward_ ? row : column},
            .target = target + unit * gates_ * k_ * packed,
            .target_strides = {units, gates_ * units, 1},
            .sizes = {gates_, k_, units}});
      }
    });
  }

  const bool forward_;
  const int64_t gates_, k_, hidden_;
  const View& weight_;
  const DType compute_;
  int64_t units_ = 0;
  std::optional<Workspace> own_;
  const std::byte* data_ = nullptr;
};

// A contiguous matrix [rows, columns] in the compute dtype: its own memory, or a copy of it.
class Widened {
 public:
  Widened(DType dtype, int64_t rows, int64_t columns)
      : dtype_(dtype),
        rows_(rows),
        columns_(columns),
        memory_(dtype == compute_dtype(dtype) ? 0 : static_cast<size_t>(rows * columns) * 4) {}
  const std::byte* read(const std::byte* matrix) const {
    if (dtype_ == compute_dtype(dtype_)) {
      return matrix;
    }
    copy_strided_best(StridedCopy{.source = matrix,
                                  .from = dtype_,
                                  .to = compute_dtype(dtype_),
                                  .source_strides = {0, columns_, 1},
                                  .target = memory_.as<std::byte>(),
                                  .target_strides = {0, columns_, 1},
                                  .sizes = {1, rows_, columns_}});
    return memory_.as<std::byte>();
  }

 private:
  const DType dtype_;
  const int64_t rows_, columns_;
  Workspace memory_;
};

// A contiguous copy of a vector or matrix in the compute dtype; null if it is undefined.
class Copied {
 public:
  Copied(const View& v, DType compute)
      : memory_(static_cast<size_t>(v ? v.numel : 0) * size_of(compute)), defined_(bool(v)) {
    if (v) {
      cpu::copy({.x = v, .y = view_of(memory_.as<std::byte>(), compute, v.sizes)});
    }
  }
  std::byte* data() const { return defined_ ? memory_.as<std::byte>() : nullptr; }

 private:
  Workspace memory_;
  bool defined_;
};

// The gradients of the gates (gru: of the products) of a step and of the one after it,
// [batch][gates] in the compute dtype, 0 for rows that a step does not have. Rows are an odd number
// of cache lines apart: rows whose distance is a power of two would evict each other.
class StepGradients {
 public:
  StepGradients(const Sizes& n, DType compute)
      : size_(static_cast<int64_t>(size_of(compute))),
        row_bytes_((ceil_div(n.gates * size_, kLine) | 1) * kLine),
        step_bytes_(n.batch * row_bytes_),
        memory_(static_cast<size_t>(2 * step_bytes_)) {
    std::memset(memory_.as<void>(), 0, static_cast<size_t>(2 * step_bytes_));
  }
  int64_t row() const { return row_bytes_ / size_; }  // elements
  std::byte* of(int64_t step) const { return memory_.as<std::byte>() + step % 2 * step_bytes_; }

 private:
  static constexpr int64_t kLine = 64;
  const int64_t size_, row_bytes_, step_bytes_;
  Workspace memory_;
};

// gru: the part of the states' gradients that bypasses the products, [batch][hidden], passed from
// step to step. It begins with the gradients of the last states from outside. Null for other cells.
class DirectGradients {
 public:
  DirectGradients(bool gru, const Copied& last, const Sizes& n, DType compute)
      : gru_(gru), memory_(gru ? static_cast<size_t>(n.batch * n.hidden) * size_of(compute) : 0) {
    const size_t bytes = static_cast<size_t>(n.batch * n.hidden) * size_of(compute);
    if (gru && last.data()) {
      std::memcpy(memory_.as<void>(), last.data(), bytes);
    } else if (gru) {
      std::memset(memory_.as<void>(), 0, bytes);
    }
  }
  std::byte* data() const { return gru_ ? memory_.as<std::byte>() : nullptr; }

 private:
  bool gru_;
  Workspace memory_;
};

// Calls f(panel, first row, rows) for all parts of a step of `batch` rows, on several threads.
// Neighbouring tasks read the same weights, and a thread has the same ones in every step.
template <class F>
void for_tasks(const Panels& panels, int64_t batch, const F& f) {
  if (batch == 0) {
    return;
  }
  const int64_t ranges = ceil_div(batch, kRowsOfTask);
  const int64_t rows = std::max(kReadRows, batch / ranges);
  parallel_for(panels.count() * ranges, ceil_div(kGrain, panels.multiplications() * rows),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t range = begin % ranges,
                                 stop = std::min(ranges, range + end - begin);
                   const int64_t first = batch * range / ranges;
                   f(panels.panel(begin / ranges), first, batch * stop / ranges - first);
                   begin += stop - range;
                 }
               });
}

// Calls f(panel, rows of the cell) for all of computation step i. `a` has the arrays over time.
template <class Arguments, class F>
void for_cells(const Arguments& a, const Panels& panels, int64_t i, const F& f) {
  const int64_t step = a.order.step(i), before = a.order.before(i), after = a.order.after(i);
  const int64_t batch = a.h.size(1), hidden = a.h.size(2);
  for_tasks(panels, a.order.rows_in(i, batch),
            [&](const RNNStepPanel& panel, int64_t first, int64_t rows) {
              f(panel, RNNCellRows{.cell = a.cell,
                                   .dtype = a.h.dtype,
                                   .first = first,
                                   .rows = rows,
                                   .hidden = hidden,
                                   .gates = place(a.gates, step),
                                   .h = place(a.h, after),
                                   .c = place(a.c, after),
                                   .c_before = place(a.c, before),
                                   .products = place(a.products, step),
                                   .h_before = place(a.h, before)});
            });
}

}  // namespace

bool cpu::rnn_sequence_runs(DType dtype) {
  return gemm_variant() != KernelVariant::eigen && !pairs_run(dtype) && !amx_runs(dtype);
}

void cpu::rnn_sequence_forward(const RNNSequenceForward& a) {
  constexpr const char* kOp = "rnn_sequence";
  const Sizes n = checked_sizes(kOp, a.cell, a.gates, a.h, a.weight);
  const DType dtype = a.h.dtype, compute = compute_dtype(dtype);
  if (a.cell == RNNCell::lstm) {
    check_sequence(kOp, "c", a.c, compute, a.h.sizes);
  } else if (a.cell == RNNCell::gru) {
    check_sequence(kOp, "products", a.products, dtype, a.gates.sizes);
  }
  check_rows(kOp, a.order, n.batch);
  if (a.h.numel == 0) {
    return;
  }
  Panels panels(true, a.cell, a.weight);
  panels.pack(a.packing);
  const Copied bias(a.bias, compute);
  const Widened widened(dtype, n.batch, n.hidden);
  for (int64_t i = 0; i < n.steps; ++i) {
    const std::byte* state = widened.read(place(a.h, a.order.before(i)));
    for_cells(a, panels, i, [&](RNNStepPanel panel, const RNNCellRows& cell) {
      panel.a = state;
      rnn_step_best(RNNStep{.cell = cell, .panel = panel, .bias = bias.data()});
    });
  }
}

void cpu::rnn_sequence_backward(const RNNSequenceBackward& a) {
  constexpr const char* kOp = "rnn_sequence backward";
  const Sizes n = checked_sizes(kOp, a.cell, a.gates, a.h, a.weight);
  const DType dtype = a.h.dtype, compute = compute_dtype(dtype);
  const Dims state{n.batch, n.hidden};
  check_sequence(kOp, "dgates", a.dgates, dtype, a.gates.sizes);
  if (a.cell == RNNCell::lstm) {
    check_sequence(kOp, "c", a.c, compute, a.h.sizes);
    check_sequence(kOp, "dc", a.dc, compute, state);
  } else if (a.cell == RNNCell::gru) {
    check_sequence(kOp, "products", a.products, dtype, a.gates.sizes);
    check_sequence(kOp, "dproducts", a.dproducts, dtype, a.gates.sizes);
    check_sequence(kOp, "dh_before", a.dh_before, dtype, state);
  }
  check_rows(kOp, a.order, n.batch);
  if (a.h.numel == 0) {
    return;
  }
  const bool gru = a.cell == RNNCell::gru;
  Panels panels(false, a.cell, a.weight);
  panels.pack(nullptr);
  const Copied last(a.dh_last, compute);
  const DirectGradients direct(gru, last, n, compute);
  const StepGradients gradients(n, compute);
  int64_t later = 0;  // rows in the step after this one
  for (int64_t i = n.steps - 1; i >= 0; --i) {
    const int64_t step = a.order.step(i), rows = a.order.rows_in(i, n.batch);
    const bool some_end = rows > later;
    for_cells(a, panels, i, [&](RNNStepPanel panel, const RNNCellRows& cell) {
      panel.a = later == 0 ? nullptr : gradients.of(i + 1);
      panel.a_row = gradients.row();
      rnn_step_gradient_best(
          RNNStepGradient{.cell = {.values = cell,
                                   .dh_out = place(a.dh_out, step),
                                   .dh_row = a.dh_out ? a.dh_out.strides[1] : 0,
                                   .dh_column = a.dh_out ? a.dh_out.strides[2] : 0,
                                   .dh_next = gru        ? direct.data()
                                              : some_end ? last.data()
                                                         : nullptr,
                                   .dgates = place(a.dgates, step),
                                   .dc = a.dc.data,
                                   .dproducts = place(a.dproducts, step),
                                   .dh_before = direct.data()},
                          .panel = panel,
                          .next_a = gradients.of(i)});
    });
    if (last.data() && some_end) {  // the next rows that end find 0 above them
      std::memset(last.data(), 0, static_cast<size_t>(rows * n.hidden) * size_of(compute));
    }
    later = rows;
  }
  if (gru) {
    cpu::copy({.x = view_of(direct.data(), compute, state), .y = a.dh_before});
  }
}

}  // namespace binade::kernels
