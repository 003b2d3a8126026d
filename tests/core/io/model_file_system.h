// An in-memory file system for tests that knows which state would survive a power cut: crash()
// drops unsynced bytes of files and any subset of unsynced directory changes.
#pragma once
#include <binade/core/io/file_system.h>

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace binade::testing {

class ModelFileSystem : public FileSystem {
 public:
  ModelFileSystem() : root_(std::make_shared<Node>(Node{.is_directory = true})) {}

  int open_new(const std::string& path) override {
    auto [parent, name] = locate(path);
    if (!parent) {
      return fail_with(ENOENT);
    }
    if (parent->now.contains(name)) {
      return fail_with(EEXIST);
    }
    auto node = std::make_shared<Node>();
    change(*parent, {.to = name, .node = node});
    open_.push_back(node);
    return static_cast<int>(open_.size()) - 1;
  }

  int open_append(const std::string& path, bool empty) override {
    const auto node = find(path);
    if (!node) {
      return open_new(path);
    }
    if (node->is_directory) {
      return fail_with(EISDIR);
    }
    if (empty) {
      node->bytes.clear();
      node->synced.clear();
    }
    open_.push_back(node);
    return static_cast<int>(open_.size()) - 1;
  }

  int open_read(const std::string& path) override {
    auto node = find(path);
    if (!node || node->is_directory) {
      return fail_with(node ? EISDIR : ENOENT);
    }
    open_.push_back(node);
    return static_cast<int>(open_.size()) - 1;
  }

  int64_t write(int file, const void* data, size_t bytes) override {
    open_[static_cast<size_t>(file)]->bytes.append(static_cast<const char*>(data), bytes);
    return static_cast<int64_t>(bytes);
  }

  int64_t read(int file, void* data, size_t bytes, uint64_t offset) override {
    const std::string& all = open_[static_cast<size_t>(file)]->bytes;
    const size_t count = offset < all.size() ? std::min(bytes, all.size() - offset) : 0;
    if (count > 0) {
      std::memcpy(data, all.data() + offset, count);
    }
    return static_cast<int64_t>(count);
  }

  int64_t size(int file) override {
    return static_cast<int64_t>(open_[static_cast<size_t>(file)]->bytes.size());
  }

  int sync(int file) override {
    Node& node = *open_[static_cast<size_t>(file)];
    node.synced = node.bytes;
    return 0;
  }

  int close(int) override { return 0; }

  int rename(const std::string& from, const std::string& to) override {
    auto [parent, name] = locate(from);
    auto [target, new_name] = locate(to);
    if (!parent || parent != target || !parent->now.contains(name)) {
      return fail_with(parent == target ? ENOENT : EXDEV);
    }
    const auto old = parent->now.find(new_name);
    if (old != parent->now.end() && old->second->is_directory && !old->second->now.empty()) {
      return fail_with(ENOTEMPTY);
    }
    change(*parent, {.from = name, .to = new_name, .node = parent->now.at(name)});
    return 0;
  }

  int rename_new(const std::string& from, const std::string& to) override {
    auto [target, name] = locate(to);
    return target && target->now.contains(name) ? fail_with(EEXIST) : rename(from, to);
  }

  int remove_file(const std::string& path) override { return remove(path, false); }
  int remove_directory(const std::string& path) override { return remove(path, true); }

  int make_directory(const std::string& path) override {
    auto [parent, name] = locate(path);
    if (!parent || parent->now.contains(name)) {
      return fail_with(parent ? EEXIST : ENOENT);
    }
    change(*parent, {.to = name, .node = std::make_shared<Node>(Node{.is_directory = true})});
    return 0;
  }

  int sync_directory(const std::string& path) override {
    auto node = find(path);
    if (!node || !node->is_directory) {
      return fail_with(ENOENT);
    }
    node->synced_names = node->now;
    node->pending.clear();
    return 0;
  }

  int list(const std::string& path, std::vector<DirectoryEntry>& entries) override {
    auto node = find(path);
    if (!node || !node->is_directory) {
      return fail_with(node ? ENOTDIR : ENOENT);
    }
    for (const auto& [name, child] : node->now) {
      entries.push_back({name, child->is_directory, !child->is_directory});
    }
    return 0;
  }

  int stamp(const std::string& path, DirectoryStamp&) override {  // has no times
    return find(path) ? 0 : fail_with(ENOENT);
  }
  int64_t free_bytes(const std::string&) override { return free; }
  int64_t modified(const std::string& path) override { return find(path) ? 0 : fail_with(ENOENT); }
  int touch(const std::string& path) override { return find(path) ? 0 : fail_with(ENOENT); }

  int is_same_file(const std::string& a, const std::string& b) override {
    const auto first = find(a), second = find(b);
    return first && second ? static_cast<int>(first == second) : fail_with(ENOENT);
  }

  int64_t free = int64_t{1} << 40;

  // Returns the file system after a power cut now. `choose(n)` picks one of n outcomes for each
  // change that the disk may or may not have written; Choices below enumerates them.
  std::unique_ptr<ModelFileSystem> crash(const std::function<size_t(size_t)>& choose) const {
    auto after = std::make_unique<ModelFileSystem>();
    std::map<const Node*, std::shared_ptr<Node>> copies;
    after->root_ = survive(*root_, choose, copies);
    return after;
  }

 private:
  struct Node;
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  struct Change {  // a name made (from empty), removed (to empty) or renamed
    std::string from = {}, to = {};
    std::shared_ptr<Node> node = {};
  };
  struct Node {
    bool is_directory = false;
    std::string bytes = {}, synced = {};
    Names now = {}, synced_names = {};
    std::vector<Change> pending = {};
  };

  static int fail_with(int code) {
    errno = code;
    return -1;
  }

  static void apply(Names& names, const Change& change) {
    const auto from = names.find(change.from);
    if (from != names.end() && from->second == change.node) {
      names.erase(from);
    }
    if (!change.to.empty()) {
      names[change.to] = change.node;
    }
  }

  static void change(Node& parent, Change change) {
    apply(parent.now, change);
    parent.pending.push_back(std::move(change));
  }

  int remove(const std::string& path, bool directory) {
    auto [parent, name] = locate(path);
    if (!parent || !parent->now.contains(name)) {
      return fail_with(ENOENT);
    }
    const auto node = parent->now.at(name);
    if (node->is_directory != directory) {
      return fail_with(directory ? ENOTDIR : EISDIR);
    }
    if (!node->now.empty()) {
      return fail_with(ENOTEMPTY);
    }
    change(*parent, {.from = name, .to = "", .node = node});
    return 0;
  }

  std::shared_ptr<Node> find(const std::string& path) const {
    std::shared_ptr<Node> node = root_;
    for (size_t at = 0; node && at < path.size();) {
      const size_t slash = std::min(path.find('/', at), path.size());
      const std::string name = path.substr(at, slash - at);
      if (!name.empty() && name != ".") {
        const auto child = node->now.find(name);
        node = child == node->now.end() ? nullptr : child->second;
      }
      at = slash + 1;
    }
    return node;
  }

  std::pair<std::shared_ptr<Node>, std::string> locate(const std::string& path) const {
    const auto parent = find(parent_directory(path));
    return {parent && parent->is_directory ? parent : nullptr, path.substr(path.rfind('/') + 1)};
  }

  static std::shared_ptr<Node> survive(const Node& node,
                                       const std::function<size_t(size_t)>& choose,
                                       std::map<const Node*, std::shared_ptr<Node>>& copies) {
    auto& copy = copies[&node];
    if (copy) {
      return copy;
    }
    copy = std::make_shared<Node>(Node{.is_directory = node.is_directory});
    const std::shared_ptr<Node> result = copy;
    if (node.bytes != node.synced) {  // nothing, half or all of the unsynced bytes; or zeros
      const size_t tail = node.bytes.size() - node.synced.size();
      const size_t outcome = choose(4);
      result->bytes = outcome == 3 ? node.synced + std::string(tail, '\0')
                                   : node.bytes.substr(0, node.synced.size() + tail * outcome / 2);
    } else {
      result->bytes = node.bytes;
    }
    result->synced = result->bytes;
    Names names = node.synced_names;
    for (const Change& change : node.pending) {
      if (choose(2) == 1) {
        apply(names, change);
      }
    }
    for (const auto& [name, child] : names) {
      result->now[name] = survive(*child, choose, copies);
    }
    result->synced_names = result->now;
    return result;
  }

  std::shared_ptr<Node> root_;
  std::vector<std::shared_ptr<Node>> open_;
};

// Enumerates all sequences of choices: `do { use choices } while (choices.advance())`.
class Choices {
 public:
  size_t operator()(size_t count) {
    if (at_ == taken_.size()) {
      taken_.push_back({0, count});
    }
    return taken_[at_++].first;
  }
  bool advance() {
    while (!taken_.empty() && taken_.back().first + 1 == taken_.back().second) {
      taken_.pop_back();
    }
    at_ = 0;
    if (taken_.empty()) {
      return false;
    }
    ++taken_.back().first;
    return true;
  }

 private:
  std::vector<std::pair<size_t, size_t>> taken_;
  size_t at_ = 0;
};

}  // namespace binade::testing
