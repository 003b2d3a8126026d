#include <binade/train/logging/log_text_internal.h>

#include <cerrno>
#include <charconv>
#include <system_error>

namespace binade::train {

std::string log_path(const LogStart& start, const std::string& file) {
  const bool is_absolute = file.starts_with('/');
  return is_absolute || start.directory.empty() ? file : start.directory + "/" + file;
}

std::string shortest(double value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

void sync_log(const std::string& path, FileSystem& files) {
  const int file = files.open_append(path, false);
  const bool synced = file >= 0 && files.sync(file) == 0;
  const int code = errno;
  if (file >= 0) {
    files.close(file);
  }
  if (!synced) {
    throw FileError(text(path, ": cannot sync the log: ", std::generic_category().message(code)),
                    code);
  }
}

}  // namespace binade::train
