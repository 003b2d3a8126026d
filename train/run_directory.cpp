#include <binade/core/observe/warning.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/held_files_internal.h>
#include <binade/train/run_directory.h>
#include <binade/train/run_lock_internal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

namespace binade::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoint = "checkpoint";
constexpr const char* kFiles[] = {"metrics.jsonl",
                                  "model.safetensors",
                                  "classifier.safetensors",
                                  "lens.jsonl",
                                  "lens.html",
                                  "shadow.jsonl",
                                  "shadow.html",
                                  "f32-rules.json",
                                  "log.jsonl",
                                  "log.csv",
                                  "run.json",
                                  "timeline.jsonl",
                                  "report.html",
                                  "trace.json",
                                  "scaler.jsonl",
                                  "blackbox.safetensors"};
constexpr const char* kTensorBoard = "tensorboard";  // a folder

bool is_number(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

// True for a file of a run, and for the lines cut from it: FILE, FILE.cut, FILE.cut-N.
bool is_name_of_file(std::string_view name) {
  constexpr std::string_view kCut = ".cut", kMore = ".cut-";
  return std::any_of(std::begin(kFiles), std::end(kFiles), [&](std::string_view file) {
    if (!name.starts_with(file)) {
      return false;
    }
    const std::string_view rest = name.substr(file.size());
    return rest.empty() || rest == kCut ||
           (rest.starts_with(kMore) && is_number(rest.substr(kMore.size())));
  });
}

// The process token in the name FILE.TOKEN-N.tmp of a temporary file of a run; empty if it is none.
std::string token_of(std::string_view name) {
  constexpr std::string_view kTemporary = ".tmp";
  constexpr size_t kDigits = 16;
  if (!name.ends_with(kTemporary)) {
    return "";
  }
  name.remove_suffix(kTemporary.size());
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash < kDigits + 2 || !is_number(name.substr(dash + 1))) {
    return "";
  }
  const size_t token = dash - kDigits;
  return name[token - 1] == '.' && is_name_of_file(name.substr(0, token - 1))
             ? std::string(name.substr(token, kDigits))
             : "";
}

// The first of PREFIX1, PREFIX2, ... that nothing has as its name, made as a directory.
std::string make_numbered(const std::string& prefix) {
  for (int64_t number = 1;; ++number) {
    std::string path = prefix + std::to_string(number);
    if (make_new_directory(path)) {
      return path;
    }
  }
}

// The path without a slash at its end; with a name at its end.
std::string with_name(const std::string& path) {
  fs::path plain = fs::path(path).lexically_normal();
  plain = plain.has_filename() ? plain : plain.parent_path();
  const std::string name = plain.filename().native();
  return name.empty() || name == "." || name == ".." ? fs::canonical(path).native()
                                                     : plain.native();
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path, bool resume, bool overwrite) : path_(path) {
  check(!(resume && overwrite),
        "run directory: got both resume and overwrite, expected one of them");
  std::error_code error;
  if (fs::exists(path_, error)) {
    check(fs::is_directory(path_, error), "run directory: got ", path_,
          ", which is not a directory; give another one (--run DIR)");
    check_unused(resume, overwrite);
  } else {
    make_directories(path_);
  }
  check(access(path_.c_str(), W_OK | X_OK) == 0, path_,
        ": cannot be written; give another --run DIR or change its permissions");
  files_ = file_system_below(path_);
  lock_ = std::make_unique<RunLock>(path_, *files_);
  held_files_ = std::make_unique<HeldFiles>(*files_, *lock_);
  check_unused(resume, overwrite);  // another process may have used it in between
  remove_leftovers();
  if (overwrite) {
    move_away();
  }
}

RunDirectory::~RunDirectory() = default;

void RunDirectory::check_held() const { lock_->check_held(); }

void RunDirectory::check_unused(bool resume, bool overwrite) const {
  const std::vector<DirectoryEntry> entries = list_directory(path_);
  // A run that failed before its first step leaves an empty directory for checkpoints.
  const auto is_empty = [this](const DirectoryEntry& entry) {
    return entry.is_directory && entry.name == kCheckpoint &&
           list_directory(path_ + "/" + entry.name).empty();
  };
  const bool used = std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
    return !RunLock::is_name_of_lock(entry.name) && !is_empty(entry);
  });
  check(!used || resume || overwrite, "run directory: got ", path_,
        ", which is not empty, expected a new or empty one; set resume (--resume) to continue the "
        "run in it, overwrite (--overwrite) to begin anew and keep the old run as RUN.replaced-N, "
        "or give another one (--run DIR)");
}

// Removes only files whose name has the token of a process that had the lock.
void RunDirectory::remove_leftovers() const {
  const std::vector<std::string>& dead = lock_->earlier();
  for (const DirectoryEntry& entry : list_directory(path_, *files_)) {
    if (entry.is_file && std::find(dead.begin(), dead.end(), token_of(entry.name)) != dead.end()) {
      remove_path(entry, path_, *files_);
    }
  }
}

// The checkpoints go first: without them a resumed run would begin anew, and keep the lines of
// metrics that are still there.
void RunDirectory::move_away() const {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(path_, *files_)) {
    if (entry.name == kCheckpoint) {
      names.insert(names.begin(), entry.name);
    } else if (is_name_of_file(entry.name) || entry.name == kTensorBoard) {
      names.push_back(entry.name);
    }
  }
  if (names.empty()) {
    return;
  }
  const auto move = [&](const std::string& to) {
    for (const std::string& name : names) {
      rename_path(path_ + "/" + name, to + "/" + name, *files_);
    }
    sync_directory(to);
    sync_directory(parent_directory(to));
    sync_directory(path_, *files_);
  };
  const std::string beside = make_numbered(with_name(path_) + ".replaced-");
  try {
    move(beside);
  } catch (const FileError& error) {
    fs::remove(beside);  // it is empty, or this fails
    if (error.code() != EXDEV) {
      throw;
    }
    // RUN is a link to another file system.
    move(make_numbered(fs::canonical(path_).native() + ".replaced-"));
  }
}

std::vector<std::string> read_lines(const std::string& file, FileSystem& files) {
  std::vector<std::byte> bytes;
  try {
    bytes = read_file(file, uint64_t{1} << 32, files);
  } catch (const FileError& error) {
    if (error.code() != ENOENT) {
      throw;
    }
  }
  std::vector<std::string> lines;
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    lines.emplace_back(rest.substr(0, end == std::string_view::npos ? end : end + 1));
    rest.remove_prefix(lines.back().size());
  }
  return lines;
}

void keep_lines(const std::string& file, const std::function<bool(const std::string&)>& keeps,
                FileSystem& files) {
  std::string kept, cut;
  int64_t damaged = 0;
  for (const std::string& line : read_lines(file, files)) {
    const bool keep = line.ends_with('\n') && keeps(line);
    (keep ? kept : cut) += line;
    damaged += line.ends_with('\n') && !keep && !nlohmann::json::accept(line);
  }
  if (!cut.empty()) {
    const std::string aside = write_new_file_durably(file + ".cut", cut, files);
    write_file_durably(file, kept, files);
    if (damaged > 0) {
      warn(text(printable(file), ": ", damaged, " lines are damaged; they are kept in ",
                printable(aside)));
    }
  }
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
