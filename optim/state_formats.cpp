#include <binade/core/ops.h>
#include <binade/core/ops/format.h>
#include <binade/optim/state_formats.h>

namespace binade::optim {

void round_states(const Optimizer& optimizer, const FormatScheme& scheme) {
  check(scheme.scaling != FormatScaling::delayed,
        "round_states: got a delayed scale, expected none, one of the tensor, or blocks");
  const std::shared_ptr<Arena> arena = optimizer.parameters().arena();
  check(arena->sharding() == Sharding::none,
        "round_states: got states that are spread over ranks, expected whole ones");
  const NoGradGuard guard;
  for (auto& [name, state] : optimizer.state_tensors()) {
    if (!name.starts_with("master.") && !name.starts_with("compensation.")) {
      Tensor target = state;
      target.copy_(round_to_format(target, scheme));
    }
  }
}

}  // namespace binade::optim
