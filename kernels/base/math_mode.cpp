#include <binade/kernels/base/error.h>
#include <binade/kernels/base/math_mode.h>

#include <atomic>
#include <cstdlib>

namespace binade::kernels {
namespace {

std::atomic<MathMode>& current() {
  static std::atomic<MathMode> mode = [] {
    const char* name = std::getenv("BINADE_MODE");
    return name ? parse_math_mode(name, "BINADE_MODE") : MathMode::fast;
  }();
  return mode;
}

}  // namespace

MathMode math_mode() { return current().load(std::memory_order_relaxed); }

void set_math_mode(MathMode mode) { current().store(mode, std::memory_order_relaxed); }

const char* to_string(MathMode mode) { return mode == MathMode::fast ? "fast" : "precise"; }

MathMode parse_math_mode(std::string_view name, const char* source) {
  check(name == "fast" || name == "precise", source, ": got ", name, ", expected fast or precise");
  return name == "fast" ? MathMode::fast : MathMode::precise;
}

}  // namespace binade::kernels
