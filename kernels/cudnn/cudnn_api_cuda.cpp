// Loads cuDNN, and compares our declarations with its header.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/cudnn/cudnn_api_internal.h>
#if !defined(BINADE_HOST_EXECUTION) && __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#endif

namespace binade::kernels::cudnn {

#if !defined(BINADE_HOST_EXECUTION) && __has_include(<cudnn_graph.h>)
#define BINADE_SAME(ours, theirs) static_assert(int{ours} == int{CUDNN_##theirs})
BINADE_SAME(kSuccess, STATUS_SUCCESS);
BINADE_SAME(kBadParam, STATUS_BAD_PARAM);
BINADE_SAME(kMisalignedPointer, STATUS_BAD_PARAM_MISALIGNED_POINTER);
BINADE_SAME(kNotSupported, STATUS_NOT_SUPPORTED);
BINADE_SAME(kExecutionFailed, STATUS_EXECUTION_FAILED);
BINADE_SAME(kFloat, DATA_FLOAT);
BINADE_SAME(kDouble, DATA_DOUBLE);
BINADE_SAME(kHalf, DATA_HALF);
BINADE_SAME(kInt32, DATA_INT32);
BINADE_SAME(kBfloat16, DATA_BFLOAT16);
BINADE_SAME(kInt64, DATA_INT64);
BINADE_SAME(kBoolean, DATA_BOOLEAN);
BINADE_SAME(kPointwise, BACKEND_POINTWISE_DESCRIPTOR);
BINADE_SAME(kConvolution, BACKEND_CONVOLUTION_DESCRIPTOR);
BINADE_SAME(kEngine, BACKEND_ENGINE_DESCRIPTOR);
BINADE_SAME(kEngineConfig, BACKEND_ENGINECFG_DESCRIPTOR);
BINADE_SAME(kEngineHeuristic, BACKEND_ENGINEHEUR_DESCRIPTOR);
BINADE_SAME(kExecutionPlan, BACKEND_EXECUTION_PLAN_DESCRIPTOR);
BINADE_SAME(kConvolutionForward, BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
BINADE_SAME(kConvolutionBackwardFilter, BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
BINADE_SAME(kConvolutionBackwardData, BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
BINADE_SAME(kPointwiseOperation, BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
BINADE_SAME(kOperationGraph, BACKEND_OPERATIONGRAPH_DESCRIPTOR);
BINADE_SAME(kVariantPack, BACKEND_VARIANT_PACK_DESCRIPTOR);
BINADE_SAME(kTensor, BACKEND_TENSOR_DESCRIPTOR);
BINADE_SAME(kMatmul, BACKEND_MATMUL_DESCRIPTOR);
BINADE_SAME(kMatmulOperation, BACKEND_OPERATION_MATMUL_DESCRIPTOR);
BINADE_SAME(kReduction, BACKEND_REDUCTION_DESCRIPTOR);
BINADE_SAME(kReductionOperation, BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
BINADE_SAME(kNormForward, BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
BINADE_SAME(kNormBackward, BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
BINADE_SAME(kReshape, BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
BINADE_SAME(kTypeHandle, TYPE_HANDLE);
BINADE_SAME(kTypeDataType, TYPE_DATA_TYPE);
BINADE_SAME(kTypeBoolean, TYPE_BOOLEAN);
BINADE_SAME(kTypeInt64, TYPE_INT64);
BINADE_SAME(kTypeFloat, TYPE_FLOAT);
BINADE_SAME(kTypeDouble, TYPE_DOUBLE);
BINADE_SAME(kTypeVoidPointer, TYPE_VOID_PTR);
BINADE_SAME(kTypeConvolutionMode, TYPE_CONVOLUTION_MODE);
BINADE_SAME(kTypeHeuristicMode, TYPE_HEUR_MODE);
BINADE_SAME(kTypeNanPropagation, TYPE_NAN_PROPOGATION);
BINADE_SAME(kTypeNumericalNote, TYPE_NUMERICAL_NOTE);
BINADE_SAME(kTypePointwiseMode, TYPE_POINTWISE_MODE);
BINADE_SAME(kTypeDescriptor, TYPE_BACKEND_DESCRIPTOR);
BINADE_SAME(kTypeReductionOperator, TYPE_REDUCTION_OPERATOR_TYPE);
BINADE_SAME(kTypeNormMode, TYPE_NORM_MODE);
BINADE_SAME(kTypeNormPhase, TYPE_NORM_FWD_PHASE);
BINADE_SAME(kPointwiseMode, ATTR_POINTWISE_MODE);
BINADE_SAME(kPointwisePrecision, ATTR_POINTWISE_MATH_PREC);
BINADE_SAME(kPointwiseNanPropagation, ATTR_POINTWISE_NAN_PROPAGATION);
BINADE_SAME(kPointwiseAxis, ATTR_POINTWISE_AXIS);
BINADE_SAME(kConvolutionPrecision, ATTR_CONVOLUTION_COMP_TYPE);
BINADE_SAME(kConvolutionMode, ATTR_CONVOLUTION_CONV_MODE);
BINADE_SAME(kConvolutionDilations, ATTR_CONVOLUTION_DILATIONS);
BINADE_SAME(kConvolutionStrides, ATTR_CONVOLUTION_FILTER_STRIDES);
BINADE_SAME(kConvolutionPostPaddings, ATTR_CONVOLUTION_POST_PADDINGS);
BINADE_SAME(kConvolutionPrePaddings, ATTR_CONVOLUTION_PRE_PADDINGS);
BINADE_SAME(kConvolutionSpatialDims, ATTR_CONVOLUTION_SPATIAL_DIMS);
BINADE_SAME(kHeuristicMode, ATTR_ENGINEHEUR_MODE);
BINADE_SAME(kHeuristicGraph, ATTR_ENGINEHEUR_OPERATION_GRAPH);
BINADE_SAME(kHeuristicResults, ATTR_ENGINEHEUR_RESULTS);
BINADE_SAME(kConfigEngine, ATTR_ENGINECFG_ENGINE);
BINADE_SAME(kPlanHandle, ATTR_EXECUTION_PLAN_HANDLE);
BINADE_SAME(kPlanConfig, ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
BINADE_SAME(kPlanWorkspaceSize, ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
BINADE_SAME(kForwardAlpha, ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
BINADE_SAME(kForwardBeta, ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
BINADE_SAME(kForwardConvolution, ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
BINADE_SAME(kForwardW, ATTR_OPERATION_CONVOLUTION_FORWARD_W);
BINADE_SAME(kForwardX, ATTR_OPERATION_CONVOLUTION_FORWARD_X);
BINADE_SAME(kForwardY, ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
BINADE_SAME(kDataAlpha, ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
BINADE_SAME(kDataBeta, ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
BINADE_SAME(kDataConvolution, ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
BINADE_SAME(kDataW, ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
BINADE_SAME(kDataDx, ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
BINADE_SAME(kDataDy, ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
BINADE_SAME(kFilterAlpha, ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
BINADE_SAME(kFilterBeta, ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
BINADE_SAME(kFilterConvolution, ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
BINADE_SAME(kFilterDw, ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
BINADE_SAME(kFilterX, ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
BINADE_SAME(kFilterDy, ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
BINADE_SAME(kOperationPointwise, ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
BINADE_SAME(kOperationPointwiseX, ATTR_OPERATION_POINTWISE_XDESC);
BINADE_SAME(kOperationPointwiseB, ATTR_OPERATION_POINTWISE_BDESC);
BINADE_SAME(kOperationPointwiseY, ATTR_OPERATION_POINTWISE_YDESC);
BINADE_SAME(kOperationPointwiseT, ATTR_OPERATION_POINTWISE_TDESC);
BINADE_SAME(kGraphHandle, ATTR_OPERATIONGRAPH_HANDLE);
BINADE_SAME(kGraphOperations, ATTR_OPERATIONGRAPH_OPS);
BINADE_SAME(kTensorAlignment, ATTR_TENSOR_BYTE_ALIGNMENT);
BINADE_SAME(kTensorDataType, ATTR_TENSOR_DATA_TYPE);
BINADE_SAME(kTensorDimensions, ATTR_TENSOR_DIMENSIONS);
BINADE_SAME(kTensorStrides, ATTR_TENSOR_STRIDES);
BINADE_SAME(kTensorId, ATTR_TENSOR_UNIQUE_ID);
BINADE_SAME(kTensorIsVirtual, ATTR_TENSOR_IS_VIRTUAL);
BINADE_SAME(kTensorIsByValue, ATTR_TENSOR_IS_BY_VALUE);
BINADE_SAME(kPackIds, ATTR_VARIANT_PACK_UNIQUE_IDS);
BINADE_SAME(kPackPointers, ATTR_VARIANT_PACK_DATA_POINTERS);
BINADE_SAME(kPackWorkspace, ATTR_VARIANT_PACK_WORKSPACE);
BINADE_SAME(kEngineNumericalNote, ATTR_ENGINE_NUMERICAL_NOTE);
BINADE_SAME(kMatmulPrecision, ATTR_MATMUL_COMP_TYPE);
BINADE_SAME(kMatmulA, ATTR_OPERATION_MATMUL_ADESC);
BINADE_SAME(kMatmulB, ATTR_OPERATION_MATMUL_BDESC);
BINADE_SAME(kMatmulC, ATTR_OPERATION_MATMUL_CDESC);
BINADE_SAME(kMatmulDescriptor, ATTR_OPERATION_MATMUL_DESC);
BINADE_SAME(kReductionOperator, ATTR_REDUCTION_OPERATOR);
BINADE_SAME(kReductionPrecision, ATTR_REDUCTION_COMP_TYPE);
BINADE_SAME(kReductionIsDeterministic, ATTR_REDUCTION_IS_DETERMINISTIC);
BINADE_SAME(kReductionX, ATTR_OPERATION_REDUCTION_XDESC);
BINADE_SAME(kReductionY, ATTR_OPERATION_REDUCTION_YDESC);
BINADE_SAME(kReductionDescriptor, ATTR_OPERATION_REDUCTION_DESC);
BINADE_SAME(kNormForwardMode, ATTR_OPERATION_NORM_FWD_MODE);
BINADE_SAME(kNormForwardPhase, ATTR_OPERATION_NORM_FWD_PHASE);
BINADE_SAME(kNormForwardX, ATTR_OPERATION_NORM_FWD_XDESC);
BINADE_SAME(kNormForwardMean, ATTR_OPERATION_NORM_FWD_MEAN_DESC);
BINADE_SAME(kNormForwardRstd, ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
BINADE_SAME(kNormForwardScale, ATTR_OPERATION_NORM_FWD_SCALE_DESC);
BINADE_SAME(kNormForwardBias, ATTR_OPERATION_NORM_FWD_BIAS_DESC);
BINADE_SAME(kNormForwardEpsilon, ATTR_OPERATION_NORM_FWD_EPSILON_DESC);
BINADE_SAME(kNormForwardFactor, ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC);
BINADE_SAME(kNormForwardRunningMean, ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC);
BINADE_SAME(kNormForwardRunningVar, ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC);
BINADE_SAME(kNormForwardNextMean, ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC);
BINADE_SAME(kNormForwardNextVar, ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC);
BINADE_SAME(kNormForwardY, ATTR_OPERATION_NORM_FWD_YDESC);
BINADE_SAME(kNormBackwardMode, ATTR_OPERATION_NORM_BWD_MODE);
BINADE_SAME(kNormBackwardX, ATTR_OPERATION_NORM_BWD_XDESC);
BINADE_SAME(kNormBackwardMean, ATTR_OPERATION_NORM_BWD_MEAN_DESC);
BINADE_SAME(kNormBackwardRstd, ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
BINADE_SAME(kNormBackwardDy, ATTR_OPERATION_NORM_BWD_DYDESC);
BINADE_SAME(kNormBackwardScale, ATTR_OPERATION_NORM_BWD_SCALE_DESC);
BINADE_SAME(kNormBackwardEpsilon, ATTR_OPERATION_NORM_BWD_EPSILON_DESC);
BINADE_SAME(kNormBackwardDscale, ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
BINADE_SAME(kNormBackwardDbias, ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
BINADE_SAME(kNormBackwardDx, ATTR_OPERATION_NORM_BWD_DXDESC);
BINADE_SAME(kReshapeX, ATTR_OPERATION_RESHAPE_XDESC);
BINADE_SAME(kReshapeY, ATTR_OPERATION_RESHAPE_YDESC);
BINADE_SAME(kAdd, POINTWISE_ADD);
BINADE_SAME(kMul, POINTWISE_MUL);
BINADE_SAME(kDiv, POINTWISE_DIV);
BINADE_SAME(kSub, POINTWISE_SUB);
BINADE_SAME(kExp, POINTWISE_EXP);
BINADE_SAME(kLog, POINTWISE_LOG);
BINADE_SAME(kReluForward, POINTWISE_RELU_FWD);
BINADE_SAME(kGreaterOrEqual, POINTWISE_CMP_GE);
BINADE_SAME(kGenIndex, POINTWISE_GEN_INDEX);
BINADE_SAME(kBinarySelect, POINTWISE_BINARY_SELECT);
BINADE_SAME(kCrossCorrelation, CROSS_CORRELATION);
BINADE_SAME(kPropagateNan, PROPAGATE_NAN);
BINADE_SAME(kHeuristicFallback, HEUR_MODE_FALLBACK);
BINADE_SAME(kHeuristicA, HEUR_MODE_A);
BINADE_SAME(kReduceAdd, REDUCE_TENSOR_ADD);
BINADE_SAME(kReduceMax, REDUCE_TENSOR_MAX);
BINADE_SAME(kLayerNorm, LAYER_NORM);
BINADE_SAME(kBatchNorm, BATCH_NORM);
BINADE_SAME(kRmsNorm, RMS_NORM);
BINADE_SAME(kNormInference, NORM_FWD_INFERENCE);
BINADE_SAME(kNormTraining, NORM_FWD_TRAINING);
BINADE_SAME(kTensorCore, NUMERICAL_NOTE_TENSOR_CORE);
BINADE_SAME(kDownConvertInputs, NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
BINADE_SAME(kReducedPrecisionReduction, NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
BINADE_SAME(kFft, NUMERICAL_NOTE_FFT);
BINADE_SAME(kNondeterministic, NUMERICAL_NOTE_NONDETERMINISTIC);
BINADE_SAME(kWinograd, NUMERICAL_NOTE_WINOGRAD);
BINADE_SAME(kWinograd13x13, NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
BINADE_SAME(kStrictNanPropagation, NUMERICAL_NOTE_STRICT_NAN_PROP);
#undef BINADE_SAME

// Compares the types of the functions; our enums stand in for cuDNN's.
static_assert(sizeof(cudnnBackendAttributeName_t) == sizeof(Attribute));
static_assert(sizeof(cudnnBackendAttributeType_t) == sizeof(AttributeType));
static_assert(sizeof(cudnnBackendDescriptor_t) == sizeof(Descriptor));
static_assert(std::is_same_v<decltype(&cudnnBackendExecute),
                             cudnnStatus_t (*)(cudnnHandle_t, cudnnBackendDescriptor_t,
                                               cudnnBackendDescriptor_t)>);
static_assert(
    std::is_same_v<decltype(&cudnnBackendSetAttribute),
                   cudnnStatus_t (*)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                     cudnnBackendAttributeType_t, int64_t, const void*)>);
static_assert(
    std::is_same_v<decltype(&cudnnBackendGetAttribute),
                   cudnnStatus_t (*)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                     cudnnBackendAttributeType_t, int64_t, int64_t*, void*)>);
static_assert(std::is_same_v<decltype(&cudnnGetLastErrorString), void (*)(char*, size_t)>);
#endif

namespace {

constexpr size_t kMajor = 9;  // GetVersion() is 10000 major + 100 minor + patch

struct Library {
  Api table{};
  LoadedLibrary loaded;

  Library() : loaded(kCudnn, [this](const auto& find) { return fill(find); }) {}

 private:
  std::string fill(const LoadedLibrary::Find& find) {
    bool all = true;
#define BINADE_FIND(name) all = find_function(find, "cudnn" #name, table.name) && all
    BINADE_FIND(GetVersion);
    BINADE_FIND(GetErrorString);
    BINADE_FIND(GetLastErrorString);
    BINADE_FIND(Create);
    BINADE_FIND(SetStream);
    BINADE_FIND(BackendCreateDescriptor);
    BINADE_FIND(BackendDestroyDescriptor);
    BINADE_FIND(BackendFinalize);
    BINADE_FIND(BackendSetAttribute);
    BINADE_FIND(BackendGetAttribute);
    BINADE_FIND(BackendExecute);
#undef BINADE_FIND
    if (!all) {
      return {};  // LoadedLibrary reports the missing function
    }
    const size_t got = table.GetVersion();
    return got / 10000 == kMajor ? std::string()
                                 : text("it has the version number ", got, ", expected cuDNN ",
                                        kMajor, ", which is ", kMajor * 10000, " or more");
  }
};

const Library& library() {
  static const auto* instance = new Library;  // kernels may run while the program ends
  return *instance;
}

}  // namespace

const Api& api() { return library().table; }
const std::string& missing() { return library().loaded.missing(); }
const std::string& path() { return library().loaded.path(); }

std::string version() {
  if (!missing().empty()) {
    return "";
  }
  const size_t number = api().GetVersion();
  return text(number / 10000, ".", number / 100 % 100, ".", number % 100);
}

void require_library(const char* op) {
  check(missing().empty(), op, ": got the provider \"library\", but ", missing(),
        "; or use the provider \"own\"");
}

std::string absence() {
  if (missing().empty()) {
    return "";
  }
  note_missing(kCudnn, "convolution, attention and norms run on Binade's own kernels");
  return "cuDNN was not loaded";
}

}  // namespace binade::kernels::cudnn
