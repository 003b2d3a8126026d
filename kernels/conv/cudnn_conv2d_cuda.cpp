#include <binade/kernels/conv/cudnn_conv2d_internal.h>
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/cudnn/cudnn_graph_internal.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <atomic>

namespace binade::kernels {
namespace {

using cudnn::Descriptor;
using cudnn::Graph;
using cudnn::Operand;
using cudnn::Problem;

std::atomic<int64_t> calls{0};

Dims dense_strides(const Dims& sizes, Order order) {
  return order == Order::row_major ? row_major_strides(sizes) : channels_last_strides(sizes);
}

// The memory order for all operands of a call with these activations.
Order order_of(const View& x, const View& y) {
  const auto row_major = [](const View& v) {
    return v.contiguous && v.size(1) > 1 && v.size(2) * v.size(3) > 1;
  };
  return row_major(x) && row_major(y) ? Order::row_major : Order::channels_last;
}

Operand dense_operand(const View& view, Order order) {
  return cudnn::operand(view, view.sizes, dense_strides(view.sizes, order));
}
// Views a bias [C] as an operand for a tensor [N, C, H, W].
Operand bias_operand(const View& bias, Order order) {
  const Dims sizes{1, bias.size(0), 1, 1};
  return cudnn::operand(bias, sizes, dense_strides(sizes, order));
}

std::vector<int64_t> options_of(const Conv2dGeometry& g, bool bias, bool relu) {
  return {g.stride[0],   g.stride[1],   g.padding[0],  g.padding[1],
          g.dilation[0], g.dilation[1], int64_t{bias}, int64_t{relu}};
}
Graph::Convolution geometry_of(const Problem& p) {
  return {&p.options[0], &p.options[2], &p.options[4]};
}
bool has_bias(const Problem& p) { return p.options[6] != 0; }
bool has_relu(const Problem& p) { return p.options[7] != 0; }

// Adds the bias, operand 3, and relu to `sum`; the last operation writes `result`, operand 2.
Descriptor before_epilogue(Graph& graph, const Problem& p) {
  return has_bias(p) || has_relu(p)
             ? graph.between(p.operands[2].sizes, p.operands[2].strides,
                             p.dtype == DType::f64 ? cudnn::kDouble : cudnn::kFloat)
             : graph.memory(2);
}
void add_epilogue(Graph& graph, const Problem& p, Descriptor sum) {
  if (has_bias(p)) {
    const Descriptor biased = has_relu(p) ? before_epilogue(graph, p) : graph.memory(2);
    graph.pointwise(cudnn::kAdd, sum, graph.memory(3), biased);
    sum = biased;
  }
  if (has_relu(p)) {
    graph.pointwise(cudnn::kReluForward, sum, nullptr, graph.memory(2));
  }
}

void build_forward(Graph& graph, const Problem& p) {
  const Descriptor y = before_epilogue(graph, p);
  graph.convolution_forward(geometry_of(p), graph.memory(0), graph.memory(1), y);
  add_epilogue(graph, p, y);
}
void build_backward_data(Graph& graph, const Problem& p) {
  const Descriptor dx = before_epilogue(graph, p);
  graph.convolution_backward_data(geometry_of(p), graph.memory(0), graph.memory(1), dx);
  add_epilogue(graph, p, dx);
}
void build_backward_weight(Graph& graph, const Problem& p) {
  graph.convolution_backward_filter(geometry_of(p), graph.memory(0), graph.memory(1),
                                    graph.memory(2));
}

bool usable(const Conv2dSizes& d, std::string& why) {
  if (!cudnn::missing().empty()) {
    why = cudnn::missing();
    return false;
  }
  if (d.n == 0 || d.c == 0 || d.o == 0) {
    why = "an operand is empty";
    return false;
  }
  return true;
}

// Runs the problem. If no engine keeps NaN through relu, runs it without relu and then our relu.
bool run_with_relu(Problem& p, const View& y, std::string& why) {
  if (cudnn::run(p, why)) {
    return true;
  }
  if (!p.keeps_nan) {
    return false;
  }
  p.options[7] = 0;
  p.keeps_nan = false;
  if (!cudnn::run(p, why)) {
    return false;
  }
  cuda::unary_forward({.op = Unary::relu, .x = y, .y = y});
  return true;
}

bool counted(bool done) {
  calls += done;
  return done;
}

}  // namespace

bool library_conv2d(const Conv2dForward& a, const Conv2dSizes& size, std::string& why) {
  if (!usable(size, why)) {
    return false;
  }
  const Order order = order_of(a.x, a.y);
  const DenseInput x(a.x, order), w(a.w, order);
  const DenseInput bias(a.epilogue.bias);
  const DenseOutput y(a.y, order);
  const bool with_bias = static_cast<bool>(a.epilogue.bias);
  const bool relu = a.epilogue.activation == Activation::relu;
  Problem p{.name = "conv2d_forward",
            .device = a.y.device,
            .dtype = a.y.dtype,
            .operands = {dense_operand(x.view(), order), dense_operand(w.view(), order),
                         dense_operand(y.view(), order)},
            .options = options_of(a.geometry, with_bias, relu),
            .build = build_forward,
            .keeps_nan = relu};
  if (with_bias) {
    p.operands.push_back(bias_operand(bias.view(), order));
  }
  if (!run_with_relu(p, y.view(), why)) {
    return false;
  }
  y.store();
  return counted(true);
}

bool library_conv2d(const Conv2dBackwardData& a, const Conv2dSizes& size, std::string& why) {
  if (!usable(size, why)) {
    return false;
  }
  const Order order = order_of(a.dx, a.dy);
  const DenseInput dy(a.dy, order), w(a.w, order);
  const DenseInput bias(a.bias);
  const DenseOutput dx(a.dx, order);
  Problem p{.name = "conv2d_backward_data",
            .device = a.dx.device,
            .dtype = a.dx.dtype,
            .operands = {dense_operand(dy.view(), order), dense_operand(w.view(), order),
                         dense_operand(dx.view(), order)},
            .options = options_of(a.geometry, static_cast<bool>(a.bias), false),
            .build = build_backward_data};
  if (a.bias) {
    p.operands.push_back(bias_operand(bias.view(), order));
  }
  if (!cudnn::run(p, why)) {
    return false;
  }
  dx.store();
  return counted(true);
}

bool library_conv2d(const Conv2dBackwardWeight& a, const Conv2dSizes& size, std::string& why) {
  if (!usable(size, why)) {
    return false;
  }
  const Order order = order_of(a.x, a.dy);
  const DenseInput x(a.x, order), dy(a.dy, order);
  const DenseOutput dw(a.dw, order);
  const Problem p{.name = "conv2d_backward_weight",
                  .device = a.dw.device,
                  .dtype = a.dw.dtype,
                  .operands = {dense_operand(x.view(), order), dense_operand(dy.view(), order),
                               dense_operand(dw.view(), order)},
                  .options = options_of(a.geometry, false, false),
                  .build = build_backward_weight};
  if (!cudnn::run(p, why)) {
    return false;
  }
  dw.store();
  return counted(true);
}

int64_t library_conv2d_calls() { return calls; }

}  // namespace binade::kernels
