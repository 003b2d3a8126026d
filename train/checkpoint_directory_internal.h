// The directories of a checkpoint store: their names, and which of their files are the store's own
// (internal to train).
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/checkpoint_store.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace binade::train {

inline constexpr const char* kBest = "best";
inline constexpr std::string_view kTemporary = ".tmp", kReplaced = ".old";

std::string step_name(int64_t step);
// The step of a name that step_name gives, else nothing.
std::optional<int64_t> step_of(std::string_view name);
// CHECKPOINT of the name CHECKPOINT.X<suffix>, where X are the 16 digits of unpredictable_name()
// (earlier versions wrote none), else empty.
std::string checkpoint_of(std::string_view name, std::string_view suffix);

// True if an error of reading a checkpoint comes from its files, and not from the machine or from
// the rights of this user.
bool is_damage(const Error& error);

// The first entry of a directory that the store did not write; empty if there is none. The
// manifest and the list of files (checkpoint_manifest_internal.h) say which it wrote.
std::string first_foreign(const std::string& path, FileSystem& files);
// Deletes a directory that has only files of the store, and returns ""; else deletes nothing and
// returns the name of a file that is not. The manifest and the list go last, so that what is left
// after an interruption is known to be the store's.
std::string remove_own_directory(const std::string& parent, const std::string& name,
                                 FileSystem& files);

// What a reader must know to use these files: Manifest::features.
std::set<std::string> features_of(std::span<const CheckpointFile> files);

// Throws FileError with ENOSPC, and the two numbers, if the disk has fewer than `need` bytes free.
void check_free_space(const std::string& path, uint64_t need, FileSystem& files);

}  // namespace binade::train
