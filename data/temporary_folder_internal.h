// TemporaryFolder: a folder that is written beside its place and renamed at the end, so that the
// place has all of it or nothing. Not part of the public interface.
//
// The folder is made as a new directory named TARGET.X.tmp, where nobody can guess X. A lock on the
// directory (flock) shows that its process lives. The next process with the same target removes
// folders without a lock.
#pragma once
#include <filesystem>
#include <string>

namespace binade::data::internal {

class TemporaryFolder {
 public:
  // Makes the folder, with a file `marker` of this text in it. Deletes folders of dead processes if
  // they are empty or have the marker. Throws Error.
  TemporaryFolder(const std::filesystem::path& target, const std::string& marker,
                  const std::string& text);
  ~TemporaryFolder();  // deletes it unless it has been renamed
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Renames the folder to the target. False if something else than an empty directory is there.
  bool rename_to_target();

 private:
  void remove_leftovers(const std::string& marker) const;

  std::filesystem::path target_, path_;
  int lock_ = -1;
  bool renamed_ = false;
};

}  // namespace binade::data::internal
