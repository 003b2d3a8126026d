#include <binade/dist/process_exit.h>
#include <unistd.h>

namespace binade::dist {

void end_process(int status, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const auto n = ::write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n <= 0) {
      break;
    }
    written += static_cast<size_t>(n);
  }
  ::_exit(status);
}

}  // namespace binade::dist
