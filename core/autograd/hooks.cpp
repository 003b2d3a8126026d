#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/hooks.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace binade {
namespace {

struct HookEntry {
  uint64_t id;
  std::shared_ptr<GradientHook> hook;
};

// The hooks are stored outside the nodes, so a node without hooks only has a flag.
struct HookTable {
  std::mutex mutex;
  std::unordered_map<const Node*, std::vector<HookEntry>> hooks;
  uint64_t next = 1;
};
HookTable& hook_table() {
  static HookTable* instance = new HookTable;
  return *instance;
}

uint64_t add_hook_entry(Node& node, GradientHook hook) {
  std::lock_guard lock(hook_table().mutex);
  const uint64_t id = hook_table().next++;
  hook_table().hooks[&node].push_back({id, std::make_shared<GradientHook>(std::move(hook))});
  node.hooked = true;
  return id;
}

}  // namespace

HookHandle on_gradient(const Tensor& t, GradientHook hook) {
  check(t.defined() && t.requires_grad(),
        "on_gradient: got a tensor without history, expected one that wants a gradient");
  check(static_cast<bool>(hook), "on_gradient: got an empty function");
  return HookHandle(add_hook_entry(*t.history(), std::move(hook)));
}

void HookHandle::remove() {
  std::lock_guard lock(hook_table().mutex);
  for (auto& [node, entries] : hook_table().hooks) {
    std::erase_if(entries, [this](const HookEntry& entry) { return entry.id == id_; });
  }
}

namespace detail {

void add_hook(Node& node, GradientHook hook) { add_hook_entry(node, std::move(hook)); }

void run_hooks(Node& node, Tensor& gradient) {
  std::vector<HookEntry> entries;  // a copy: a hook may add or remove hooks
  {
    std::lock_guard lock(hook_table().mutex);
    entries = hook_table().hooks[&node];
  }
  for (const HookEntry& entry : entries) {
    const Tensor before = gradient;
    (*entry.hook)(gradient);
    check(gradient.defined() && gradient.sizes() == before.sizes() &&
              gradient.dtype() == before.dtype() && gradient.device() == before.device(),
          "on_gradient: a hook of ", node.name(), " put in ",
          gradient.defined() ? text("a gradient of shape ", gradient.sizes(), ", ",
                                    gradient.dtype(), " on ", gradient.device())
                             : "an undefined tensor",
          ", expected shape ", before.sizes(), ", ", before.dtype(), " on ", before.device());
  }
}

void copy_hooks(const Node& from, Node& to) {
  if (!from.hooked) {
    return;
  }
  std::lock_guard lock(hook_table().mutex);
  const std::vector<HookEntry> entries = hook_table().hooks[&from];
  std::vector<HookEntry>& into = hook_table().hooks[&to];
  into.insert(into.end(), entries.begin(), entries.end());
  to.hooked = true;
}

void drop_hooks(Node& node) {
  std::vector<HookEntry> entries;  // destroyed outside of the lock: a hook may hold tensors
  std::lock_guard lock(hook_table().mutex);
  if (const auto found = hook_table().hooks.find(&node); found != hook_table().hooks.end()) {
    entries = std::move(found->second);
    hook_table().hooks.erase(found);
  }
}

}  // namespace detail
}  // namespace binade
