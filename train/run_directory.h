// The directory of a run: metrics, checkpoints, model. RUN and its parents may be links; below RUN
// no link is followed. RUN/lock says which process uses it.
//
//   metrics.jsonl, model.safetensors, classifier.safetensors, lens.jsonl, lens.html, checkpoint/,
//   scaler.jsonl, blackbox.safetensors      the run
//   run.json, timeline.jsonl, report.html   what it was and how it went (train/report)
//   log.jsonl, log.csv, tensorboard/   of the loggers (train/logging/logger.h)
//   metrics.jsonl.cut, .cut-2, ...   lines that a resumed run wrote again
//   lock                             while a process uses it (the rules are in RunLock)
//   NAME.TOKEN-N.tmp                 a file being written; TOKEN is in the lock
//   RUN.replaced-1, -2, ...          beside RUN: earlier runs, which `overwrite` moved there
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/core/owned.h>

#include <functional>
#include <string>
#include <vector>

namespace binade::train {

class RunLock;

class RunDirectory {
 public:
  // Makes the directory or opens it, as the Trainer does, and locks it. Throws if it is not empty
  // and neither `resume` nor `overwrite` is set, if it cannot be written, or if another process
  // uses it; the error names that process. Removes temporary files of dead processes that had the
  // lock. `overwrite` moves metrics, model, checkpoints, lens files and logs of an earlier run
  // to RUN.replaced-N and leaves other files where they are; nothing is deleted.
  RunDirectory(const std::string& path, bool resume, bool overwrite);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  // The file system for everything that the run writes: it follows no link below path(), and calls
  // check_held() before it changes anything.
  FileSystem& files() const { return *held_files_; }
  // Throws if another process has taken the directory over.
  void check_held() const;

 private:
  void check_unused(bool resume, bool overwrite) const;
  void remove_leftovers() const;
  void move_away() const;

  std::string path_;
  Owned<FileSystem> files_;
  Owned<RunLock> lock_;
  Owned<FileSystem> held_files_;
};

// The lines of a text file, with their line ends (the last may lack it); empty without a file.
std::vector<std::string> read_lines(const std::string& file, FileSystem& files = file_system());
// Keeps the lines for which `keeps` holds. The others, and a last line without an end, first go to
// FILE.cut (FILE.cut-2, ...); a warning counts those that are no JSON. Without a file, or if every
// line stays, nothing happens.
void keep_lines(const std::string& file, const std::function<bool(const std::string&)>& keeps,
                FileSystem& files = file_system());

// The first of "PREFIX-1", "PREFIX-2", ... that does not exist.
std::string fresh_run_directory(const std::string& prefix);

}  // namespace binade::train
