// Functions that find numbers by name. Internal to train.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/train/metrics/named_values.h>

namespace binade::train {

inline const double* find_value(const NamedValues& values, const std::string& name) {
  for (const auto& [own, value] : values) {
    if (own == name) {
      return &value;
    }
  }
  return nullptr;
}

// "a, b, c", or "none".
inline std::string list_value_names(const NamedValues& values) {
  std::string list;
  for (const auto& entry : values) {
    list += (list.empty() ? "" : ", ") + entry.first;
  }
  return list.empty() ? "none" : list;
}

// Returns the number of this name; else throws an error that lists the names.
inline double value_of(const char* where, const NamedValues& values, const std::string& name) {
  const double* value = find_value(values, name);
  check(value != nullptr, where, ": got no value named '", name,
        "', expected one of those there are: ", list_value_names(values));
  return *value;
}

// Replaces a value or adds it at the end.
inline void set_value(NamedValues& values, const std::string& name, double value) {
  for (auto& [own, old] : values) {
    if (own == name) {
      old = value;
      return;
    }
  }
  values.emplace_back(name, value);
}

}  // namespace binade::train
