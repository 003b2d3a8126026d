#include <binade/core/io/file_system.h>
#include <binade/kernels/base/error.h>
#include <binade/train/run_directory.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace binade::train {

namespace fs = std::filesystem;

void prepare_run_directory(const std::string& path, bool resume, bool overwrite) {
  check(!(resume && overwrite),
        "run directory: got both resume and overwrite, expected one of them");
  std::error_code error;
  const bool exists = fs::exists(path, error);
  if (exists) {
    check(fs::is_directory(path, error), "run directory: got ", path,
          ", which is not a directory; give another one (--run DIR)");
    const bool used = fs::directory_iterator(path, error) != fs::directory_iterator();
    check(!error, path, ": ", error.message());
    check(
        !used || resume || overwrite, "run directory: got ", path,
        ", which is not empty, expected a new or empty one; set resume (--resume) to continue the "
        "run in it, overwrite (--overwrite) to replace it, or give another one (--run DIR)");
    if (overwrite) {
      for (const char* name :
           {"/metrics.jsonl", "/model.safetensors", "/checkpoint", "/lens.jsonl", "/lens.html"}) {
        fs::remove_all(path + name, error);
        check(!error, path, name, ": could not be removed: ", error.message());
      }
    }
  } else {
    make_directories(path);
  }
  check(access(path.c_str(), W_OK | X_OK) == 0, path,
        ": cannot be written; give another --run DIR or change its permissions");
}

std::string fresh_run_directory(const std::string& prefix) {
  for (int64_t number = 1;; ++number) {
    std::string path = prefix + "-" + std::to_string(number);
    std::error_code error;
    if (!fs::exists(path, error)) {
      return path;
    }
  }
}

}  // namespace binade::train
