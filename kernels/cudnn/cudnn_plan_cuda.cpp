// Plans: chosen among the library's engines, kept by problem, executed. Of more problems than
// plan_limit() the least recent plan is destroyed once its work is done, or with the last graph
// that runs its kernels. A capture cannot wait for work, so the plans that made room in it are
// destroyed after it.
//
// There is one handle per device, used under the device's lock: two threads must not use a handle
// or a plan at once. The lock is held while work is queued, not while it runs.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/provider.h>
#include <binade/kernels/base/stream.h>
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/device_uses_internal.h>
#include <binade/kernels/cuda/recent_cache_internal.h>
#include <binade/kernels/cuda/relaxed_capture_internal.h>
#include <binade/kernels/cudnn/cudnn_graph_internal.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

namespace binade::kernels::cudnn {
namespace {

constexpr size_t kWorkspaceAlignment = 256;  // that of cudaMalloc, which the library's samples use
constexpr int kMostPlansTried = 32;

std::atomic<int64_t> made{0}, alive{0};

using Key = std::vector<int64_t>;

// Engines read whole vectors: on an H200 several faulted on unaligned memory although the graph had
// described the alignment.
bool is_aligned(const Operand& o) {
  return o.by_value || reinterpret_cast<uintptr_t>(o.data) % kTensorBytes == 0;
}

// Several engines count elements in 32 bits and accept more without an error.
bool is_countable(const Operand& o) {
  int64_t last = 0;
  for (int i = 0; i < o.sizes.size(); ++i) {
    last += (o.sizes[i] - 1) * o.strides[i];
  }
  return last < std::numeric_limits<int32_t>::max();
}

Key key_of(const Problem& p) {
  Key key{static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.build)), static_cast<int64_t>(p.dtype),
          int64_t{p.keeps_nan}};
  key.insert(key.end(), p.options.begin(), p.options.end());
  for (const Operand& o : p.operands) {
    key.push_back(o.type);
    key.insert(key.end(), o.sizes.begin(), o.sizes.end());
    key.insert(key.end(), o.strides.begin(), o.strides.end());
  }
  return key;
}

// A plan and the objects it was made from; the library's own front end keeps the graph alive, too.
struct Plan {
  std::unique_ptr<Graph> graph;
  Object description, config, plan;
  int64_t workspace = 0;
  std::string refusal;  // why there is no plan
  DeviceUses uses;

