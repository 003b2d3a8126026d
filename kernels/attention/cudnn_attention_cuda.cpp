#include <binade/kernels/attention/attention_provider.h>
#include <binade/kernels/attention/cudnn_attention_internal.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/user_call.h>
#include <binade/kernels/cudnn/cudnn_choice_internal.h>
#include <binade/kernels/cudnn/cudnn_graph_internal.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

namespace binade::kernels {
namespace {

using cudnn::Descriptor;
using cudnn::Graph;
using cudnn::Operand;
using cudnn::Problem;

constexpr int64_t kMostSize = 128, kSizeStep = 8;
constexpr int64_t kTile = 128;  // the library's backward works on tiles of so many queries and keys
constexpr float kOne = 1, kUnseen = std::numeric_limits<float>::lowest();

std::atomic<int64_t> calls{0};

Operand transposed(const View& view) {
  Operand o = cudnn::operand(view);
  std::swap(o.sizes[2], o.sizes[3]);
  std::swap(o.strides[2], o.strides[3]);
  return o;
}
// One number per query, [batch, heads, queries] in row-major order.
Operand per_query(float* data, const AttentionSizes& n) {
  const Dims sizes{n.batch, n.heads, n.queries, 1};
  return {.type = cudnn::kFloat, .sizes = sizes, .strides = row_major_strides(sizes), .data = data};
}

// The operands of both graphs begin with these.
enum Id : size_t { kQ, kKTransposed, kV, kOut, kLse, kScale };
// The backward has the transpose of v in place of v, and these operands more.
enum MoreIds : size_t { kOneId = kScale + 1, kDout, kDq, kDk, kDv, kDelta };
// The last operand of a causal graph is the score of keys after the query, the lowest float.

bool is_causal(const Problem& p) { return p.options[0] != 0; }

// Creates virtual tensors between operations, with the sizes that attention has.
struct Between {
  Graph& graph;
  const Problem& p;
  const Dims& q = p.operands[kQ].sizes;
  const int64_t keys = p.operands[kKTransposed].sizes[3];

