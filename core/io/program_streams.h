// For main(): standard streams and limits whose faults are errors, not a silent end of the program.
// The library itself leaves the process's signals and streams alone; the tools and samples of
// Binade use this, and other programs may.
#pragma once
#include <exception>

namespace binade {

class ProgramStreams {
 public:
  // Opens /dev/null in place of a standard stream that is closed, so that no other file gets its
  // number and is written to. From now on SIGPIPE and SIGXFSZ are ignored: writing to a closed pipe
  // fails with EPIPE, and writing beyond RLIMIT_FSIZE with EFBIG.
  ProgramStreams();
  // The exit status: `status`, but 1 and an error on stderr if what was printed could not be
  // written.
  int finish(int status) const;
};

// For a forked child before exec(): SIGPIPE and SIGXFSZ as they were before ProgramStreams.
void restore_program_signals();

// "binade: error: ..." on stderr. Text of other exceptions than Error is made printable; that of
// std::bad_alloc, which says nothing, is replaced.
void print_error(const std::exception& error);

}  // namespace binade
