// Checks of the windows of pooling, unfold and fold (internal to nn/*.cpp).
#pragma once
#include <binade/nn/conv.h>
#include <binade/nn/options_internal.h>

#include <algorithm>

namespace binade::nn {

inline int64_t smaller(const Pair& pair) { return std::min(pair.vertical, pair.horizontal); }

struct Window {
  Pair kernel, stride, padding, dilation;
};

inline void check_window(const char* name, const Window& window) {
  check_sizes(name, {{"kernel", smaller(window.kernel)},
                     {"stride", smaller(window.stride)},
                     {"dilation", smaller(window.dilation)}});
  check(smaller(window.padding) >= 0, name, ": got padding = ", smaller(window.padding),
        ", expected a number >= 0");
}

}  // namespace binade::nn
