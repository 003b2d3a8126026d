// Libraries of the device's vendor, found and loaded at run time: no program needs one to start.
//
// A library is searched for in this order:
//   1. the file that the library's own variable names (BINADE_CUBLASLT_LIBRARY); then nothing else
//   2. BINADE_LIBRARY_PREFIX: folders, separated by colons
//   3. the CUDA toolkit: CUDA_HOME, CUDA_PATH, the toolkit of the build, /usr/local/cuda
//   4. the system, as for any library: LD_LIBRARY_PATH, ld.so.conf
//   5. VIRTUAL_ENV, where NVIDIA's Python wheels put their files
// In each folder the search includes the folder itself, lib64, lib, targets/*/lib, nvidia/*/lib and
// lib/python*/site-packages/nvidia/*/lib. In host execution of kernels only 1. counts, because a
// real library cannot use the memory of the emulated device.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace binade::kernels {

struct VendorLibrary {
  const char* name;      // name for messages
  const char* file;      // file name with the version of the interface that the caller uses
  const char* variable;  // environment variable that names the file
  const char* package;   // package to install if it is missing
};
extern const VendorLibrary kCublasLt, kCudnn, kNccl;

enum class LibraryPlaces : uint8_t { named, all };
LibraryPlaces library_places();  // of this build

// The files that LoadedLibrary tries, in order; the system searches for a name without a folder.
std::vector<std::string> library_files(const VendorLibrary& library,
                                       LibraryPlaces places = library_places());
// True if the environment names the file to load.
bool is_named(const VendorLibrary& library);

// A library that was loaded, or the reason why it was not. It stays loaded until the process ends.
class LoadedLibrary {
 public:
  // Tries library_files() until one loads, has all symbols that the caller asks for with find(),
  // and passes `check`, which returns the reason to reject the file, or "".
  using Find = std::function<void*(const char* symbol)>;
  using Check = std::function<std::string(const Find& find)>;
  LoadedLibrary(const VendorLibrary& library, const Check& check,
                LibraryPlaces places = library_places());

  const std::string& path() const { return path_; }  // of the file, "" if none was loaded
  // One sentence that lists each file that was tried and the reason against it, and says what to
  // do; "" if a library was loaded.
  const std::string& missing() const { return missing_; }

 private:
  std::string path_, missing_;
};

// Notes once per process and library, in one line, that it is missing and what runs instead. The
// line goes to stderr, or to the warnings of core (core/observe/warning.h) if core is used. In host
// execution nothing is noted about a library that the environment does not name.
void note_missing(const VendorLibrary& library, const char* instead);
void set_notice_sink(void (*sink)(const std::string& text));
void send_notice(const std::string& text);

// Looks up a function by its name and stores it; false if there is none.
template <class F>
bool find_function(const LoadedLibrary::Find& find, const char* name, F& function) {
  function = reinterpret_cast<F>(find(name));
  return function != nullptr;
}

}  // namespace binade::kernels
