// RecentCache: values by key, of which the least recently used ones can be taken out. Not safe for
// several threads at once.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>

namespace binade::kernels {

template <class Key, class Value>
class RecentCache {
 public:
  // The value of the key, which is now the most recently used one; null if there is none. It stays
  // where it is until it is taken out.
  Value* find(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      return nullptr;
    }
    order_.splice(order_.begin(), order_, found->second.place);
    return &found->second.value;
  }

  // REQUIRES: the key has no value.
  Value& add(const Key& key, Value value) {
    order_.push_front(nullptr);
    const auto added = entries_.emplace(key, Entry{std::move(value), order_.begin()}).first;
    order_.front() = &added->first;
    return added->second.value;
  }

  // If there are more than `most`: the least recently used value for which unused(value) is true.
  template <class Unused>
  std::optional<Value> take_beyond(int64_t most, const Unused& unused) {
    if (size() <= most) {
      return std::nullopt;
    }
    for (auto place = order_.end(); place != order_.begin();) {
      const auto oldest = entries_.find(**--place);
      if (unused(oldest->second.value)) {
        std::optional<Value> value(std::move(oldest->second.value));
        order_.erase(place);
        entries_.erase(oldest);
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<Value> take_beyond(int64_t most) {
    return take_beyond(most, [](const Value&) { return true; });
  }

  // Calls f(key, value) for all, sorted by key.
  template <class F>
  void each(const F& f) const {
    for (const auto& [key, entry] : entries_) {
      f(key, entry.value);
    }
  }

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

 private:
  using Order = std::list<const Key*>;  // the most recently used first; they point into entries_
  struct Entry {
    Value value;
    typename Order::iterator place;
  };

  std::map<Key, Entry> entries_;
  Order order_;
};

}  // namespace binade::kernels
