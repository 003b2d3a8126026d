#include <binade/kernels/base/error.h>
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/cudnn/cudnn_choice_internal.h>
#include <binade/kernels/norm/cudnn_norm_graph_internal.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <binade/kernels/norm/norm_provider.h>

#include <atomic>

namespace binade::kernels {
namespace {

using cudnn::Graph;
using cudnn::Problem;
using namespace cudnn_norm;

std::atomic<int64_t> calls{0};

void build_forward(Graph& graph, const Problem& p) { add_forward(graph, p, graph.memory(3)); }
void build_backward(Graph& graph, const Problem& p) {
  cudnn::Object& norm = graph.add(cudnn::kNormBackward);
  norm.set(cudnn::kNormBackwardMode, cudnn::kTypeNormMode, static_cast<int>(p.options[0]));
  norm.set(cudnn::kNormBackwardX, graph.memory(0));
  norm.set(cudnn::kNormBackwardDy, graph.memory(1));
  norm.set(cudnn::kNormBackwardScale, graph.memory(2));
  norm.set(cudnn::kNormBackwardRstd, graph.memory(3));
  norm.set(cudnn::kNormBackwardDx, graph.memory(4));
  norm.set(cudnn::kNormBackwardDscale, graph.memory(5));
  if (p.options[1] != 0) {
    norm.set(cudnn::kNormBackwardMean, graph.memory(6));
    norm.set(cudnn::kNormBackwardDbias, graph.memory(7));
  }
}

bool counted(bool done) {
  calls += done;
  return done;
}

}  // namespace

cudnn::Object& cudnn_norm::add_forward(Graph& graph, const Problem& p, cudnn::Descriptor y) {
  cudnn::Object& norm = graph.add(cudnn::kNormForward);
  norm.set(cudnn::kNormForwardMode, cudnn::kTypeNormMode, static_cast<int>(p.options[0]));
  norm.set(cudnn::kNormForwardPhase, cudnn::kTypeNormPhase, cudnn::kNormTraining);
  norm.set(cudnn::kNormForwardX, graph.memory(0));
  norm.set(cudnn::kNormForwardScale, graph.memory(1));
  norm.set(cudnn::kNormForwardEpsilon, graph.memory(2));
  norm.set(cudnn::kNormForwardY, y);
  norm.set(cudnn::kNormForwardRstd, graph.memory(4));
  if (p.options[1] != 0) {
    norm.set(cudnn::kNormForwardMean, graph.memory(5));
    norm.set(cudnn::kNormForwardBias, graph.memory(6));
  }
  return norm;
}

bool library_norm(const LayerNormForward& a, std::string& why) {
  if (!usable(a.x, why)) {
    return false;
  }
  if (a.mean) {
    return refuse(why, "cuDNN's mean of equal numbers is another number, which rstd multiplies");
  }
  if (!a.weight || a.y.data == a.x.data) {
    return refuse(why, "cuDNN wants a weight, and another y than x");
  }
  const DenseInput x(a.x);
  const DenseOutput y(a.y);
  const auto eps = static_cast<float>(a.eps);
  const Problem p{.name = "layer_norm",
                  .device = a.y.device,
                  .dtype = a.x.dtype,
                  .operands = {image(x.view()), channels(a.weight), cudnn::number(eps, 4),
                               image(y.view()), rows(a.rstd)},
                  .options = {cudnn::kRmsNorm, 0},
                  .build = build_forward};
  if (!cudnn::run(p, why)) {
    return false;
  }
  y.store();
  return counted(true);
}

bool library_norm(const LayerNormBackward& a, std::string& why) {
  if (!usable(a.x, why)) {
    return false;
  }
  const bool centred = static_cast<bool>(a.mean);
  if (!a.weight || !a.dx || !a.dweight || (centred && !a.dbias) || a.dx.data == a.dy.data) {
    return refuse(why, "cuDNN wants a weight, all gradients, and another dx than dy");
  }
  const DenseInput x(a.x), dy(a.dy);
  const DenseOutput dx(a.dx);
  Problem p{.name = "layer_norm backward",
            .device = a.x.device,
            .dtype = a.x.dtype,
            .operands = {image(x.view()), image(dy.view()), channels(a.weight), rows(a.rstd),
                         image(dx.view()), channels(a.dweight)},
            .options = {centred ? cudnn::kLayerNorm : cudnn::kRmsNorm, int64_t{centred}},
            .build = build_backward};
  if (centred) {
    p.operands.push_back(rows(a.mean));
    p.operands.push_back(channels(a.dbias));
  }
  if (!cudnn::run(p, why)) {
    return false;
  }
  dx.store();
  return counted(true);
}

bool library_norm(const BatchNormForward& a, std::string& why) {
  return counted(library_batch_norm(a, why));
}

bool library_norm(const BatchNormBackward& a, std::string& why) {
  if (!usable(a.x, why)) {
    return false;
  }
  if (a.y) {
    return refuse(why, "our kernel also goes back through relu");
  }
  if (!a.weight || !a.dx || !a.dweight || !a.dbias || a.dx.data == a.dy.data) {
    return refuse(why, "cuDNN wants a weight, all gradients, and another dx than dy");
  }
  const DenseInput x(a.x, Order::channels_last), dy(a.dy, Order::channels_last);
  const DenseOutput dx(a.dx, Order::channels_last);
  const Problem p{
      .name = "batch_norm backward",
      .device = a.x.device,
      .dtype = a.x.dtype,
      .operands = {image(x.view()), image(dy.view()), channels(a.weight), channels(a.rstd),
                   image(dx.view()), channels(a.dweight), channels(a.mean), channels(a.dbias)},
      .options = {cudnn::kBatchNorm, 1},
      .build = build_backward};
  if (!cudnn::run(p, why)) {
    return false;
  }
  dx.store();
  return counted(true);
}

int64_t library_norm_calls() { return calls; }

namespace {

// A call in place changes its input, so it cannot be repeated for timing.
bool in_place(const LayerNormForward& a) { return a.y.data == a.x.data; }
bool in_place(const BatchNormForward& a) {
  return a.y.data == a.x.data || a.y.data == a.residual.data;
}
bool in_place(const LayerNormBackward& a) { return a.dx.data == a.dy.data; }
bool in_place(const BatchNormBackward& a) {
  return a.dx.data == a.dy.data || a.dresidual.data == a.dy.data;
}

// Names the optional outputs and inputs of a call, as part of the problem's name.
const char* wishes(const LayerNormForward& a) { return a.mean ? " with more than x" : ""; }
const char* wishes(const LayerNormBackward& a) { return a.mean ? " with more than x" : ""; }
const char* wishes(const BatchNormBackward& a) { return a.y ? " with more than x" : ""; }
std::string wishes(const BatchNormForward& a) {
  return text(a.variance ? " variance" : "", a.mean_rest ? " rest" : "",
              a.residual ? " residual" : "", a.relu ? " relu" : "");
}

// `more` encodes what else the choice depends on.
template <class Call>
void run_chosen(const char* name, const Call& a, int64_t more, const std::function<void()>& own) {
  static auto& choices = *new ProviderChoices;
  if (norm_variant() == KernelVariant::timed && in_place(a)) {
    return own();
  }
  std::vector<int64_t> key{static_cast<int64_t>(a.x.dtype), int64_t{a.x.contiguous}, more};
  key.insert(key.end(), a.x.sizes.begin(), a.x.sizes.end());
  const auto problem = [&] {
    return text(name, " ", a.x.dtype, " ", a.x.sizes, a.x.contiguous ? " row-major" : "",
                wishes(a));
  };
  if (!cudnn::run_by_library(choices,
                             {.op = "norm",
                              .wanted = norm_variant(),
                              .device = a.x.device,
                              .key = key,
                              .name = problem,
                              .library = [&](std::string& why) { return library_norm(a, why); },
                              .own = own})) {
    own();
  }
}

}  // namespace

void run_norm(const LayerNormForward& a, const std::function<void()>& own) {
  run_chosen("layer_norm", a, int64_t{static_cast<bool>(a.mean)}, own);
}
void run_norm(const LayerNormBackward& a, const std::function<void()>& own) {
  run_chosen("layer_norm backward", a, int64_t{static_cast<bool>(a.mean)}, own);
}
void run_norm(const BatchNormForward& a, const std::function<void()>& own) {
  const int64_t more = int64_t{static_cast<bool>(a.variance)} +
                       2 * int64_t{static_cast<bool>(a.residual)} + 4 * int64_t{a.relu} +
                       8 * int64_t{static_cast<bool>(a.mean_rest)};
  run_chosen("batch_norm", a, more, own);
}
void run_norm(const BatchNormBackward& a, const std::function<void()>& own) {
  run_chosen("batch_norm backward", a, int64_t{static_cast<bool>(a.y)}, own);
}

}  // namespace binade::kernels
