#include <binade/dist/job/process_exit_internal.h>
#include <signal.h>
#include <unistd.h>

namespace binade::dist {
namespace {

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void terminate(int) {
  handle(SIGTERM, SIG_DFL);
  ::raise(SIGTERM);
}

void terminate_in_a_second(int) {
  handle(SIGALRM, terminate);
  ::alarm(1);
}

}  // namespace

void delay_termination() {
  struct sigaction now {};
  ::sigaction(SIGTERM, nullptr, &now);
  if (now.sa_handler == SIG_DFL) {
    handle(SIGTERM, terminate_in_a_second);
  }
}

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