  Plan() { ++alive; }
  ~Plan() { --alive; }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

// Where a plan's work goes.
struct Target {
  cudaStream_t stream;
  cudaGraph_t graph;  // captures the stream, or is null
};

// A plan whose kernels a captured graph runs.
struct PlanOfGraph {
  std::shared_ptr<Plan> plan;
  std::atomic<PlanOfGraph*>* released;  // where it goes when the graph is gone
  PlanOfGraph* next = nullptr;
};

struct DeviceState {
  std::mutex mutex;
  Handle handle = nullptr;  // lives as long as the process
  RecentCache<Key, std::shared_ptr<Plan>> plans;
  std::vector<std::shared_ptr<Plan>> evicted;  // their work may still run
  // A list. The end of a graph may not call the library, so run() destroys these plans.
  std::atomic<PlanOfGraph*> released{nullptr};
};

void release_from_graph(void* object) {
  auto* const end = static_cast<PlanOfGraph*>(object);
  end->next = end->released->load();
  while (!end->released->compare_exchange_weak(end->next, end)) {
  }
}

void destroy_released(DeviceState& state) {
  for (PlanOfGraph* one = state.released.exchange(nullptr); one;) {
    const std::unique_ptr<PlanOfGraph> last(one);
    one = one->next;
  }
}

void destroy_evicted(DeviceState& state) {
  for (const std::shared_ptr<Plan>& plan : state.evicted) {
    plan->uses.wait();
  }
  state.evicted.clear();
}

DeviceState& state_of(Device device) {
  static auto& mutex = *new std::mutex;
  static auto& states = *new std::map<int, std::unique_ptr<DeviceState>>;
  const std::lock_guard lock(mutex);
  auto& state = states[device.index];
  if (!state) {
    state = std::make_unique<DeviceState>();
  }
  return *state;
}

// Makes a handle for the current device. A library that was loaded may still fail to start, for
// lack of memory or of its other files: that is noted once.
bool start(Handle& handle, std::string& why) {
  const Status status = api().Create(&handle);
  if (status == kSuccess) {
    return true;
  }
  handle = nullptr;
  why = text("cuDNN does not start: cudnnCreate: ", api().GetErrorString(status));
  static std::atomic<bool> noted{false};
  if (!noted.exchange(true)) {
    send_notice(text(why, "; convolution, attention and norms run on Binade's own kernels"));
  }
  return false;
}

// The reason not to use an engine with these notes; null if it is fit.
const char* objection(const std::vector<NumericalNote>& notes, const Problem& p) {
  const auto has = [&](NumericalNote note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (has(kNondeterministic)) {
    return "does not repeat bit for bit";
  }
  if (has(kDownConvertInputs) || has(kReducedPrecisionReduction) ||
      (p.dtype == DType::f32 && has(kTensorCore))) {
    return "rounds inputs or sums to fewer bits";
  }
  if (has(kFft) || has(kWinograd) || has(kWinograd4x4) || has(kWinograd6x6) ||
      has(kWinograd13x13)) {
    return "uses an FFT or Winograd transform";
  }
  return p.keeps_nan && !has(kStrictNanPropagation) ? "may turn NaN into 0" : nullptr;
}

std::vector<Object> configs_of(HeuristicMode mode, Descriptor graph) {
  Object heuristic(kEngineHeuristic);
  heuristic.set(kHeuristicGraph, graph);
  heuristic.set(cudnn::kHeuristicMode, kTypeHeuristicMode, mode);
  heuristic.finalize();
  const int64_t count = heuristic.get(kHeuristicResults, kTypeDescriptor, 0, nullptr);
  std::vector<Object> configs;
  std::vector<Descriptor> descriptors;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(kEngineConfig);
    descriptors.push_back(configs.back().get());
  }
  const int64_t got =
      count == 0 ? 0 : heuristic.get(kHeuristicResults, kTypeDescriptor, count, descriptors.data());
  configs.resize(static_cast<size_t>(std::min(got, count)));
  return configs;
}

std::vector<NumericalNote> notes_of(const Object& config) {
  const Object engine(kEngine);
  Descriptor descriptor = engine.get();
  config.get(kConfigEngine, kTypeDescriptor, 1, &descriptor);
  std::vector<NumericalNote> notes(kMostNotes);
  const int64_t count =
      engine.get(kEngineNumericalNote, kTypeNumericalNote, kMostNotes, notes.data());
  notes.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, kMostNotes)));
  return notes;
}

// Makes a plan from this engine; returns the reason not to use it, or "".
std::string try_config(Handle handle, const Problem& p, Object&& config, Plan& plan) {
  try {
    if (const char* reason = objection(notes_of(config), p)) {
      return reason;
    }
    Object made_plan(kExecutionPlan);
    made_plan.set(kPlanHandle, kTypeHandle, handle);
    made_plan.set(kPlanConfig, config.get());
    made_plan.finalize();
    int64_t bytes = 0;
    made_plan.get(kPlanWorkspaceSize, kTypeInt64, 1, &bytes);
    if (bytes > kMostWorkspace) {
      return text("needs ", bytes >> 20, " MiB of workspace, more than ", kMostWorkspace >> 20);
    }
    plan.config = std::move(config);
    plan.plan = std::move(made_plan);
    plan.workspace = bytes;
    return "";
  } catch (const Refusal& refusal) {
    return refusal.reason;
  }
}

void find_plan(Handle handle, const Problem& p, Plan& plan) {
  plan.graph = std::make_unique<Graph>(p.operands, p.dtype == DType::f64 ? kDouble : kFloat);
  p.build(*plan.graph, p);
  const std::vector<Descriptor> operations = plan.graph->operations();
  plan.description = Object(kOperationGraph);
  plan.description.set(kGraphHandle, kTypeHandle, handle);
  plan.description.set(kGraphOperations, kTypeDescriptor, static_cast<int64_t>(operations.size()),
                       operations.data());
  plan.description.finalize();
  std::string reasons;
  int tried = 0;
  for (const HeuristicMode mode : {kHeuristicA, kHeuristicFallback}) {
    for (Object& config : configs_of(mode, plan.description.get())) {
      if (++tried > kMostPlansTried) {
        break;
      }
      const std::string reason = try_config(handle, p, std::move(config), plan);
      if (reason.empty()) {
        return;
      }
      if (reasons.find(reason) == std::string::npos) {
        reasons += (reasons.empty() ? "" : "; ") + reason;
      }
    }
  }
  throw Refusal{tried == 0 ? "it offers no engine"
                           : text("none of its ", tried, " engines will do: ", reasons)};
}

