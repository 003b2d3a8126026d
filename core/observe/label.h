// Module paths as small numbers: cheap to carry in every graph node, so that an error or a profile
// in backward can name the module that recorded the op.
#pragma once
#include <binade/core/device/memory.h>

#include <string>
#include <string_view>

namespace binade {

// The id of the path `parent` with `name` appended ("encoder" + "conv1" = "encoder.conv1"). 0 is
// the empty path. Thread-safe; ids are never freed.
uint32_t intern_label(uint32_t parent, std::string_view name);
std::string label_text(uint32_t label);

class LabelScope {
 public:
  explicit LabelScope(uint32_t label) : before_(detail::thread_state.label) {
    detail::thread_state.label = label;
  }
  ~LabelScope() { detail::thread_state.label = before_; }
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;

 private:
  uint32_t before_;
};

}  // namespace binade
