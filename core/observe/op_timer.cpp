#include <binade/core/device/device_stats.h>
#include <binade/core/observe/call_stack_internal.h>
#include <binade/core/observe/op_timer_internal.h>
#include <binade/core/observe/timeline.h>

#include <algorithm>

namespace binade::detail {
namespace {

constexpr size_t kMostMade = 100'000;  // tensors that are remembered

// FNV-1a.
void mix(uint64_t& hash, uint64_t value) { hash = (hash ^ value) * 0x100000001B3U; }

void mix(uint64_t& hash, const Tensor& t) {
  if (!t.defined()) {
    mix(hash, 0xFF);
    return;
  }
  mix(hash, static_cast<uint64_t>(t.dtype()) + 1);
  for (const int64_t size : t.sizes()) {
    mix(hash, static_cast<uint64_t>(size) + 3);
  }
}

std::string operand_text(const Tensor& t) {
  return t.defined() ? text(t.dtype(), " ", t.sizes()) : "none";
}

}  // namespace

void OpTimer::mark() {
  open_.clear();
  timeline_boundary() = timeline_now();
}

void OpTimer::enter(const EnterEvent& event) {
  if (timeline_has(Activity::cpu)) {
    open_.push_back({&event.op, timeline_now()});
  }
}

// The begin time of the op or node that ends now. Ops that began inside it and gave no result are
// dropped. If it reported no begin (such as a view), it began when the event before it ended.
int64_t OpTimer::close(const void* what) {
  for (size_t i = open_.size(); i-- > 0;) {
    if (open_[i].what == what) {
      const int64_t begin = open_[i].begin;
      open_.resize(i);
      return begin;
    }
  }
  const int64_t before = open_.empty() ? 0 : open_.back().begin;
  return std::max(timeline_boundary(), before);
}

CostRule OpTimer::rule_of(const Op& op) {
  const auto [entry, is_new] = rules_.try_emplace(&op);
  if (is_new) {
    entry->second = cost_rule(op);
  }
  return entry->second;
}

const char* OpTimer::shapes_of(const OpEvent& event) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (const Tensor* input : event.inputs) {
    mix(hash, *input);
  }
  mix(hash, uint64_t{1} << 32);
  for (const Tensor& output : event.outputs) {
    mix(hash, output);
  }
  const auto [entry, is_new] = shapes_.try_emplace(hash, nullptr);
  if (is_new) {
    std::string all;
    for (const Tensor* input : event.inputs) {
      all += (all.empty() ? "" : ", ") + operand_text(*input);
    }
    all += " -> ";
    for (const Tensor& output : event.outputs) {
      all += (&output == event.outputs.data() ? "" : ", ") + operand_text(output);
    }
    entry->second = timeline_text(all);
  }
  return entry->second;
}

// The calls that led to an op. An op of a backward has those of the op that is differentiated.
uint32_t OpTimer::stack_of(const OpEvent& event) const {
  if (!timeline_has(Activity::source_lines)) {
    return 0;
  }
  if (!event.in_backward) {
    return record_call_stack();
  }
  const Node* node = event.backward_of;
  const auto made = node ? made_.find({node->output, node->op}) : made_.end();
  return made == made_.end() ? 0 : made->second.stack;
}

void OpTimer::sample_memory(const OpEvent& event) {
  if (event.outputs.empty() || !event.outputs[0].defined() || event.outputs[0].device().is_cpu() ||
      !timeline_has(Activity::memory)) {
    return;
  }
  const Device device = event.outputs[0].device();
  const DeviceMemoryStats stats = memory_stats(device);
  timeline_counter(timeline_text(text(device, " allocated")), static_cast<double>(stats.allocated));
  timeline_counter(timeline_text(text(device, " reserved")), static_cast<double>(stats.reserved));
}

void OpTimer::result(const OpEvent& event) {
  if (!timeline_has(Activity::cpu)) {
    return;
  }
  const int64_t begin = close(&event.op), end = timeline_now();
  const OpCost cost = op_cost(rule_of(event.op), event.inputs, event.outputs);
  const char* shapes = shapes_of(event);
  const uint32_t stack = stack_of(event);
  const char* phase = timeline_phase();
  timeline_add({.kind = TimelineEvent::op,
                .backward = event.in_backward,
                .name = event.op.name,
                .in_phase = phase               ? phase
                            : event.in_backward ? "backward"
                                                : "forward",
                .note = shapes,
                .label = event.module,
                .stack = stack,
                .begin = begin,
                .end = end,
                .amount = cost.flops,
                .bytes = cost.bytes});
  if (event.recording && !event.outputs.empty() && event.outputs[0].defined()) {
    if (made_.size() >= kMostMade) {
      made_.clear();
    }
    made_[{event.outputs[0].handle().get(), &event.op}] = {event.outputs[0].sizes(), cost, shapes,
                                                           stack};
  }
  sample_memory(event);
  timeline_boundary() = timeline_now();
}

void OpTimer::upstream(const GradientEvent& event) {
  if (!event.node.leaf && timeline_has(Activity::cpu)) {
    open_.push_back({&event.node, timeline_now()});
  }
}

void OpTimer::gradients(const GradientEvent& event) {
  if (!timeline_has(Activity::cpu)) {
    return;
  }
  const Node& node = event.node;
  const int64_t end = timeline_now();
  TimelineEvent out{.kind = TimelineEvent::op,
                    .backward = true,
                    .name = node.name(),
                    .in_phase = timeline_phase() ? timeline_phase() : "backward",
                    .label = node.label,
                    .begin = close(&node),
                    .end = end};
  const auto made = made_.find({node.output, node.op});
  if (made != made_.end() && made->second.sizes == node.sizes) {
    const OpCost cost = backward_cost(rule_of(*node.op), made->second.cost, node);
    out.note = made->second.shapes;
    out.stack = made->second.stack;
    out.amount = cost.flops;
    out.bytes = cost.bytes;
  }
  timeline_add(out);
  timeline_boundary() = timeline_now();
}

}  // namespace binade::detail
