#include <algorithm>
#include <set>

#include "fake_cudnn_internal.h"

namespace binade::kernels::cudnn::fake {
namespace {

const std::map<int, Rule>& rules() {
  static const auto& table = *new std::map<int, Rule>{
      {kPointwiseMode, {kPointwise, kTypePointwiseMode, 1, true}},
      {kPointwisePrecision, {kPointwise, kTypeDataType, 1, true}},
      {kPointwiseNanPropagation, {kPointwise, kTypeNanPropagation, 1, false}},
      {kPointwiseAxis, {kPointwise, kTypeInt64, 1, false}},
      {kConvolutionPrecision, {kConvolution, kTypeDataType, 1, true}},
      {kConvolutionMode, {kConvolution, kTypeConvolutionMode, 1, true}},
      {kConvolutionDilations, {kConvolution, kTypeInt64, 2, true}},
      {kConvolutionStrides, {kConvolution, kTypeInt64, 2, true}},
      {kConvolutionPostPaddings, {kConvolution, kTypeInt64, 2, true}},
      {kConvolutionPrePaddings, {kConvolution, kTypeInt64, 2, true}},
      {kConvolutionSpatialDims, {kConvolution, kTypeInt64, 1, true}},
      {kHeuristicMode, {kEngineHeuristic, kTypeHeuristicMode, 1, true}},
      {kHeuristicGraph, {kEngineHeuristic, kTypeDescriptor, 1, true}},
      {kPlanHandle, {kExecutionPlan, kTypeHandle, 1, true}},
      {kPlanConfig, {kExecutionPlan, kTypeDescriptor, 1, true}},
      {kForwardAlpha, {kConvolutionForward, kTypeFloat, 1, true}},
      {kForwardBeta, {kConvolutionForward, kTypeFloat, 1, true}},
      {kForwardConvolution, {kConvolutionForward, kTypeDescriptor, 1, true}},
      {kForwardW, {kConvolutionForward, kTypeDescriptor, 1, true}},
      {kForwardX, {kConvolutionForward, kTypeDescriptor, 1, true}},
      {kForwardY, {kConvolutionForward, kTypeDescriptor, 1, true}},
      {kDataAlpha, {kConvolutionBackwardData, kTypeFloat, 1, true}},
      {kDataBeta, {kConvolutionBackwardData, kTypeFloat, 1, true}},
      {kDataConvolution, {kConvolutionBackwardData, kTypeDescriptor, 1, true}},
      {kDataW, {kConvolutionBackwardData, kTypeDescriptor, 1, true}},
      {kDataDx, {kConvolutionBackwardData, kTypeDescriptor, 1, true}},
      {kDataDy, {kConvolutionBackwardData, kTypeDescriptor, 1, true}},
      {kFilterAlpha, {kConvolutionBackwardFilter, kTypeFloat, 1, true}},
      {kFilterBeta, {kConvolutionBackwardFilter, kTypeFloat, 1, true}},
      {kFilterConvolution, {kConvolutionBackwardFilter, kTypeDescriptor, 1, true}},
      {kFilterDw, {kConvolutionBackwardFilter, kTypeDescriptor, 1, true}},
      {kFilterX, {kConvolutionBackwardFilter, kTypeDescriptor, 1, true}},
      {kFilterDy, {kConvolutionBackwardFilter, kTypeDescriptor, 1, true}},
      {kOperationPointwise, {kPointwiseOperation, kTypeDescriptor, 1, true}},
      {kOperationPointwiseX, {kPointwiseOperation, kTypeDescriptor, 1, true}},
      {kOperationPointwiseB, {kPointwiseOperation, kTypeDescriptor, 1, false}},
      {kOperationPointwiseY, {kPointwiseOperation, kTypeDescriptor, 1, true}},
      {kOperationPointwiseT, {kPointwiseOperation, kTypeDescriptor, 1, false}},
      {kGraphHandle, {kOperationGraph, kTypeHandle, 1, true}},
      {kGraphOperations, {kOperationGraph, kTypeDescriptor, 64, true}},
      {kTensorAlignment, {kTensor, kTypeInt64, 1, true}},
      {kTensorDataType, {kTensor, kTypeDataType, 1, true}},
      {kTensorDimensions, {kTensor, kTypeInt64, 8, true}},
      {kTensorStrides, {kTensor, kTypeInt64, 8, true}},
      {kTensorId, {kTensor, kTypeInt64, 1, true}},
      {kTensorIsVirtual, {kTensor, kTypeBoolean, 1, false}},
      {kTensorIsByValue, {kTensor, kTypeBoolean, 1, false}},
      {kPackIds, {kVariantPack, kTypeInt64, 64, true}},
      {kPackPointers, {kVariantPack, kTypeVoidPointer, 64, true}},
      {kPackWorkspace, {kVariantPack, kTypeVoidPointer, 1, true}},
      {kMatmulPrecision, {kMatmul, kTypeDataType, 1, true}},
      {kMatmulA, {kMatmulOperation, kTypeDescriptor, 1, true}},
      {kMatmulB, {kMatmulOperation, kTypeDescriptor, 1, true}},
      {kMatmulC, {kMatmulOperation, kTypeDescriptor, 1, true}},
      {kMatmulDescriptor, {kMatmulOperation, kTypeDescriptor, 1, true}},
      {kReductionOperator, {kReduction, kTypeReductionOperator, 1, true}},
      {kReductionPrecision, {kReduction, kTypeDataType, 1, true}},
      {kReductionIsDeterministic, {kReduction, kTypeBoolean, 1, false}},
      {kReductionX, {kReductionOperation, kTypeDescriptor, 1, true}},
      {kReductionY, {kReductionOperation, kTypeDescriptor, 1, true}},
      {kReductionDescriptor, {kReductionOperation, kTypeDescriptor, 1, true}},
      {kNormForwardMode, {kNormForward, kTypeNormMode, 1, true}},
      {kNormForwardPhase, {kNormForward, kTypeNormPhase, 1, true}},
      {kNormForwardX, {kNormForward, kTypeDescriptor, 1, true}},
      {kNormForwardMean, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardRstd, {kNormForward, kTypeDescriptor, 1, true}},
      {kNormForwardScale, {kNormForward, kTypeDescriptor, 1, true}},
      {kNormForwardBias, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardEpsilon, {kNormForward, kTypeDescriptor, 1, true}},
      {kNormForwardFactor, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardRunningMean, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardRunningVar, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardNextMean, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardNextVar, {kNormForward, kTypeDescriptor, 1, false}},
      {kNormForwardY, {kNormForward, kTypeDescriptor, 1, true}},
      {kNormBackwardMode, {kNormBackward, kTypeNormMode, 1, true}},
      {kNormBackwardX, {kNormBackward, kTypeDescriptor, 1, true}},
      {kNormBackwardMean, {kNormBackward, kTypeDescriptor, 1, false}},
      {kNormBackwardRstd, {kNormBackward, kTypeDescriptor, 1, true}},
      {kNormBackwardDy, {kNormBackward, kTypeDescriptor, 1, true}},
      {kNormBackwardScale, {kNormBackward, kTypeDescriptor, 1, true}},
      {kNormBackwardEpsilon, {kNormBackward, kTypeDescriptor, 1, false}},
      {kNormBackwardDscale, {kNormBackward, kTypeDescriptor, 1, true}},
      {kNormBackwardDbias, {kNormBackward, kTypeDescriptor, 1, false}},
      {kNormBackwardDx, {kNormBackward, kTypeDescriptor, 1, true}},
      {kReshapeX, {kReshape, kTypeDescriptor, 1, true}},
      {kReshapeY, {kReshape, kTypeDescriptor, 1, true}},
  };
  return table;
}

void demand(bool condition, const char* what) {
  if (!condition) {
    throw std::string(what);
  }
}

bool is_dense(const Object& tensor, const std::vector<int>& order) {
  const Sizes sizes = sizes_of(tensor), strides = strides_of(tensor);
  int64_t step = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    const auto i = static_cast<size_t>(*dim);
    if (strides[i] != step) {
      return false;
    }
    step *= sizes[i];
  }
  return true;
}

void check_tensor(const Object& tensor) {
  const Sizes sizes = sizes_of(tensor), strides = strides_of(tensor);
  demand(sizes.size() == strides.size() && sizes.size() >= 3, "sizes and strides of a tensor");
  demand(std::ranges::all_of(sizes, [](int64_t n) { return n > 0; }), "an empty tensor");
  demand(std::ranges::all_of(strides, [](int64_t n) { return n >= 0; }), "a negative stride");
  const auto alignment = tensor.get<int64_t>(kTensorAlignment);
  demand(alignment > 0 && (alignment & (alignment - 1)) == 0, "the alignment of a tensor");
}

// Checks y = x * w: all three have the same dense order, and those in memory the same dtype.
void check_convolution(const Object& c, const Object& x, const Object& w, const Object& y) {
  const Sizes xs = sizes_of(x), ws = sizes_of(w), ys = sizes_of(y);
  demand(xs.size() == 4 && ws.size() == 4 && ys.size() == 4, "a convolution without 4 dimensions");
  demand(c.get<int64_t>(kConvolutionSpatialDims) == 2, "the number of spatial dimensions");
  demand(c.get<int>(kConvolutionMode) == kCrossCorrelation, "the mode of a convolution");
  demand(xs[0] == ys[0] && ws[0] == ys[1] && xs[1] % ws[1] == 0 && ws[0] % (xs[1] / ws[1]) == 0,
         "the channels of a convolution");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = c.list(kConvolutionDilations)[i] * (ws[2 + i] - 1) + 1;
    const int64_t padded =
        xs[2 + i] + c.list(kConvolutionPrePaddings)[i] + c.list(kConvolutionPostPaddings)[i];
    demand(ys[2 + i] == (padded - extent) / c.list(kConvolutionStrides)[i] + 1,
           "the size of a convolution's output");
  }
  const std::vector<int> last{0, 2, 3, 1}, first{0, 1, 2, 3};
  const bool nhwc = is_dense(x, last) && is_dense(w, last) && is_dense(y, last);
  demand(nhwc || (is_dense(x, first) && is_dense(w, first) && is_dense(y, first)),
         "the layouts of a convolution");
  std::set<int> types;
  for (const Object* tensor : {&x, &w, &y}) {
    if (!flag(*tensor, kTensorIsVirtual)) {
      types.insert(tensor->get<int>(kTensorDataType));
    }
  }
  const bool f64 = types.count(kDouble) != 0;
  demand(types.size() == 1 && c.get<int>(kConvolutionPrecision) == (f64 ? kDouble : kFloat),
         "the data types of a convolution");
}

