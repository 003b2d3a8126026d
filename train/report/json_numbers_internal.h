// Whole numbers in JSON that was read. Internal to train.
#pragma once
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace binade::train {

// An integer that T holds. The library's own conversion of another number is undefined, or cuts it.
template <class T = int64_t>
T whole_number(const nlohmann::json& value) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  const bool fits = value.is_number_unsigned()
                        ? std::in_range<T>(value.get<uint64_t>())
                        : value.is_number_integer() && std::in_range<T>(value.get<int64_t>());
  check(fits, "got ", json_quoted_short(value.dump()), ", expected an integer from ", kLeast,
        " to ", kMost);
  return value.get<T>();
}

}  // namespace binade::train
