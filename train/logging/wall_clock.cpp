#include <binade/train/logging/wall_clock_internal.h>

#include <chrono>
#include <ctime>

namespace binade::train {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string wall_text() {
  const auto now = static_cast<std::time_t>(wall_seconds());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer;
}

}  // namespace binade::train
