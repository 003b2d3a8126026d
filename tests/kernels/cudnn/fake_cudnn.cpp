// A stand-in for libcudnn on the emulated device: it checks every attribute, descriptor and
// pointer, queues the graph on the stream of the handle, and computes it in double, rounded once.
//
// It offers engines that Binade must not take (not repeatable, rounding to fewer bits, too much
// workspace, Winograd) before those that it may take; the former fail when they run. Environment
// variables: BINADE_FAKE_CUDNN_REFUSES names a feature without an engine (relu, bias, attention,
// norm, running, strict_nan or all), or "execution" to refuse to execute plans, or "start" to make
// no handle. BINADE_FAKE_CUDNN_VARIANCE chooses the running variance: unbiased (the default),
// biased, or any other word for neither. BINADE_FAKE_CUDNN_VERSION is the version number.
// A plan's kernels end with the plan: work that is queued or in a graph then writes nothing.
#include <binade/kernels/host/cuda_runtime.h>
#include <binade/kernels/host/queue.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fake_cudnn_internal.h"

namespace binade::kernels::cudnn {

struct HandleOpaque {
  int device;
  Stream stream = nullptr;
};

namespace fake {
namespace {

constexpr size_t kWorkspaceBytes = 4096;
thread_local std::string last_error;

// The object behind a Descriptor.
struct Slot {
  std::shared_ptr<Object> object;
};
Object& object_of(Descriptor d) { return *static_cast<Slot*>(d)->object; }

Status refuse(Status status, const std::string& why) {
  last_error = why;
  return status;
}

bool writes(const Object& o, int mode) {
  return o.type == kPointwiseOperation &&
         o.at(kOperationPointwise).get<int>(kPointwiseMode) == mode;
}

// True if the environment says that there is no engine for this graph.
bool refused(const Object& graph) {
  const char* names = std::getenv("BINADE_FAKE_CUDNN_REFUSES");
  const std::string list = names ? names : "";
  const auto& operations = graph.values.at(kGraphOperations).objects;
  const auto any = [&](const auto& test) {
    return std::ranges::any_of(operations, [&](const auto& o) { return test(*o); });
  };
  const auto named = [&](const char* name) { return list.find(name) != std::string::npos; };
  const auto is_norm = [](const Object& o) {
    return o.type == kNormForward || o.type == kNormBackward;
  };
  return named("all") ||
         (named("relu") && any([](const Object& o) { return writes(o, kReluForward); })) ||
         (named("bias") && any([](const Object& o) { return writes(o, kAdd); })) ||
         (named("norm") && any(is_norm)) ||
         (named("running") && any([](const Object& o) { return o.has(kNormForwardFactor); })) ||
         (named("attention") && any([](const Object& o) { return o.type == kMatmulOperation; }));
}

std::vector<Engine> engines_for(const Object& graph, int mode) {
  if (refused(graph)) {
    return {};
  }
  const char* names = std::getenv("BINADE_FAKE_CUDNN_REFUSES");
  const bool strict = !names || !std::strstr(names, "strict_nan");
  bool floats = true;  // all are f32, which tensor cores would round
  for (const auto& operation : graph.values.at(kGraphOperations).objects) {
    for (const Object* tensor : inputs_of(*operation)) {
      const int type = tensor->get<int>(kTensorDataType);
      floats = floats && type != kHalf && type != kBfloat16 && type != kDouble;
    }
  }
  if (mode == kHeuristicFallback) {
    return {{"fallback", {}, 0, true}};
  }
  std::vector<Engine> engines{{"atomic", {kNondeterministic, kTensorCore}, 0, false},
                              {"tf32", {kTensorCore, kDownConvertInputs}, 0, false},
                              {"half sums", {kReducedPrecisionReduction}, 0, false},
                              {"winograd", {kWinograd, kWinograd4x4}, 0, false},
                              {"fft", {kFft}, 0, false},
                              {"large", {kStrictNanPropagation}, int64_t{1} << 40, false}};
  engines.push_back({"tensor", {kTensorCore}, kWorkspaceBytes, !floats});
  if (strict) {
    engines.push_back({"strict", {kStrictNanPropagation}, kWorkspaceBytes, true});
  }
  engines.push_back({"plain", {}, kWorkspaceBytes, true});
  return engines;
}

bool is_strict(const Engine& engine) {
  return std::ranges::count(engine.notes, kStrictNanPropagation) != 0;
}

// Checks that the pack names every tensor in memory once, with pointers of the promised alignment.
std::string check_pack(const Object& graph, const Object& pack, const Engine& engine,
                       Memory& memory) {
  const auto ids = pack.list(kPackIds);
  std::map<int64_t, void*> given;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!given.emplace(ids[i], pack.get<void*>(kPackPointers, i)).second) {
      return "an id twice in the pack";
    }
  }
  for (const auto& operation : graph.values.at(kGraphOperations).objects) {
    std::vector<const Object*> tensors = inputs_of(*operation);
    const auto outputs = outputs_of(*operation);
    tensors.insert(tensors.end(), outputs.begin(), outputs.end());
    for (const Object* tensor : tensors) {
      const int64_t id = id_of(*tensor);
      if (flag(*tensor, kTensorIsVirtual)) {
        continue;
      }
      void* const p = given.count(id) ? given[id] : nullptr;
      if (!p || reinterpret_cast<uintptr_t>(p) %
                        static_cast<uintptr_t>(tensor->get<int64_t>(kTensorAlignment)) !=
                    0) {
        return "tensor " + std::to_string(id) + " has no pointer, or a misaligned one";
      }
      if (flag(*tensor, kTensorIsByValue)) {
        memory.numbers[id] = static_cast<double>(*static_cast<const float*>(p));
      } else {
        memory.pointers[id] = p;
      }
    }
  }
  if (memory.pointers.size() + memory.numbers.size() != given.size()) {
    return "a pointer in the pack that the graph does not use";
  }
  auto* const workspace = pack.get<void*>(kPackWorkspace);
  if (engine.workspace > 0 && (!workspace || reinterpret_cast<uintptr_t>(workspace) % 256 != 0)) {
    return "no workspace, or a misaligned one";
  }
  return "";
}

// Overwrites the workspace as the engine's kernels would; false if it is not device memory.
bool use_workspace(const Engine& engine, const Object& pack, cudaStream_t stream) {
  return engine.workspace == 0 ||
         cudaMemsetAsync(pack.get<void*>(kPackWorkspace), 0xff,
                         static_cast<size_t>(engine.workspace), stream) == cudaSuccess;
}

// Kernels cannot be loaded while a stream is captured, unless the thread is relaxed.
bool may_load() {
  void* block = nullptr;
  if (cudaMalloc(&block, 256) != cudaSuccess) {
    return false;
  }
  return cudaFree(block) == cudaSuccess;
}

Status finalize(Object& object) {
  try {
    check_object(object);
  } catch (const std::string& problem) {
    return refuse(kBadParam, problem);
  }
  if (object.type == kExecutionPlan) {
    object.engine = object.at(kPlanConfig).engine;
    if (!may_load()) {
      return refuse(kExecutionFailed, "a plan was made during a capture");
    }
  }
  object.finalized = true;
  return kSuccess;
}

Status results(Object& heuristic, int64_t room, int64_t* count, void* values) {
  const std::shared_ptr<Object>& graph = heuristic.values.at(kHeuristicGraph).objects.at(0);
  const auto engines = engines_for(*graph, heuristic.get<int>(kHeuristicMode));
  *count = static_cast<int64_t>(engines.size());
  for (size_t i = 0; i < engines.size() && static_cast<int64_t>(i) < room; ++i) {
    Object& config = object_of(static_cast<Descriptor*>(values)[i]);
    if (config.type != kEngineConfig) {
      return refuse(kBadParam, "heuristics were not given engine configurations");
    }
    config.engine = engines[i];
    config.values[kHeuristicGraph] = {kTypeDescriptor, 1, {}, {graph}};
    config.finalized = true;
  }
  return kSuccess;
}

}  // namespace

