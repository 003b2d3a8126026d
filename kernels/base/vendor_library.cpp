#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <binade/kernels/base/vendor_library.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

namespace binade::kernels {

namespace files = std::filesystem;

#ifndef BINADE_CUDA_MAJOR
#define BINADE_CUDA_MAJOR 13
#endif
#define BINADE_TEXT_OF(x) #x
#define BINADE_TEXT(x) BINADE_TEXT_OF(x)

const VendorLibrary kCublasLt{"cuBLASLt", "libcublasLt.so." BINADE_TEXT(BINADE_CUDA_MAJOR),
                              "BINADE_CUBLASLT_LIBRARY", "the CUDA toolkit"};
const VendorLibrary kCudnn{"cuDNN", "libcudnn.so.9", "BINADE_CUDNN_LIBRARY", "cuDNN 9"};
const VendorLibrary kNccl{"NCCL", "libnccl.so.2", "BINADE_NCCL_LIBRARY", "NCCL 2.17 or later"};

namespace {

constexpr const char* kPrefixVariable = "BINADE_LIBRARY_PREFIX";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Returns the sorted sub-folders of `folder` whose names begin with `begin`.
std::vector<files::path> below(const files::path& folder, const std::string& begin) {
  std::vector<files::path> found;
  std::error_code error;
  for (files::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && at->path().filename().string().starts_with(begin)) {
      found.push_back(at->path());
    }
  }
  std::ranges::sort(found);
  return found;
}

void add_wheels(const files::path& packages, std::vector<files::path>& folders) {
  for (const files::path& wheel : below(packages / "nvidia", "")) {
    folders.push_back(wheel / "lib");
  }
}

// The folders of an installation that may hold libraries.
std::vector<files::path> folders_of(const files::path& root) {
  std::vector<files::path> folders{root, root / "lib64", root / "lib"};
  for (const files::path& target : below(root / "targets", "")) {
    folders.push_back(target / "lib");
  }
  add_wheels(root, folders);
  for (const files::path& python : below(root / "lib", "python")) {
    add_wheels(python / "site-packages", folders);
  }
  return folders;
}

void add_root(const std::string& root, const char* file, std::vector<std::string>& found) {
  if (root.empty()) {
    return;
  }
  for (const files::path& folder : folders_of(root)) {
    std::error_code error;
    const std::string path = (folder / file).string();
    if (files::exists(folder / file, error) && std::ranges::count(found, path) == 0) {
      found.push_back(path);
    }
  }
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) {
      parts.push_back(list.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> toolkits() {
  std::vector<std::string> roots{variable("CUDA_HOME"), variable("CUDA_PATH")};
#ifdef BINADE_CUDA_TOOLKIT
  roots.emplace_back(BINADE_CUDA_TOOLKIT);
#endif
  roots.emplace_back("/usr/local/cuda");
  return roots;
}

std::string folders_searched() {
  const std::string prefix = variable(kPrefixVariable), environment = variable("VIRTUAL_ENV");
  std::string text_of_places = prefix.empty() ? "" : prefix + ", ";
  for (const std::string& root : toolkits()) {
    if (!root.empty() && text_of_places.find(root + ", ") == std::string::npos) {
      text_of_places += root + ", ";
    }
  }
  text_of_places += "the system's folders";
  return text_of_places + (environment.empty() ? "" : ", " + environment);
}

void print_notice(const std::string& notice) {
  std::fprintf(stderr, "binade: warning: %s\n", notice.c_str());
}
std::atomic<void (*)(const std::string&)> notice_sink{print_notice};

// The end of the error, after the list of files that were tried.
std::string advice(const VendorLibrary& library, LibraryPlaces places) {
  if (is_named(library)) {
    return text(", which ", library.variable, " names; correct or unset it");
  }
  if (places == LibraryPlaces::named) {
    return text("; set ", library.variable, " to the file of a stand-in");
  }
  return text(", after looking for ", library.file, " in ", printable(folders_searched()),
              "; install ", library.package, ", or set ", library.variable, " to the file or ",
              kPrefixVariable, " to the folder of an installation");
}

}  // namespace

LibraryPlaces library_places() {
#ifdef BINADE_HOST_EXECUTION
  return LibraryPlaces::named;
#else
  return LibraryPlaces::all;
#endif
}

bool is_named(const VendorLibrary& library) { return !variable(library.variable).empty(); }

std::vector<std::string> library_files(const VendorLibrary& library, LibraryPlaces places) {
  std::vector<std::string> found;
  if (is_named(library)) {
    return {variable(library.variable)};
  }
  if (places == LibraryPlaces::named) {
    return {};
  }
  for (const std::string& root : parts_of(variable(kPrefixVariable))) {
    add_root(root, library.file, found);
  }
  for (const std::string& root : toolkits()) {
    add_root(root, library.file, found);
  }
  found.emplace_back(library.file);
  add_root(variable("VIRTUAL_ENV"), library.file, found);
  return found;
}

void set_notice_sink(void (*sink)(const std::string& text)) { notice_sink = sink; }
void send_notice(const std::string& text) { notice_sink.load()(text); }

void note_missing(const VendorLibrary& library, const char* instead) {
  static auto& mutex = *new std::mutex;
  static auto& noted = *new std::set<std::string>;
  if (library_places() == LibraryPlaces::named && !is_named(library)) {
    return;
  }
  {
    const std::lock_guard lock(mutex);
    if (!noted.insert(library.name).second) {
      return;
    }
  }
  notice_sink.load()(text(library.name, " was not loaded: ", instead,
                          " (binade doctor lists the files tried; install ", library.package,
                          " or set ", library.variable, ")"));
}

LoadedLibrary::LoadedLibrary(const VendorLibrary& library, const Check& check,
                             LibraryPlaces places) {
  std::string tried;
  for (const std::string& file : library_files(library, places)) {
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string reason;
    if (!handle) {
      const char* error = ::dlerror();
      reason = error ? error : "it cannot be loaded";
    } else {
      std::string absent;
      reason = check([&](const char* symbol) {
        void* address = ::dlsym(handle, symbol);
        if (!address && absent.empty()) {
          absent = text("it has no ", symbol);
        }
        return address;
      });
      reason = absent.empty() ? reason : absent;
    }
    if (reason.empty()) {
      path_ = file;
      return;
    }
    if (handle) {
      ::dlclose(handle);
    }
    tried += text(tried.empty() ? "" : "; ", printable(file), " (", printable(reason), ")");
  }
  missing_ = text(library.name, " was not loaded: ", tried.empty() ? "no file was tried" : "tried ",
                  tried, advice(library, places));
}

}  // namespace binade::kernels
