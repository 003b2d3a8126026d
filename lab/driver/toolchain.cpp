#include <binade/lab/driver/check.h>
#include <binade/lab/driver/process_internal.h>
#include <binade/lab/driver/toolchain_internal.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace binade::lab {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool has_lab(const std::string& root) {
  std::error_code ignored;
  return std::filesystem::exists(root + "/lib/libbinade_lab_plain.a", ignored);
}

// set_lab_folder() may use this before the constructors of this file have run.
std::string& installed_folder() {
  static std::string folder;
  return folder;
}

// The folders where the lab's files may be: set by the user, beside the program or library in a
// build or an installation, or where this build would be installed.
std::vector<std::string> possible_roots() {
  std::vector<std::string> roots = {variable("BINADE_LAB"), installed_folder()};
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  folders.push_back(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path());
  Dl_info library;
  if (::dladdr(reinterpret_cast<const void*>(&has_lab), &library) != 0) {
    folders.push_back(std::filesystem::path(library.dli_fname).parent_path());
  }
  for (std::filesystem::path folder : folders) {
    roots.push_back((folder / "../lab").lexically_normal().string());
    for (int i = 0; i < 3; ++i) {
      folder /= "..";
      roots.push_back((folder / "share/binade/lab").lexically_normal().string());
    }
  }
  roots.emplace_back(BINADE_LAB_INSTALLED);
  return roots;
}

std::string find_root(const std::string& asked) {
  if (!asked.empty()) {
    return asked;
  }
  for (const std::string& root : possible_roots()) {
    if (!root.empty() && has_lab(root)) {
      return root;
    }
  }
  throw ToolchainError(
      "kernel: the files of the lab are not installed: share/binade/lab with "
      "lib/libbinade_lab_plain.a; "
      "a build with sanitizers has none; BINADE_LAB names the folder");
}

}  // namespace

bool set_lab_folder(const char* folder) {
  installed_folder() = folder;
  return true;
}

std::string find_compiler(const std::string& asked) {
  std::vector<std::string> names = {asked};
  if (asked.empty()) {
    names = {variable("CXX"), "g++", "clang++", "c++"};
  }
  for (const std::string& name : names) {
    const std::string program = name.empty() ? "" : find_program(name);
    if (!program.empty()) {
      return program;
    }
  }
  throw ToolchainError(asked.empty()
                           ? "kernel: no C++ compiler: none of CXX, g++, clang++ and c++ is there; "
                             "install g++ 11 or clang++ 14, or later ones"
                           : text("kernel: no C++ compiler ", asked));
}

const char* name_of(Build build) {
  return build == Build::plain ? "plain" : build == Build::asan ? "asan" : "race";
}

std::vector<std::vector<std::string>> Toolchain::commands(Build build, const std::string& source,
                                                          const std::string& program) const {
  std::vector<std::string> compile = {compiler,
                                      "-std=c++20",
                                      "-O1",
                                      "-g1",
                                      "-gdwarf-4",  // of 5 addr2line may name the generated file
                                      "-Wuninitialized",
                                      "-Wmaybe-uninitialized",
                                      "-fno-strict-aliasing",
                                      "-fno-omit-frame-pointer",
                                      "-fno-optimize-sibling-calls",
                                      "-fdiagnostics-color=never",
                                      "-I" + root + "/include",
                                      "-I" + root + "/include/binade/lab/device/cuda"};
  const auto add = [&](std::initializer_list<std::string> more) {
    compile.insert(compile.end(), more);
  };
  if (is_clang) {
    compile[6] = "-Wconditional-uninitialized";
    add({"-ferror-limit=5", "-ftrivial-auto-var-init=pattern", "-Wno-unknown-pragmas"});
  } else {
    add({"-fmax-errors=5", "-fno-thread-jumps"});
    if (version >= 12) {
      add({"-ftrivial-auto-var-init=pattern"});
    }
  }
  std::vector<std::string> link = {compiler, program + ".o", "-rdynamic", "-o", program};
  switch (build) {
    case Build::plain: add({"-fsanitize-coverage=trace-pc"}); break;
    case Build::race:
      // The executor defines the functions that both sanitizers call.
      add({"-fsanitize=thread",
           "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift,bounds,alignment,null,"
           "return,unreachable",
           "-fsanitize-recover=signed-integer-overflow,integer-divide-by-zero,shift,bounds,"
           "alignment,null"});
      if (!is_clang) {
        add({"-fsanitize=bounds-strict"});
      }
      break;
    case Build::asan:
      add({"-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fsanitize-recover=all",
           "-fsanitize-coverage=trace-pc"});
      if (!is_clang) {
        add({"-fsanitize=bounds-strict", "--param=asan-stack=0",
             "--param=asan-instrumentation-with-call-threshold=0"});
      }
      link.push_back("-fsanitize=address,undefined");
      break;
  }
  add({"-c", "-x", "c++", source, "-o", program + ".o"});
  link.insert(link.end(),
              {root + "/lib/libbinade_lab_" + name_of(build) + ".a", "-ldl", "-lpthread"});
  return {compile, link};
}

Toolchain find_toolchain(const std::string& compiler, const std::string& root) {
  Toolchain found;
  found.compiler = find_compiler(compiler);
  found.root = find_root(root);
  found.is_clang = found.compiler.find("clang") != std::string::npos;
  const ScratchFolder scratch;
  Process version({{found.compiler, "-dumpversion"}, scratch / "version", "", {}});
  version.wait(std::chrono::seconds(10));
  found.version = std::atoi(text_of_file(scratch / "version").c_str());
  return found;
}

}  // namespace binade::lab