bool flag(const Object& tensor, Attribute which) {
  return tensor.has(which) && tensor.get<bool>(which);
}

size_t width_of(int type) {
  switch (type) {
    case kTypeHandle:
    case kTypeInt64:
    case kTypeDouble:
    case kTypeVoidPointer:
    case kTypeDescriptor: return 8;
    case kTypeBoolean: return 1;
    default: return 4;
  }
}

std::vector<const Object*> named(const Object& o, std::initializer_list<Attribute> attributes) {
  std::vector<const Object*> tensors;
  for (const Attribute attribute : attributes) {
    if (o.has(attribute)) {
      tensors.push_back(&o.at(attribute));
    }
  }
  return tensors;
}

std::vector<const Object*> inputs_of(const Object& o) {
  return named(o, {kForwardX,
                   kForwardW,
                   kDataDy,
                   kDataW,
                   kFilterX,
                   kFilterDy,
                   kMatmulA,
                   kMatmulB,
                   kReductionX,
                   kReshapeX,
                   kOperationPointwiseX,
                   kOperationPointwiseB,
                   kOperationPointwiseT,
                   kNormForwardX,
                   kNormForwardScale,
                   kNormForwardBias,
                   kNormForwardEpsilon,
                   kNormForwardFactor,
                   kNormForwardRunningMean,
                   kNormForwardRunningVar,
                   kNormBackwardX,
                   kNormBackwardDy,
                   kNormBackwardScale,
                   kNormBackwardMean,
                   kNormBackwardRstd});
}
std::vector<const Object*> outputs_of(const Object& o) {
  return named(
      o, {kForwardY, kDataDx, kFilterDw, kMatmulC, kReductionY, kReshapeY, kOperationPointwiseY,
          kNormForwardMean, kNormForwardRstd, kNormForwardY, kNormForwardNextMean,
          kNormForwardNextVar, kNormBackwardDx, kNormBackwardDscale, kNormBackwardDbias});
}

}  // namespace fake

