#include <binade/kernels/base/error.h>
#include <binade/kernels/cudnn/cudnn_graph_internal.h>

#include <utility>

namespace binade::kernels::cudnn {
namespace {

void require(Status status, const char* what) {
  if (status == kSuccess) {
    return;
  }
  char message[256] = "";
  api().GetLastErrorString(message, sizeof message);
  throw Refusal{text(what, ": ", api().GetErrorString(status), message[0] ? ", " : "", message)};
}

Object make_tensor(int64_t id, const Operand& o) {
  Object tensor(kTensor);
  tensor.set(kTensorDataType, kTypeDataType, o.type);
  tensor.set(kTensorDimensions, o.sizes);
  tensor.set(kTensorStrides, o.strides);
  tensor.set(kTensorId, kTypeInt64, id);
  tensor.set(kTensorAlignment, kTypeInt64,
             static_cast<int64_t>(o.by_value ? alignof(float) : kTensorBytes));
  tensor.set(kTensorIsByValue, kTypeBoolean, o.by_value);
  return tensor;
}

}  // namespace

DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return kDouble;
    case DType::f16: return kHalf;
    case DType::bf16: return kBfloat16;
    case DType::boolean: return kBoolean;
    default: return kFloat;
  }
}

Object::Object(DescriptorType type) {
  require(api().BackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}
Object::~Object() {
  if (descriptor_) {
    api().BackendDestroyDescriptor(descriptor_);
  }
}
Object::Object(Object&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
Object& Object::operator=(Object&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Object::set(Attribute attribute, AttributeType type, int64_t count, const void* values) {
  require(api().BackendSetAttribute(descriptor_, attribute, type, count, values),
          "cudnnBackendSetAttribute");
}
void Object::set(Attribute attribute, const Dims& values) {
  set(attribute, kTypeInt64, values.size(), values.begin());
}
void Object::set(Attribute attribute, Descriptor value) {
  set(attribute, kTypeDescriptor, 1, &value);
}
int64_t Object::get(Attribute attribute, AttributeType type, int64_t room, void* values) const {
  int64_t count = 0;
  require(api().BackendGetAttribute(descriptor_, attribute, type, room, &count, values),
          "cudnnBackendGetAttribute");
  return count;
}
void Object::finalize() { require(api().BackendFinalize(descriptor_), "cudnnBackendFinalize"); }

Operand operand(const View& view, const Dims& sizes, const Dims& strides) {
  return {.type = data_type(view.dtype), .sizes = sizes, .strides = strides, .data = view.data};
}

Operand number(const float& value, int dims) {
  return {.type = kFloat,
          .sizes = Dims::of(dims, 1),
          .strides = Dims::of(dims, 1),
          .data = const_cast<float*>(&value),
          .by_value = true};
}

Graph::Graph(const std::vector<Operand>& operands, DataType compute)
    : compute_(compute), next_id_(static_cast<int64_t>(operands.size())) {
  for (size_t i = 0; i < operands.size(); ++i) {
    tensors_.push_back(make_tensor(static_cast<int64_t>(i), operands[i]));
    tensors_.back().finalize();
  }
}

Descriptor Graph::between(const Dims& sizes) {
  return between(sizes, row_major_strides(sizes), compute_);
}
Descriptor Graph::between(const Dims& sizes, const Dims& strides, DataType type) {
  const Operand none{.type = type, .sizes = sizes, .strides = strides, .data = nullptr};
  virtual_.push_back(make_tensor(next_id_++, none));
  virtual_.back().set(kTensorIsVirtual, kTypeBoolean, true);
  virtual_.back().finalize();
  return virtual_.back().get();
}

Object& Graph::add(DescriptorType type) {
  operations_.emplace_back(type);
  return operations_.back();
}

Object& Graph::add(DescriptorType type, Object&& description, Attribute where) {
  description.finalize();
  Object& operation = add(type);
  operation.set(where, description.get());
  descriptions_.push_back(std::move(description));
  return operation;
}

Object Graph::describe(const Convolution& c) const {
  Object description(cudnn::kConvolution);
  description.set(kConvolutionPrecision, kTypeDataType, compute_);
  description.set(cudnn::kConvolutionMode, kTypeConvolutionMode, kCrossCorrelation);
  description.set(kConvolutionSpatialDims, kTypeInt64, int64_t{2});
  description.set(kConvolutionDilations, kTypeInt64, 2, c.dilation);
  description.set(kConvolutionStrides, kTypeInt64, 2, c.stride);
  description.set(kConvolutionPrePaddings, kTypeInt64, 2, c.padding);
  description.set(kConvolutionPostPaddings, kTypeInt64, 2, c.padding);
  return description;
}

// The factors of the result (alpha) and of what it holds before (beta) follow the description.
Object& Graph::convolution(const Convolution& c, DescriptorType type, Attribute where) {
  Object& operation = add(type, describe(c), where);
  const auto alpha = static_cast<Attribute>(where - 2), beta = static_cast<Attribute>(where - 1);
  if (compute_ == kDouble) {
    operation.set(alpha, kTypeDouble, 1.0);
    operation.set(beta, kTypeDouble, 0.0);
  } else {
    operation.set(alpha, kTypeFloat, 1.0F);
    operation.set(beta, kTypeFloat, 0.0F);
  }
  return operation;
}
static_assert(kForwardConvolution - kForwardAlpha == 2 && kForwardConvolution - kForwardBeta == 1);
static_assert(kDataConvolution - kDataAlpha == 2 && kDataConvolution - kDataBeta == 1);
static_assert(kFilterConvolution - kFilterAlpha == 2 && kFilterConvolution - kFilterBeta == 1);

void Graph::convolution_forward(const Convolution& c, Descriptor x, Descriptor w, Descriptor y) {
  Object& operation = convolution(c, kConvolutionForward, kForwardConvolution);
  operation.set(kForwardX, x);
  operation.set(kForwardW, w);
  operation.set(kForwardY, y);
}

void Graph::convolution_backward_data(const Convolution& c, Descriptor dy, Descriptor w,
                                      Descriptor dx) {
  Object& operation = convolution(c, kConvolutionBackwardData, kDataConvolution);
  operation.set(kDataDy, dy);
  operation.set(kDataW, w);
  operation.set(kDataDx, dx);
}

void Graph::convolution_backward_filter(const Convolution& c, Descriptor x, Descriptor dy,
                                        Descriptor dw) {
  Object& operation = convolution(c, kConvolutionBackwardFilter, kFilterConvolution);
  operation.set(kFilterX, x);
  operation.set(kFilterDy, dy);
  operation.set(kFilterDw, dw);
}

void Graph::pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t) {
  Object description(cudnn::kPointwise);
  description.set(kPointwiseMode, kTypePointwiseMode, mode);
  const bool compares = mode == kGreaterOrEqual;
  description.set(kPointwisePrecision, kTypeDataType, compares ? kBoolean : compute_);
  if (mode == kReluForward) {
    description.set(kPointwiseNanPropagation, kTypeNanPropagation, kPropagateNan);
  }
  Object& operation = add(kPointwiseOperation, std::move(description), kOperationPointwise);
  operation.set(kOperationPointwiseX, x);
  operation.set(kOperationPointwiseY, y);
  if (b) {
    operation.set(kOperationPointwiseB, b);
  }
  if (t) {
    operation.set(kOperationPointwiseT, t);
  }
}

void Graph::index_along(int64_t axis, Descriptor x, Descriptor y) {
  Object description(cudnn::kPointwise);
  description.set(kPointwiseMode, kTypePointwiseMode, kGenIndex);
  description.set(kPointwisePrecision, kTypeDataType, kInt32);
  description.set(kPointwiseAxis, kTypeInt64, axis);
  Object& operation = add(kPointwiseOperation, std::move(description), kOperationPointwise);
  operation.set(kOperationPointwiseX, x);
  operation.set(kOperationPointwiseY, y);
}

void Graph::matmul(Descriptor a, Descriptor b, Descriptor c) {
  Object description(kMatmul);
  description.set(kMatmulPrecision, kTypeDataType, compute_);
  Object& operation = add(kMatmulOperation, std::move(description), kMatmulDescriptor);
  operation.set(kMatmulA, a);
  operation.set(kMatmulB, b);
  operation.set(kMatmulC, c);
}

void Graph::reduce(ReductionOperator what, Descriptor x, Descriptor y) {
  Object description(kReduction);
  description.set(kReductionOperator, kTypeReductionOperator, what);
  description.set(kReductionPrecision, kTypeDataType, compute_);
  Object& operation = add(kReductionOperation, std::move(description), kReductionDescriptor);
  operation.set(kReductionX, x);
  operation.set(kReductionY, y);
}

void Graph::reshape(Descriptor x, Descriptor y) {
  Object& operation = add(kReshape);
  operation.set(kReshapeX, x);
  operation.set(kReshapeY, y);
}

std::vector<Descriptor> Graph::operations() {
  std::vector<Descriptor> result;
  for (Object& operation : operations_) {
    operation.finalize();
    result.push_back(operation.get());
  }
  return result;
}

}  // namespace binade::kernels::cudnn