std::shared_ptr<Plan> plan_of(DeviceState& state, const Problem& p, const Target& target) {
  const Key key = key_of(p);
  if (const std::shared_ptr<Plan>* known = state.plans.find(key)) {
    return *known;
  }
  while (auto oldest = state.plans.take_beyond(plan_limit() - 1)) {
    state.evicted.push_back(std::move(*oldest));
  }
  if (!target.graph) {
    destroy_evicted(state);
  }
  auto plan = std::make_shared<Plan>();
  try {
    find_plan(state.handle, p, *plan);
    ++made;
  } catch (const Refusal& refusal) {
    plan = std::make_shared<Plan>();
    plan->refusal = text("cuDNN: ", refusal.reason);
  }
  return state.plans.add(key, std::move(plan));
}

// Queues the plan's work. Throws Refusal if the library finds only now that an engine cannot serve
// these arguments, before it has queued anything; throws Error if it fails.
void execute(DeviceState& state, const Problem& p, const std::shared_ptr<Plan>& owner,
             const Target& target) {
  Plan& plan = *owner;
  const Workspace memory(
      plan.workspace > 0 ? static_cast<size_t>(plan.workspace) + kWorkspaceAlignment : 0, p.device);
  auto start = reinterpret_cast<uintptr_t>(memory.as<void>());
  start = (start + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  void* const workspace = reinterpret_cast<void*>(start);
  std::vector<int64_t> ids;
  std::vector<void*> data;
  for (const Operand& o : p.operands) {
    ids.push_back(static_cast<int64_t>(ids.size()));
    data.push_back(o.data);
  }
  Object pack(kVariantPack);
  pack.set(kPackIds, kTypeInt64, static_cast<int64_t>(ids.size()), ids.data());
  pack.set(kPackPointers, kTypeVoidPointer, static_cast<int64_t>(data.size()), data.data());
  pack.set(kPackWorkspace, kTypeVoidPointer, workspace);
  pack.finalize();
  const auto require = [&](Status status, const char* what) {
    if (is_refusal(status)) {
      throw Refusal{text("cuDNN: ", what, ": ", api().GetErrorString(status))};
    }
    check(status == kSuccess, p.name, ": cuDNN failed to run its plan: ", what, ": ",
          api().GetErrorString(status), "; use the provider \"own\"");
  };
  if (target.graph) {
    keep_with_graph(target.graph, new PlanOfGraph{owner, &state.released}, release_from_graph);
  }
  require(api().SetStream(state.handle, target.stream), "cudnnSetStream");
  require(api().BackendExecute(state.handle, plan.plan.get(), pack.get()), "cudnnBackendExecute");
  if (!target.graph) {
    plan.uses.note(target.stream);
  }
}

}  // namespace

int64_t plans_made() { return made; }
int64_t plans_alive() { return alive; }

bool run(const Problem& problem, std::string& why) {
  if (!std::ranges::all_of(problem.operands, is_aligned)) {
    why = text("cuDNN: an operand does not begin at a multiple of ", kTensorBytes, " bytes");
    return false;
  }
  if (!std::ranges::all_of(problem.operands, is_countable)) {
    why = "cuDNN: an operand has 2^31 elements or more";
    return false;
  }
  DeviceState& state = state_of(problem.device);
  const std::lock_guard lock(state.mutex);
  const RelaxedCapture relaxed;  // the library may load kernels, even when it executes a plan
  if (!state.handle && !start(state.handle, why)) {
    return false;
  }
  destroy_released(state);
  auto* const stream = static_cast<cudaStream_t>(current_stream(problem.device));
  // The null stream cannot be captured.
  const Target target{stream, stream ? graph_of_capture(stream) : nullptr};
  if (!target.graph) {
    destroy_evicted(state);
  }
  const std::shared_ptr<Plan> plan = plan_of(state, problem, target);
  if (plan->refusal.empty()) {
    try {
      execute(state, problem, plan, target);
      return true;
    } catch (const Refusal& refusal) {
      plan->refusal = refusal.reason;  // the plan lives on: captured graphs may run its kernels
    }
  }
  why = plan->refusal;
  return false;
}

}  // namespace binade::kernels::cudnn
