// Checks one kernel: PROGRAM FILE CASE[:SHAPE] [--strict]. check_kernel.py links this program with
// FILE.cu, compiled for the race detector; a library that is loaded would lie too far away for the
// detector's records of source lines. Exit 0: right; 1: wrong, or with --strict slow or not the
// same bits in all orders; 2: wrong use.
#include <binade/kernels/base/error.h>
#include <tests/ladders/cases.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// What host_cuda.py wrote.
extern "C" const char* const plain_cuda_case;
extern "C" void solve();

namespace {

using namespace ladders;

int usage(const std::string& what) {
  std::fprintf(stderr, "check_kernel: %s\n", what.c_str());
  return 2;
}

// A read or write of the page after a buffer. The kernel's stack is gone, so no exception can tell.
void memory_fault(int) {
  constexpr char kText[] = "WRONG  the kernel reads or writes beyond an array (memory fault)\n";
  if (write(STDOUT_FILENO, kText, sizeof kText - 1) < 0) {
    _exit(2);
  }
  _exit(1);
}
void catch_memory_faults() {
  static char stack[1 << 16];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = memory_fault;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

bool parse_shape(const std::string& text, int dimensions, Shape& shape) {
  const char* at = text.c_str();
  for (int i = 0; i < dimensions; ++i) {
    char* end = nullptr;
    const long size = std::strtol(at, &end, 10);
    if (end == at || size < 1 || size > 1 << 24 || *end != (i + 1 < dimensions ? 'x' : '\0')) {
      return false;
    }
    shape.size[i] = static_cast<int>(size);
    at = end + 1;
  }
  return true;
}

struct Check {
  const Case& one;
  void* solve;
  std::string file;
  int warnings = 0;

  // All inputs in all orders; false after the first fault.
  bool right(const Shape& shape) {
    for (const std::string& inputs : one.inputs) {
      std::vector<float> first;
      for (const Order& order : orders()) {
        set_order(order);
        const Outcome outcome = one.run(solve, shape, inputs);
        const std::string where = binade::text(to_string(shape, one.dimensions), ", inputs ",
                                               inputs, ", order ", order.name);
        if (!outcome.fault.empty()) {
          std::printf("WRONG  %s\n       %s\n", where.c_str(), outcome.fault.c_str());
          return false;
        }
        if (first.empty()) {
          first = outcome.out;
        } else if (std::memcmp(first.data(), outcome.out.data(), first.size() * sizeof(float)) !=
                       0 &&
                   warnings++ == 0) {
          std::printf("note   %s: other bits than in the order %s\n", where.c_str(),
                      orders().front().name);
        }
      }
    }
    return true;
  }

  void report_speed(const Shape& shape) {
    std::printf("counts %s: %s\n", to_string(shape, one.dimensions).c_str(),
                counts(one, solve, shape, file).c_str());
    for (const std::string& line : slow_lines(file)) {
      ++warnings;
      std::printf("slow   %s\n", line.c_str());
    }
  }
};

int run(int argc, char** argv) {
  if (argc < 3 || (argc == 4 && std::strcmp(argv[3], "--strict") != 0) || argc > 4) {
    return usage("got other arguments than FILE CASE[:SHAPE] [--strict]");
  }
  const Case* one = find_case(plain_cuda_case);
  if (one == nullptr) {
    return usage(binade::text(argv[2], ": no such case; there are ", case_names()));
  }
  Check check{*one, reinterpret_cast<void*>(&solve), argv[1]};
  const char* colon = std::strchr(argv[2], ':');
  Shape shape = one->counted;
  std::vector<Shape> shapes = one->shapes;
  if (colon != nullptr) {
    if (!parse_shape(colon + 1, one->dimensions, shape)) {
      return usage(binade::text(argv[2], ": expected a shape like ",
                                to_string(one->counted, one->dimensions)));
    }
    shapes = {shape};
  }
  catch_memory_faults();
  for (const Shape& now : shapes) {
    if (!check.right(now)) {
      return 1;
    }
  }
  check.report_speed(shape);
  const bool strict = argc == 4;
  std::printf(strict && check.warnings > 0 ? "REFUSED by --strict\n" : "RIGHT\n");
  return strict && check.warnings > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return usage(error.what());
  }
}