void check_pointwise(const Object& operation) {
  const Object& p = operation.at(kOperationPointwise);
  const int mode = p.get<int>(kPointwiseMode);
  const bool binary = mode == kAdd || mode == kMul || mode == kDiv || mode == kSub ||
                      mode == kGreaterOrEqual || mode == kBinarySelect;
  demand(binary == operation.has(kOperationPointwiseB), "the operands of a pointwise operation");
  demand((mode == kBinarySelect) == operation.has(kOperationPointwiseT), "the third operand");
  demand((mode == kGenIndex) == p.has(kPointwiseAxis), "the axis of an index");
  demand(mode != kReluForward || (p.has(kPointwiseNanPropagation) &&
                                  p.get<int>(kPointwiseNanPropagation) == kPropagateNan),
         "a relu that hides NaN");
  const Sizes y = sizes_of(operation.at(kOperationPointwiseY));
  for (const Object* input : inputs_of(operation)) {
    const Sizes x = sizes_of(*input);
    demand(x.size() == y.size(), "the dimensions of a pointwise operation");
    for (size_t i = 0; i < x.size(); ++i) {
      demand(x[i] == y[i] || x[i] == 1, "the sizes of a pointwise operation");
    }
  }
}

void check_matmul(const Object& operation) {
  const Sizes a = sizes_of(operation.at(kMatmulA)), b = sizes_of(operation.at(kMatmulB)),
              c = sizes_of(operation.at(kMatmulC));
  const size_t n = a.size();
  demand(b.size() == n && c.size() == n && a[n - 1] == b[n - 2] && c[n - 2] == a[n - 2] &&
             c[n - 1] == b[n - 1] && std::equal(a.begin(), a.end() - 2, b.begin()) &&
             std::equal(a.begin(), a.end() - 2, c.begin()),
         "the sizes of a product");
  const auto in_half = [](const Object& tensor) {
    const int type = tensor.get<int>(kTensorDataType);
    return type == kHalf || type == kBfloat16;
  };
  demand(in_half(operation.at(kMatmulA)) && in_half(operation.at(kMatmulB)),
         "the data types of a product");
}

