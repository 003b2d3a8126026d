// The program of libFuzzer: binade_fuzz --target=NAME [options of libFuzzer] CORPUS...
#include <binade/core/autograd/node.h>
#include <binade/core/device/thread_state.h>
#include <binade/core/ops/detail/cast_internal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/targets.h"

namespace {

const binade::fuzz::Target* chosen = nullptr;

}  // namespace

// The sources of the parsers mention tensors, but no parser makes one.
namespace binade {
void TensorData::destroy(TensorData*) noexcept { std::abort(); }
void Node::destroy(Node*) noexcept { std::abort(); }
constinit thread_local detail::ThreadState detail::thread_state;
Grads detail::cast_gradient(const Tensor&, DType, Needs) { std::abort(); }
}  // namespace binade

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr const char kFlag[] = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const char* word = (*argv)[i];
    if (std::strncmp(word, kFlag, sizeof kFlag - 1) == 0) {
      chosen = binade::fuzz::find_target(word + sizeof kFlag - 1);
    }
    if (std::strcmp(word, "--list") == 0) {
      for (const binade::fuzz::Target& target : binade::fuzz::targets()) {
        std::puts(target.name);
      }
      std::exit(0);
    }
  }
  if (!chosen) {
    std::fputs("binade_fuzz: expected --target=NAME, or --list for the names\n", stderr);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  binade::fuzz::run(*chosen, {data, size});
  return 0;
}