using namespace fake;  // NOLINT: the calls below are global

extern "C" {

size_t cudnnGetVersion() {
  const char* number = std::getenv("BINADE_FAKE_CUDNN_VERSION");
  return number ? static_cast<size_t>(std::atoi(number)) : 91900;
}
const char* cudnnGetErrorString(Status status) {
  return status == kBadParam            ? "CUDNN_STATUS_BAD_PARAM"
         : status == kMisalignedPointer ? "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER"
         : status == kExecutionFailed   ? "CUDNN_STATUS_EXECUTION_FAILED"
                                        : "CUDNN_STATUS_NOT_SUPPORTED";
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::strncpy(message, last_error.c_str(), bytes - 1);
  message[bytes - 1] = 0;
}

Status cudnnCreate(Handle* handle) {
  const char* refused = std::getenv("BINADE_FAKE_CUDNN_REFUSES");
  if (refused && std::strstr(refused, "start")) {
    return refuse(kExecutionFailed, "no handle");
  }
  if (!may_load()) {
    return refuse(kExecutionFailed, "a handle was made during a capture");
  }
  int device = 0;
  cudaGetDevice(&device);
  *handle = new HandleOpaque{device};
  return kSuccess;
}
Status cudnnSetStream(Handle handle, Stream stream) {
  handle->stream = stream;
  return kSuccess;
}

Status cudnnBackendCreateDescriptor(DescriptorType type, Descriptor* descriptor) {
  auto object = std::make_shared<Object>();
  object->type = type;
  *descriptor = new Slot{std::move(object)};
  return kSuccess;
}
Status cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  delete static_cast<Slot*>(descriptor);
  return kSuccess;
}
Status cudnnBackendFinalize(Descriptor descriptor) { return finalize(object_of(descriptor)); }