// Running statistics need all five attributes, in training of a batch norm; otherwise none.
void check_running(const Object& norm, bool batch, const Sizes& channels) {
  const bool given = norm.has(kNormForwardFactor);
  demand(!given || batch, "running statistics of a norm that is no batch norm");
  for (const Attribute a : {kNormForwardRunningMean, kNormForwardRunningVar, kNormForwardNextMean,
                            kNormForwardNextVar}) {
    demand(norm.has(a) == given, "a part of the running statistics");
    demand(!given ||
               (sizes_of(norm.at(a)) == channels && norm.at(a).get<int>(kTensorDataType) == kFloat),
           "the sizes or dtype of running statistics");
  }
  if (given) {
    const Object& factor = norm.at(kNormForwardFactor);
    demand(flag(factor, kTensorIsByValue) && factor.get<int>(kTensorDataType) == kFloat,
           "a factor of running statistics that is not a number by value");
  }
}

void check_norm(const Object& operation, bool forward) {
  const auto mode = operation.get<int>(forward ? kNormForwardMode : kNormBackwardMode);
  const Object& x = operation.at(forward ? kNormForwardX : kNormBackwardX);
  const Object& scale = operation.at(forward ? kNormForwardScale : kNormBackwardScale);
  const Object& rstd = operation.at(forward ? kNormForwardRstd : kNormBackwardRstd);
  const Sizes xs = sizes_of(x), ss = sizes_of(scale), rs = sizes_of(rstd);
  demand(xs.size() == 4 && ss.size() == 4 && rs.size() == 4, "a norm without 4 dimensions");
  const bool batch = mode == kBatchNorm;
  demand(ss == (batch ? Sizes{1, xs[1], 1, 1} : Sizes{1, xs[1], xs[2], xs[3]}), "a norm's scale");
  demand(rs == (batch ? ss : Sizes{xs[0], 1, 1, 1}), "a norm's statistics");
  demand(is_dense(x, {0, 2, 3, 1}), "a norm's input that is not dense and channels-last");
  demand(scale.get<int>(kTensorDataType) == kFloat && rstd.get<int>(kTensorDataType) == kFloat,
         "a norm's scale or statistics that are not float");
  const Attribute mean = forward ? kNormForwardMean : kNormBackwardMean;
  demand(operation.has(mean) == (mode != kRmsNorm), "a norm's mean");
  demand(!forward || operation.get<int>(kNormForwardPhase) == kNormTraining, "a norm's phase");
  if (forward) {
    const Object& eps = operation.at(kNormForwardEpsilon);
    demand(flag(eps, kTensorIsByValue) && eps.get<int>(kTensorDataType) == kFloat,
           "a norm's epsilon that is not a number by value");
    demand(operation.has(kNormForwardBias) == (mode != kRmsNorm), "a norm's bias");
    const Object& y = operation.at(kNormForwardY);
    demand(sizes_of(y) == xs && is_dense(y, {0, 2, 3, 1}), "a norm's output");
    check_running(operation, batch, ss);
  } else {
    demand(operation.has(kNormBackwardDbias) == (mode != kRmsNorm), "a norm's dbias");
  }
}

