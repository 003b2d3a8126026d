// The part of cuDNN that Binade calls, its graph ("backend") interface of version 9. It is a table
// of functions found at run time: the build needs neither header nor library, and programs run
// without them. Names and numbers are those of cudnn_graph.h 9; builds that have the header compare
// them with it (cudnn_api_cuda.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace binade::kernels::cudnn {

enum Status : int {
  kSuccess = 0,
  kBadParam = 2000,
  kMisalignedPointer = 2003,
  kNotSupported = 3000,
  kExecutionFailed = 5000
};
// True if the library cannot do what was asked and has done nothing: the families BAD_PARAM (2000)
// and NOT_SUPPORTED (3000).
constexpr bool is_refusal(Status status) { return status >= kBadParam && status < 4000; }
enum DataType : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kInt32 = 4,
  kBfloat16 = 9,
  kInt64 = 10,
  kBoolean = 11
};
enum DescriptorType : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristic = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardFilter = 11,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kNormForward = 29,
  kNormBackward = 30,
  kReshape = 31
};
enum AttributeType : int {
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypeDouble = 5,
  kTypeVoidPointer = 6,
  kTypeConvolutionMode = 7,
  kTypeHeuristicMode = 8,
  kTypeNanPropagation = 10,
  kTypeNumericalNote = 11,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,
  kTypeReductionOperator = 18,
  kTypeNormMode = 27,
  kTypeNormPhase = 28
};
enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseNanPropagation = 2,
  kPointwiseAxis = 9,
  kConvolutionPrecision = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDims = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceSize = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kDataAlpha = 706,
  kDataBeta = 707,
  kDataConvolution = 708,
  kDataW = 709,
  kDataDx = 710,
  kDataDy = 711,
  kFilterAlpha = 712,
  kFilterBeta = 713,
  kFilterConvolution = 714,
  kFilterDw = 715,
  kFilterX = 716,
  kFilterDy = 717,
  kOperationPointwise = 750,
  kOperationPointwiseX = 751,
  kOperationPointwiseB = 752,
  kOperationPointwiseY = 753,
  kOperationPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNote = 1303,
  kMatmulPrecision = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionPrecision = 1601,
  kReductionIsDeterministic = 1602,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kNormForwardMode = 2000,
  kNormForwardPhase = 2001,
  kNormForwardX = 2002,
  kNormForwardMean = 2003,
  kNormForwardRstd = 2004,
  kNormForwardScale = 2005,
  kNormForwardBias = 2006,
  kNormForwardEpsilon = 2007,
  kNormForwardFactor = 2008,
  kNormForwardRunningMean = 2009,
  kNormForwardRunningVar = 2010,
  kNormForwardNextMean = 2011,
  kNormForwardNextVar = 2012,
  kNormForwardY = 2013,
  kNormBackwardMode = 2100,
  kNormBackwardX = 2101,
  kNormBackwardMean = 2102,
  kNormBackwardRstd = 2103,
  kNormBackwardDy = 2104,
  kNormBackwardScale = 2105,
  kNormBackwardEpsilon = 2106,
  kNormBackwardDscale = 2107,
  kNormBackwardDbias = 2108,
  kNormBackwardDx = 2109,
  kReshapeX = 2200,
  kReshapeY = 2201
};
enum Pointwise : int {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kReluForward = 100,
  kGreaterOrEqual = 303,
  kGenIndex = 501,
  kBinarySelect = 601
};
enum ConvolutionMode : int { kCrossCorrelation = 1 };
enum NanPropagation : int { kPropagateNan = 1 };
enum HeuristicMode : int { kHeuristicFallback = 2, kHeuristicA = 3 };
enum ReductionOperator : int { kReduceAdd = 0, kReduceMax = 3 };
enum NormMode : int { kLayerNorm = 0, kBatchNorm = 2, kRmsNorm = 4 };
enum NormPhase : int { kNormInference = 0, kNormTraining = 1 };
// How an engine computes. Several notes may apply.
enum NumericalNote : int {
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kReducedPrecisionReduction = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
  kWinograd4x4 = 6,
  kWinograd6x6 = 7,
  kWinograd13x13 = 8,
  kStrictNanPropagation = 9
};
inline constexpr int64_t kMostNotes = 10;

using Handle = struct HandleOpaque*;
using Descriptor = void*;
using Stream = void*;  // cudaStream_t

struct Api {
  size_t (*GetVersion)();
  const char* (*GetErrorString)(Status status);
  void (*GetLastErrorString)(char* message, size_t bytes);
  Status (*Create)(Handle* handle);
  Status (*SetStream)(Handle handle, Stream stream);
  Status (*BackendCreateDescriptor)(DescriptorType type, Descriptor* descriptor);
  Status (*BackendDestroyDescriptor)(Descriptor descriptor);
  Status (*BackendFinalize)(Descriptor descriptor);
  Status (*BackendSetAttribute)(Descriptor descriptor, Attribute attribute, AttributeType type,
                                int64_t count, const void* values);
  Status (*BackendGetAttribute)(Descriptor descriptor, Attribute attribute, AttributeType type,
                                int64_t room, int64_t* count, void* values);
  Status (*BackendExecute)(Handle handle, Descriptor plan, Descriptor pack);
};

// Loaded by the first call (kernels/base/vendor_library.h). REQUIRES: missing() is empty.
const Api& api();
// The reason why there is no library; empty if it is loaded.
const std::string& missing();
const std::string& path();  // of the loaded file
std::string version();      // "9.19.0"; "" if it is not loaded

// For the provider "library": throws an Error that says where cuDNN was looked for if it was not
// loaded.
void require_library(const char* op);
// For the provider "auto": why cuDNN cannot be used, or "". Notes once if it is missing.
std::string absence();

}  // namespace binade::kernels::cudnn
