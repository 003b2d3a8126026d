// The user's C++ compiler, and the folder with the lab's files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade::lab {

// The builds of the executor.
enum class Build : uint8_t { plain, asan, race };
inline constexpr Build kBuilds[] = {Build::plain, Build::asan, Build::race};
const char* name_of(Build build);

struct Toolchain {
  std::string compiler = {};  // a path
  bool is_clang = false;
  std::string root = {};  // the folder that contains include/ and lib/
  int version = 0;        // major version

  // The commands that compile and link `source` for a build, in order.
  std::vector<std::vector<std::string>> commands(Build build, const std::string& source,
                                                 const std::string& program) const;
};

// The requested compiler, or with "" that of the environment, g++, clang++ or c++. Throws
// ToolchainError if there is none.
std::string find_compiler(const std::string& asked);
// Throws ToolchainError if there is no compiler or the lab is not installed. An empty `compiler` or
// `root` is searched for.
Toolchain find_toolchain(const std::string& compiler, const std::string& root);

}  // namespace binade::lab
