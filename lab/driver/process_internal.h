// Child processes of the lab: compilers and runners.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace binade::lab {

// A folder that is deleted with its contents by the destructor.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct ProcessEnd {
  int status = 0;      // exit status; -1: ended by a signal
  int signal = 0;      // the signal that ended it, or 0
  bool late = false;   // ended because it took too long
  double seconds = 0;  // from start to end
};

// A running process. The destructor ends it.
class Process {
 public:
  struct Start {
    std::vector<std::string> words = {};   // the program, looked up in PATH, and its arguments
    std::string output = {}, errors = {};  // paths for the output; may be equal; empty: discarded
    std::vector<std::pair<std::string, std::string>> variables = {};
  };
  explicit Process(const Start& start);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits until `limit` after the start at most, then ends the process. Calls `look` now and then.
  // Throws Error after interrupt_checks().
  ProcessEnd wait(std::chrono::milliseconds limit, const std::function<void()>& look = {});
  void kill();

 private:
  int pid_ = -1;
  std::chrono::steady_clock::time_point begin_;
};

// The file's text; empty if it cannot be read.
std::string text_of_file(const std::string& path);
void write_text(const std::string& path, const std::string& text);
// The path of a program, searched for in PATH, or "" if there is none.
std::string find_program(const std::string& name);

}  // namespace binade::lab