Status cudnnBackendSetAttribute(Descriptor descriptor, Attribute attribute, AttributeType type,
                                int64_t count, const void* values) {
  Object& object = object_of(descriptor);
  const Rule* rule = rule_of(attribute);
  const bool factor = type == kTypeDouble && rule && rule->type == kTypeFloat;
  if (object.finalized || !rule || rule->owner != object.type || (rule->type != type && !factor) ||
      count < 1 || count > rule->most || !values) {
    return refuse(kBadParam, "attribute " + std::to_string(attribute) + " of type " +
                                 std::to_string(type) + " of an object of type " +
                                 std::to_string(object.type));
  }
  const auto* first = static_cast<const std::byte*>(values);
  Value value{type, count, {first, first + static_cast<size_t>(count) * width_of(type)}, {}};
  for (int64_t i = 0; type == kTypeDescriptor && i < count; ++i) {
    auto* const slot = static_cast<Slot* const*>(values)[i];
    if (!slot || !slot->object->finalized) {
      return refuse(kBadParam, "a descriptor that is not finalized");
    }
    value.objects.push_back(slot->object);
  }
  object.values[attribute] = std::move(value);
  return kSuccess;
}

Status cudnnBackendGetAttribute(Descriptor descriptor, Attribute attribute, AttributeType type,
                                int64_t room, int64_t* count, void* values) {
  Object& object = object_of(descriptor);
  const bool is_engine = object.type == kEngine;
  if (!object.finalized && !is_engine) {
    return refuse(kBadParam, "an attribute of an object that is not finalized");
  }
  if (attribute == kHeuristicResults && type == kTypeDescriptor) {
    return results(object, room, count, values);
  }
  *count = 1;
  if (attribute == kConfigEngine && type == kTypeDescriptor && room == 1) {
    object_of(*static_cast<Descriptor*>(values)).engine = object.engine;
    return kSuccess;
  }
  if (attribute == kEngineNumericalNote && type == kTypeNumericalNote && is_engine) {
    *count = static_cast<int64_t>(object.engine.notes.size());
    std::copy_n(object.engine.notes.begin(), std::min(room, *count),
                static_cast<NumericalNote*>(values));
    return kSuccess;
  }
  if (attribute == kPlanWorkspaceSize && type == kTypeInt64 && room == 1) {
    *static_cast<int64_t*>(values) = object.engine.workspace;
    return kSuccess;
  }
  return refuse(kBadParam, "an attribute that the object does not have");
}

Status cudnnBackendExecute(Handle handle, Descriptor plan_descriptor, Descriptor pack_descriptor) {
  const Object &plan = object_of(plan_descriptor), &pack = object_of(pack_descriptor);
  int device = 0;
  cudaGetDevice(&device);
  if (!handle || handle->device != device || !plan.finalized || !pack.finalized ||
      plan.get<Handle>(kPlanHandle) != handle) {
    return refuse(kBadParam, "the handle, plan or pack of an execution");
  }
  const char* refused = std::getenv("BINADE_FAKE_CUDNN_REFUSES");
  if (refused && std::strstr(refused, "execution")) {
    return refuse(kNotSupported, "the arguments of an execution");
  }
  if (!plan.engine.works) {
    return refuse(kExecutionFailed, std::string("the engine ") + plan.engine.name);
  }
  const std::shared_ptr<Object> graph =
      plan.at(kPlanConfig).values.at(kHeuristicGraph).objects.at(0);
  Memory memory;
  const std::string problem = check_pack(*graph, pack, plan.engine, memory);
  if (!problem.empty()) {
    return refuse(kMisalignedPointer, problem);
  }
  if (!use_workspace(plan.engine, pack, static_cast<cudaStream_t>(handle->stream))) {
    return refuse(kExecutionFailed, "the workspace is too small");
  }
  const bool strict = is_strict(plan.engine);
  const std::weak_ptr<Object> alive = static_cast<Slot*>(plan_descriptor)->object;
  return host::enqueue_kernel({.name = "cudnnBackendExecute",
                               .grid = dim3(1),
                               .block = dim3(1),
                               .stream = handle->stream},
                              [graph, memory, strict, alive] {
                                if (!alive.expired()) {
                                  compute(*graph, memory, strict);
                                }
                              }) == cudaSuccess
             ? kSuccess
             : refuse(kExecutionFailed, "the launch");
}

}  // extern "C"

}  // namespace binade::kernels::cudnn