void check_operation(const Object& o) {
  switch (o.type) {
    case kConvolutionForward:
      return check_convolution(o.at(kForwardConvolution), o.at(kForwardX), o.at(kForwardW),
                               o.at(kForwardY));
    case kConvolutionBackwardData:
      return check_convolution(o.at(kDataConvolution), o.at(kDataDx), o.at(kDataW), o.at(kDataDy));
    case kConvolutionBackwardFilter:
      return check_convolution(o.at(kFilterConvolution), o.at(kFilterX), o.at(kFilterDw),
                               o.at(kFilterDy));
    case kPointwiseOperation: return check_pointwise(o);
    case kMatmulOperation: return check_matmul(o);
    case kNormForward: return check_norm(o, true);
    case kNormBackward: return check_norm(o, false);
    default: return;
  }
}

// Checks that exactly one operation writes each virtual tensor and that ids are unique.
void check_graph(const Object& graph) {
  std::map<int64_t, const Object*> tensors;
  std::set<int64_t> written;
  const auto add = [&](const Object* tensor) {
    const auto [at, added] = tensors.emplace(id_of(*tensor), tensor);
    demand(added || at->second == tensor, "two tensors with one id");
  };
  for (const auto& operation : graph.values.at(kGraphOperations).objects) {
    for (const Object* tensor : inputs_of(*operation)) {
      add(tensor);
    }
    for (const Object* tensor : outputs_of(*operation)) {
      add(tensor);
      demand(written.insert(id_of(*tensor)).second, "a tensor that two operations write");
    }
  }
  for (const auto& [id, tensor] : tensors) {
    demand(!flag(*tensor, kTensorIsVirtual) || written.count(id) != 0, "an unwritten tensor");
  }
}

}  // namespace

const Rule* rule_of(Attribute attribute) {
  const auto found = rules().find(attribute);
  return found == rules().end() ? nullptr : &found->second;
}

void check_object(const Object& object) {
  for (const auto& [attribute, rule] : rules()) {
    demand(rule.owner != object.type || !rule.required || object.values.count(attribute) != 0,
           ("attribute " + std::to_string(attribute) + " is missing").c_str());
  }
  if (object.type == kTensor) {
    check_tensor(object);
  } else if (object.type == kOperationGraph) {
    check_graph(object);
  } else {
    check_operation(object);
  }
}

}  // namespace binade::kernels::cudnn::fake
