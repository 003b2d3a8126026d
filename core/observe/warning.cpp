#include <binade/core/observe/warning.h>
#include <binade/kernels/base/printable.h>
#include <binade/kernels/base/vendor_library.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace binade {
namespace {

std::mutex& handler_mutex() {
  static std::mutex* instance = new std::mutex;
  return *instance;
}
WarningHandler& current_handler() {
  static auto* instance = new WarningHandler;
  return *instance;
}

// Kernels warn about a missing library in this way.
[[maybe_unused]] const bool kNoticesInstalled = [] {
  kernels::set_notice_sink([](const std::string& notice) { warn(notice); });
  return true;
}();

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  std::lock_guard lock(handler_mutex());
  return std::exchange(current_handler(), std::move(handler));
}

void warn(const std::string& text) {
  WarningHandler handler;
  {
    std::lock_guard lock(handler_mutex());
    handler = current_handler();
  }
  if (handler) {
    handler(printable(text));
  } else {
    std::fprintf(stderr, "binade: warning: %s\n", printable(text).c_str());
  }
}

}  // namespace binade
