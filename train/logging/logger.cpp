#include <binade/core/io/json_text.h>
#include <binade/train/logging/logger.h>

#include <set>
#include <string_view>

namespace binade::train {

void Logger::start(const LogStart& start) {
  check(start.step >= 0 && start.rank >= 0, name_, ": got step ", start.step, " and rank ",
        start.rank, " in start(), expected no negative number");
  is_root_ = start.rank == 0;
  if (is_root_) {
    LogStart own = start;
    if (!own.files && own.directory.empty()) {
      own.files = &file_system();
    } else if (!own.files) {
      make_directories(own.directory);
      own_files_ = file_system_below(own.directory);
      own.files = own_files_.get();
    }
    open(own);
  }
  phase_ = Phase::started;
}

// True if this rank writes. Throws if the call is not allowed now, or if the name is bad.
bool Logger::writes(const char* call, const std::string* tag) const {
  check(phase_ == Phase::started, name_, ": got ", call, "() ",
        phase_ == Phase::before ? "before start(), expected start() first"
                                : "after finish(), expected it before, or another start()");
  check(!tag || (!tag->empty() && is_utf8(*tag)), name_, ": got the name '", tag ? *tag : "",
        "' in ", call, "(), expected a name in UTF-8 that is not empty");
  return is_root_;
}

void Logger::scalars(const ScalarRecord& record) {
  std::set<std::string_view> names = {"step", "epoch"};
  const auto check_name = [&](const std::string& name) {
    (void)writes("scalars", &name);
    check(names.insert(name).second, name_, ": got '", name,
          "' twice in scalars(), expected a name of its own for each (step and epoch are there)");
  };
  for (const auto& [name, value] : record.values) {
    check_name(name);
  }
  for (const auto& [name, word] : record.words) {
    check_name(name);
  }
  if (writes("scalars", nullptr)) {
    write(record);
  }
}

void Logger::histogram(int64_t step, const std::string& tag, const Tensor& x) {
  check(x.defined() && x.numel() > 0, name_, ": got a tensor without elements for the histogram '",
        tag, "', expected at least one");
  if (writes("histogram", &tag)) {
    write_histogram(step, tag, x);
  }
}

void Logger::image(int64_t step, const std::string& tag, const data::Image& image) {
  if (writes("image", &tag)) {
    write_image(step, tag, image);
  }
}

void Logger::text(int64_t step, const std::string& tag, const std::string& text) {
  if (writes("text", &tag)) {
    write_text(step, tag, text);
  }
}

void Logger::finish() {
  const bool was_open = phase_ == Phase::started && is_root_;
  phase_ = Phase::finished;
  if (was_open) {
    close();
  }
}

void Logger::open(const LogStart& /*start*/) {}
void Logger::write(const ScalarRecord& /*record*/) {}
void Logger::write_histogram(int64_t /*step*/, const std::string& /*tag*/, const Tensor& /*x*/) {}
void Logger::write_image(int64_t /*step*/, const std::string& /*tag*/,
                         const data::Image& /*image*/) {}
void Logger::write_text(int64_t /*step*/, const std::string& /*tag*/, const std::string& /*text*/) {
}
void Logger::close() {}

}  // namespace binade::train
