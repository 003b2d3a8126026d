#include <binade/core/io/program_streams.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace binade {
namespace {

constexpr int kIgnored[] = {SIGPIPE, SIGXFSZ};
struct sigaction before[2];
bool changed = false;

}  // namespace

ProgramStreams::ProgramStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      // open() takes the lowest free number, which is this one. If it fails, writing to it does
      // too.
      static_cast<void>(::open("/dev/null", O_RDWR));
    }
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (size_t i = 0; i < std::size(kIgnored); ++i) {
    ::sigaction(kIgnored[i], &ignore, changed ? nullptr : &before[i]);
  }
  changed = true;
}

int ProgramStreams::finish(int status) const {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int code = errno;
  if (flushed && std::ferror(stdout) == 0) {
    return status;
  }
  std::fprintf(stderr, "binade: error: cannot write to the standard output: %s\n",
               code != 0 ? std::strerror(code) : "an earlier write failed");
  return status != 0 ? status : 1;
}

void restore_program_signals() {
  for (size_t i = 0; changed && i < std::size(kIgnored); ++i) {
    ::sigaction(kIgnored[i], &before[i], nullptr);
  }
}

void print_error(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    std::fputs(
        "binade: error: out of memory: the system gave no more (ulimit -v, the limits of the "
        "container and other programs count)\n",
        stderr);
    return;
  }
  const bool own = dynamic_cast<const Error*>(&error) != nullptr;
  std::fprintf(stderr, "binade: error: %s\n", own ? error.what() : printable(error.what()).c_str());
}

}  // namespace binade
