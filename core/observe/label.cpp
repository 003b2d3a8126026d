#include <binade/core/observe/label.h>

#include <deque>
#include <map>
#include <mutex>

namespace binade {
namespace {
struct LabelTable {
  std::mutex mutex;
  std::map<std::string, uint32_t, std::less<>> ids{{"", 0}};
  std::deque<std::string> paths{""};
};
LabelTable& label_table() {
  static LabelTable* instance = new LabelTable;
  return *instance;
}
}  // namespace

uint32_t intern_label(uint32_t parent, std::string_view name) {
  LabelTable& t = label_table();
  std::lock_guard lock(t.mutex);
  std::string path = t.paths[parent];
  path.append(path.empty() ? "" : ".").append(name);
  auto [found, fresh] = t.ids.try_emplace(path, static_cast<uint32_t>(t.paths.size()));
  if (fresh) {
    t.paths.push_back(path);
  }
  return found->second;
}

std::string label_text(uint32_t label) {
  std::lock_guard lock(label_table().mutex);
  return label_table().paths[label];
}

}  // namespace binade
