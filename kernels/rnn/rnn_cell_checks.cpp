#include <binade/kernels/rnn/rnn_cell.h>

namespace binade::kernels {
namespace {

struct Expected {
  const char* name;
  const View& view;
  DType dtype;
  int64_t columns;
  bool optional = false;
  bool strided = false;
};

void check_views(const char* op, const View& h, std::initializer_list<Expected> views) {
  check(is_floating(h.dtype) && h.dim() == 2, op, ": got h ", h.dtype, " ", h.sizes,
        ", expected [batch, hidden] of a floating dtype");
  for (const Expected& e : views) {
    if (e.optional && !e.view) {
      continue;
    }
    const Dims sizes{h.size(0), e.columns};
    check(e.view.dtype == e.dtype && e.view.sizes == sizes && (e.strided || e.view.contiguous), op,
          ": got ", e.name, " ", e.view.dtype, " ", e.view.sizes,
          e.view.contiguous ? "" : " with strides", ", expected ", e.dtype, " ", sizes,
          ", contiguous");
  }
}

}  // namespace

void check_arguments(const RNNCellForward& a) {
  const char* op = "rnn_cell";
  const DType t = a.h.dtype, c = compute_dtype(t);
  const int64_t n = a.h.dim() == 2 ? a.h.size(1) : 0, gates = gate_count(a.cell) * n;
  check_views(op, a.h, {{"h", a.h, t, n}, {"gates", a.gates, t, gates}});
  if (a.cell == RNNCell::lstm) {
    check_views(op, a.h, {{"c", a.c, c, n}, {"c_before", a.c_before, c, n}});
  } else if (a.cell == RNNCell::gru) {
    check_views(op, a.h, {{"products", a.products, t, gates}, {"h_before", a.h_before, t, n}});
  }
}

void check_arguments(const RNNCellBackward& a) {
  const char* op = "rnn_cell backward";
  const DType t = a.h.dtype, c = compute_dtype(t);
  const int64_t n = a.h.dim() == 2 ? a.h.size(1) : 0, gates = gate_count(a.cell) * n;
  check_views(op, a.h,
              {{"h", a.h, t, n},
               {"gates", a.gates, t, gates},
               {"dgates", a.dgates, t, gates},
               {"dh_out", a.dh_out, t, n, true, true},
               {"dh_next", a.dh_next, t, n, true}});
  if (a.cell == RNNCell::lstm) {
    check_views(op, a.h, {{"c", a.c, c, n}, {"c_before", a.c_before, c, n}, {"dc", a.dc, c, n}});
  } else if (a.cell == RNNCell::gru) {
    check_views(op, a.h,
                {{"products", a.products, t, gates},
                 {"h_before", a.h_before, t, n},
                 {"dproducts", a.dproducts, t, gates},
                 {"dh_before", a.dh_before, t, n}});
  }
}

}  // namespace binade::kernels
