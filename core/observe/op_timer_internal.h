// OpTimer: adds the ops of a thread to the timeline, forward and backward. Internal to the
// profiler.
#pragma once
#include <binade/core/observe/observer.h>
#include <binade/core/observe/op_cost_internal.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace binade::detail {

class OpTimer final : public OpObserver {
 public:
  bool accepts_fused_ops() const override { return true; }
  void enter(const EnterEvent& event) override;
  void result(const OpEvent& event) override;
  void upstream(const GradientEvent& event) override;
  void gradients(const GradientEvent& event) override;
  // The next op begins after this moment.
  void mark();

 private:
  struct Open {
    const void* what;  // an Op or a Node
    int64_t begin;
  };
  // The op that made a tensor, kept for its backward.
  struct Made {
    Dims sizes = {};
    OpCost cost = {};
    const char* shapes = nullptr;
    uint32_t stack = 0;
  };
  int64_t close(const void* what);
  CostRule rule_of(const Op& op);
  const char* shapes_of(const OpEvent& event);
  uint32_t stack_of(const OpEvent& event) const;
  void sample_memory(const OpEvent& event);

  std::vector<Open> open_;
  std::unordered_map<const Op*, CostRule> rules_;
  // The memory of a result may be reused for another result before its backward.
  std::map<std::pair<const TensorData*, const Op*>, Made> made_;
  std::unordered_map<uint64_t, const char*> shapes_;  // by their hash
};

}  // namespace binade::detail
