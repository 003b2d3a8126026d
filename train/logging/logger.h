// Logger: receives the numbers of a run. JsonLines, Csv and TensorBoard are loggers. A logger of
// your own overrides the functions whose data it wants:
//
//   class Print : public train::Logger {
//    public:
//     Print() : Logger("print") {}
//
//    private:
//     void write(const train::ScalarRecord& record) override {
//       for (const auto& [name, value] : record.values) {
//         std::printf("%lld %s %g\n", (long long)record.step, name.c_str(), value);
//       }
//     }
//   };
//
// A run calls start(), then the other functions in the order of the steps, then finish(). After a
// return to a checkpoint, and in a resumed run, start() says which steps come again. Only rank 0
// writes: on other ranks every call does nothing. If a write fails, for example because the disk is
// full, the call throws; earlier lines stay whole. One thread at a time may use a logger.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/core/tensor/tensor.h>
#include <binade/train/metrics/named_values.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace binade::data {
struct Image;
}

namespace binade::train {

// Says how a log begins or goes on.
struct LogStart {
  // The run directory; files with a relative path are in it. It is made if it does not exist.
  // Empty: the working directory.
  std::string directory = {};
  // The file system. Null: the machine's, but no link below `directory` is followed. REQUIRES: it
  // outlives the logger.
  FileSystem* files = nullptr;
  // If true, the log goes on after `step`: lines of later steps go to FILE.cut (TensorBoard: are
  // marked as void). If false, all existing lines do.
  bool resumed = false;
  int64_t step = 0;  // steps done
  int rank = 0;
};

// A line: numbers of one step, or of an epoch at its end.
struct ScalarRecord {
  int64_t step = 0;   // steps done
  int64_t epoch = 0;  // the epoch that the step belongs to, from 0
  NamedValues values = {};
  // Words beside the numbers, such as "precision": "fp16". TensorBoard does not show them.
  std::vector<std::pair<std::string, std::string>> words = {};
};

class Logger {
 public:
  // `name` is for messages: "csv".
  explicit Logger(std::string name) : name_(std::move(name)) {}
  virtual ~Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  const std::string& name() const { return name_; }
  // A second start() is a return to an earlier step.
  void start(const LogStart& start);
  // Throw before start() and after finish(), and if a name is empty or not UTF-8 or comes twice.
  // Values may be NaN or infinite.
  void scalars(const ScalarRecord& record);
  void histogram(int64_t step, const std::string& tag, const Tensor& x);  // waits for a device
  void image(int64_t step, const std::string& tag, const data::Image& image);
  void text(int64_t step, const std::string& tag, const std::string& text);
  // Afterwards the last lines are on disk. Another start() continues the log.
  void finish();

 protected:
  Logger(Logger&&) = default;
  Logger& operator=(Logger&&) = default;

  // On rank 0 only, and only between start() and finish(). The default does nothing.
  virtual void open(const LogStart& start);
  virtual void write(const ScalarRecord& record);
  virtual void write_histogram(int64_t step, const std::string& tag, const Tensor& x);
  virtual void write_image(int64_t step, const std::string& tag, const data::Image& image);
  virtual void write_text(int64_t step, const std::string& tag, const std::string& text);
  virtual void close();

 private:
  bool writes(const char* call, const std::string* tag) const;

  enum class Phase : uint8_t { before, started, finished };
  std::string name_;
  Phase phase_ = Phase::before;
  bool is_root_ = true;
  std::shared_ptr<FileSystem> own_files_;  // of start() without any
};

// A logger in a list, made from a logger, which is moved, or from a shared_ptr. May be null.
class LoggerPtr {
 public:
  LoggerPtr() = default;
  template <std::derived_from<Logger> T>
  LoggerPtr(T logger) : logger_(std::make_shared<T>(std::move(logger))) {}  // NOLINT
  template <std::derived_from<Logger> T>
  LoggerPtr(std::shared_ptr<T> logger) : logger_(std::move(logger)) {}  // NOLINT

  Logger* get() const { return logger_.get(); }
  Logger& operator*() const { return *logger_; }
  Logger* operator->() const { return logger_.get(); }
  explicit operator bool() const { return logger_ != nullptr; }

 private:
  std::shared_ptr<Logger> logger_;
};

}  // namespace binade::train
