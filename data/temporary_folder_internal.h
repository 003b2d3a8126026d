// TemporaryFolder: a folder that is written beside its place and renamed at the end, so that the
// place has all of it or nothing. Not part of the public interface.
//
// Its name is TARGET.X.tmp, where nobody can guess X, and it is made as a new directory. A lock on
// the directory (flock) says that its process lives: the next one for the same target removes
// those without.
#pragma once
#include <filesystem>
#include <string>

namespace binade::data::internal {

class TemporaryFolder {
 public:
  // Makes the folder, with a file `marker` of this text in it. Folders of dead processes go: they
  // are empty or have the marker. Throws Error.
  TemporaryFolder(const std::filesystem::path& target, const std::string& marker,
                  const std::string& text);
  ~TemporaryFolder();  // deletes it unless it has been renamed
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Gives it its name. False if something else than an empty directory has that name.
  bool rename_to_target();

 private:
  void remove_leftovers(const std::string& marker) const;

  std::filesystem::path target_, path_;
  int lock_ = -1;
  bool renamed_ = false;
};

}  // namespace binade::data::internal
