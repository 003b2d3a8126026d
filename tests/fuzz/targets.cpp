#include "tests/fuzz/targets.h"

#include <binade/core/io/file_system.h>
#include <binade/kernels/base/printable.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

#define BINADE_LISTED_TARGET(name) {#name, &parse_##name},
constexpr Target kTargets[] = {BINADE_FUZZ_TARGETS(BINADE_LISTED_TARGET)};
#undef BINADE_LISTED_TARGET

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  for (const Target& target : kTargets) {
    if (name == target.name) {
      return &target;
    }
  }
  return nullptr;
}

std::string run(const Target& target, Bytes bytes) {
  constexpr size_t kLongest = 4096;  // a message quotes a part of a long input, not all of it
  try {
    target.parse(bytes);
    return "";
  } catch (const Error& error) {
    const std::string message = error.what();
    require(!message.empty(), "the error has no message");
    require(message.size() <= kLongest, "the message of the error is longer than 4096 bytes");
    require(message == printable(message),
            "the message of the error has bytes that are not printable");
    return message;
  }
}

MemoryFile::MemoryFile(Bytes bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  require(file_ >= 0 &&
              ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "a file in memory can be written");
}

MemoryFile::~MemoryFile() { ::close(file_); }

}  // namespace binade::fuzz
