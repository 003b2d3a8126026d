#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/hooks.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace binade {
namespace {

struct Entry {
  uint64_t id;
  std::shared_ptr<GradientHook> hook;
};

// The hooks are stored outside the nodes, so a node without hooks only has a flag.
struct Table {
  std::mutex mutex;
  std::unordered_map<const Node*, std::vector<Entry>> hooks;
  uint64_t next = 1;
};
Table& table() {
  static Table* instance = new Table;
  return *instance;
}

uint64_t add_hook_entry(Node& node, GradientHook hook) {
  std::lock_guard lock(table().mutex);
  const uint64_t id = table().next++;
  table().hooks[&node].push_back({id, std::make_shared<GradientHook>(std::move(hook))});
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
  std::lock_guard lock(table().mutex);
  for (auto& [node, entries] : table().hooks) {
    std::erase_if(entries, [this](const Entry& entry) { return entry.id == id_; });
  }
}

namespace detail {

void add_hook(Node& node, GradientHook hook) { add_hook_entry(node, std::move(hook)); }

void run_hooks(Node& node, Tensor& gradient) {
  std::vector<Entry> entries;  // a copy: a hook may add or remove hooks
  {
    std::lock_guard lock(table().mutex);
    entries = table().hooks[&node];
  }
  for (const Entry& entry : entries) {
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
  std::lock_guard lock(table().mutex);
  const std::vector<Entry> entries = table().hooks[&from];
  std::vector<Entry>& into = table().hooks[&to];
  into.insert(into.end(), entries.begin(), entries.end());
  to.hooked = true;
}

void drop_hooks(Node& node) {
  std::vector<Entry> entries;  // destroyed outside of the lock: a hook may hold tensors
  std::lock_guard lock(table().mutex);
  if (const auto found = table().hooks.find(&node); found != table().hooks.end()) {
    entries = std::move(found->second);
    table().hooks.erase(found);
  }
}

}  // namespace detail
}  // namespace binade
