#include <binade/core/precision/format_calls_internal.h>

namespace binade {

int64_t FormatCalls::begin(uint32_t module, std::string_view op) {
  if (backwards_ != detail::thread_state.backwards) {
    count_.clear();
    backwards_ = detail::thread_state.backwards;
  }
  return count_[{module, std::string(op)}]++;
}

int64_t FormatCalls::current(uint32_t module, std::string_view op) const {
  const auto found = count_.find({module, std::string(op)});
  return found == count_.end() ? 0 : found->second - 1;
}

FormatCalls FormatCalls::resumed() const {
  FormatCalls calls = *this;
  calls.backwards_ = detail::thread_state.backwards;
  return calls;
}

}  // namespace binade