  Dims score_sizes() const { return {q[0], q[1], q[2], keys}; }
  Descriptor scores() const { return graph.between(score_sizes()); }
  Descriptor scores(cudnn::DataType type) const {
    return graph.between(score_sizes(), row_major_strides(score_sizes()), type);
  }
  Descriptor per_query() const { return graph.between({q[0], q[1], q[2], 1}); }
  cudnn::DataType narrow() const { return cudnn::data_type(p.dtype); }
  // The scores of each head as [keys, queries]: a transposed view of [queries, keys].
  Descriptor transposed_scores(Descriptor scores) const {
    Dims sizes = score_sizes(), strides = row_major_strides(sizes);
    std::swap(sizes[2], sizes[3]);
    std::swap(strides[2], strides[3]);
    const Descriptor result = graph.between(sizes, strides, narrow());
    graph.reshape(scores, result);
    return result;
  }
};

// Replaces the scores of keys after the query by the lowest float.
Descriptor mask_later(const Between& t, Descriptor scores) {
  const Descriptor row = t.scores(cudnn::kInt32), column = t.scores(cudnn::kInt32);
  const Descriptor seen = t.scores(cudnn::kBoolean), result = t.scores();
  t.graph.index_along(2, scores, row);
  t.graph.index_along(3, scores, column);
  t.graph.pointwise(cudnn::kGreaterOrEqual, row, column, seen);
  t.graph.pointwise(cudnn::kBinarySelect, scores, t.graph.memory(t.p.operands.size() - 1), result,
                    seen);
  return result;
}

// Computes scale q k^T.
Descriptor scaled_scores(const Between& t) {
  const Descriptor scores = t.scores(), scaled = t.scores();
  t.graph.matmul(t.graph.memory(kQ), t.graph.memory(kKTransposed), scores);
  t.graph.pointwise(cudnn::kMul, scores, t.graph.memory(kScale), scaled);
  return scaled;
}

// p = exp(s - max) / sum, out = p v, lse = max + log(sum)
void build_forward(Graph& graph, const Problem& p) {
  const Between t{graph, p};
  Descriptor scores = scaled_scores(t);
  scores = is_causal(p) ? mask_later(t, scores) : scores;
  const Descriptor top = t.per_query(), lowered = t.scores(), powers = t.scores();
  graph.reduce(cudnn::kReduceMax, scores, top);
  graph.pointwise(cudnn::kSub, scores, top, lowered);
  graph.pointwise(cudnn::kExp, lowered, nullptr, powers);
  const Descriptor sum = t.per_query(), logarithm = t.per_query();
  graph.reduce(cudnn::kReduceAdd, powers, sum);
  graph.pointwise(cudnn::kLog, sum, nullptr, logarithm);
  graph.pointwise(cudnn::kAdd, top, logarithm, graph.memory(kLse));
  const Descriptor weights = t.scores(t.narrow());
  graph.pointwise(cudnn::kDiv, powers, sum, weights);
  graph.matmul(weights, graph.memory(kV), graph.memory(kOut));
}

// delta = sum(dout out), p = exp(s - lse), dv = p^T dout, ds = scale p (dout v^T - delta),
// dk = ds^T q, dq = ds k. dq is not summed by atomic additions: ds takes workspace instead, so the
// result repeats bit for bit.
void build_backward(Graph& graph, const Problem& p) {
  const Between t{graph, p};
  const Descriptor dout = graph.memory(kDout), products = graph.between(p.operands[kOut].sizes);
  const Descriptor sums = t.per_query();
  graph.pointwise(cudnn::kMul, dout, graph.memory(kOut), products);
  graph.reduce(cudnn::kReduceAdd, products, sums);
  graph.pointwise(cudnn::kMul, sums, graph.memory(kOneId), graph.memory(kDelta));
  Descriptor lowered = t.scores();
  graph.pointwise(cudnn::kSub, scaled_scores(t), graph.memory(kLse), lowered);
  lowered = is_causal(p) ? mask_later(t, lowered) : lowered;
  const Descriptor weights = t.scores();
  graph.pointwise(cudnn::kExp, lowered, nullptr, weights);
  graph.matmul(t.transposed_scores(weights), dout, graph.memory(kDv));
  const Descriptor dweights = t.scores(), centred = t.scores(), ds = t.scores();
  graph.matmul(dout, graph.memory(kV), dweights);
  graph.pointwise(cudnn::kSub, dweights, graph.memory(kDelta), centred);
  graph.pointwise(cudnn::kMul, centred, weights, ds);
  const Descriptor scaled = t.scores(t.narrow());
  graph.pointwise(cudnn::kMul, ds, graph.memory(kScale), scaled);
  graph.matmul(t.transposed_scores(scaled), graph.memory(kQ), graph.memory(kDk));
  Operand k = p.operands[kKTransposed];
  std::swap(k.sizes[2], k.sizes[3]);
  std::swap(k.strides[2], k.strides[3]);
  const Descriptor keys = graph.between(k.sizes, k.strides, k.type);
  graph.reshape(graph.memory(kKTransposed), keys);
  graph.matmul(scaled, keys, graph.memory(kDq));
}

bool refuse(std::string& why, const char* reason) {
  why = reason;
  return false;
}

// True if rows of a head are contiguous and all addresses are multiples of 16 bytes.
bool is_aligned(const View& v) {
  constexpr int64_t kStep = 8;  // elements of two bytes
  bool aligned = reinterpret_cast<uintptr_t>(v.data) % 16 == 0 && v.strides[3] == 1;
  for (int i = 0; i < 3; ++i) {
    aligned = aligned && v.strides[i] % kStep == 0 && (v.strides[i] > 0 || v.size(i) == 1);
  }
  return aligned;
}

// Versions of the library have defects that give wrong results or faults instead of a refusal;
// docs/providers.md names the reports. Null if this call meets none.
const char* defect(const AttentionSizes& n, bool causal, bool backward) {
  const size_t version = cudnn::api().GetVersion();
  if (version == 91000 || version == 91001) {
    return "attention of cuDNN 9.10.0 and 9.10.1 has known bugs";
  }
  if (version >= 91300 && version < 91500 && !causal && n.keys > 1024 && user_call_captured()) {
    return "cuDNN 9.13 and 9.14 fault in graphs with more than 1024 keys without causal";
  }
  if (backward && (n.queries % kTile != 0 || n.keys % kTile != 0)) {
    return "cuDNN's gradients may be NaN unless queries and keys are multiples of 128";
  }
  return nullptr;
}

template <class Call>
bool usable(const Call& a, const AttentionSizes& n, bool backward, std::string& why) {
  if (!cudnn::missing().empty()) {
    why = cudnn::missing();
    return false;
  }
  if (a.q.dtype != DType::f16 && a.q.dtype != DType::bf16) {
    return refuse(why, "cuDNN has attention of f16 and bf16 only");
  }
  if (a.visible.mask) {
    return refuse(why, "cuDNN adds a mask: -inf and rows without keys depend on its version");
  }
  if (a.dropout.p > 0) {
    return refuse(why, "cuDNN drops other weights than our generator says");
  }
  if (n.size % kSizeStep != 0 || n.value_size % kSizeStep != 0 || n.size > kMostSize ||
      n.value_size > kMostSize) {
    return refuse(why, "cuDNN wants head sizes that are multiples of 8 up to 128");
  }
  if (std::min({n.batch, n.heads, n.queries, n.keys, n.size, n.value_size}) == 0) {
    return refuse(why, "an operand is empty");
  }
  if (const char* reason = defect(n, a.visible.causal, backward)) {
    return refuse(why, reason);
  }
  const bool aligned = is_aligned(a.q) && is_aligned(a.k) && is_aligned(a.v) && is_aligned(a.out);
  return aligned || refuse(why, "heads are not contiguous, or not aligned to 16 bytes");
}

bool counted(bool done) {
  calls += done;
  return done;
}

}  // namespace

bool library_attention(const AttentionForward& a, const AttentionSizes& n, std::string& why) {
  if (!usable(a, n, false, why)) {
    return false;
  }
  const auto scale = static_cast<float>(a.scale);
  Problem p{
      .name = "attention",
      .device = a.q.device,
      .dtype = a.q.dtype,
      .operands = {cudnn::operand(a.q), transposed(a.k), cudnn::operand(a.v), cudnn::operand(a.out),
                   per_query(a.lse.as<float>(), n), cudnn::number(scale, 4)},
      .options = {int64_t{a.visible.causal}},
      .build = build_forward};
  if (a.visible.causal) {
    p.operands.push_back(cudnn::number(kUnseen, 4));
  }
  return counted(cudnn::run(p, why));
}

bool library_attention(const AttentionBackward& a, const AttentionSizes& n, std::string& why) {
  if (!usable(a, n, true, why)) {
    return false;
  }
  if (!a.dq || !a.dk || !a.dv || !is_aligned(a.dq) || !is_aligned(a.dk) || !is_aligned(a.dv) ||
      !is_aligned(a.dout)) {
    return refuse(why, "not all gradients are wanted, or one is not aligned to 16 bytes");
  }
  const auto scale = static_cast<float>(a.scale);
  const Workspace delta(static_cast<size_t>(n.batch * n.heads * n.queries) * sizeof(float),
                        a.q.device);
  Problem p{
      .name = "attention backward",
      .device = a.q.device,
      .dtype = a.q.dtype,
      .operands = {cudnn::operand(a.q), transposed(a.k), transposed(a.v), cudnn::operand(a.out),
                   per_query(a.lse.as<float>(), n), cudnn::number(scale, 4), cudnn::number(kOne, 4),
                   cudnn::operand(a.dout), cudnn::operand(a.dq), cudnn::operand(a.dk),
                   cudnn::operand(a.dv), per_query(delta.as<float>(), n)},
      .options = {int64_t{a.visible.causal}},
      .build = build_backward};
  if (a.visible.causal) {
    p.operands.push_back(cudnn::number(kUnseen, 4));
  }
  return counted(cudnn::run(p, why));
}

int64_t library_attention_calls() { return calls; }

namespace {

template <class Call>
void run_chosen(const char* name, const Call& a, const AttentionSizes& n,
                const std::function<void()>& own) {
  static auto& choices = *new ProviderChoices;
  const int64_t more = int64_t{a.visible.causal} + 2 * int64_t{static_cast<bool>(a.visible.mask)} +
                       4 * int64_t{a.dropout.p > 0};
  const std::vector<int64_t> key{static_cast<int64_t>(a.q.dtype),
                                 more,
                                 n.batch,
                                 n.heads,
                                 n.queries,
                                 n.keys,
                                 n.size,
                                 n.value_size};
  const auto problem = [&] {
    return text(name, " ", a.q.dtype, " ", n.batch, "x", n.heads, "x", n.queries, "x", n.keys,
                " sizes ", n.size, ",", n.value_size, a.visible.causal ? " causal" : "",
                a.visible.mask ? " mask" : "", a.dropout.p > 0 ? " dropout" : "");
  };
  const auto library = [&](std::string& why) { return library_attention(a, n, why); };
  if (!cudnn::run_by_library(choices, {.op = "attention",
                                       .wanted = attention_variant(),
                                       .device = a.q.device,
                                       .key = key,
                                       .name = problem,
                                       .library = library,
                                       .own = own})) {
    own();
  }
}

}  // namespace

void run_attention(const AttentionForward& a, const AttentionSizes& n,
                   const std::function<void()>& own) {
  run_chosen("attention", a, n, own);
}
void run_attention(const AttentionBackward& a, const AttentionSizes& n,
                   const std::function<void()>& own) {
  run_chosen("attention backward", a, n, own);
}

}  // namespace binade::kernels
