#include <binade/core/ops.h>
#include <binade/train/logging/event_records_internal.h>
#include <binade/train/logging/log_text_internal.h>
#include <binade/train/logging/tensorboard.h>
#include <binade/train/logging/wall_clock_internal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace binade::train {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

std::string host_in_file_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) {
    return "localhost";
  }
  std::string host = name;
  std::replace(host.begin(), host.end(), '/', '_');
  return host.empty() ? "localhost" : host;
}

// The seconds in the name of an event file, -1 if it is none.
int64_t seconds_of(std::string_view name) {
  int64_t seconds = -1;
  if (name.starts_with(kPrefix)) {
    name.remove_prefix(kPrefix.size());
    std::from_chars(name.data(), name.data() + name.size(), seconds);
  }
  return seconds;
}

}  // namespace

class TensorBoard::Events {
 public:
  Events(std::string folder, const LogStart& start)
      : folder_(std::move(folder)),
        files_(*start.files),
        first_step_(start.resumed ? start.step + 1 : 0) {}

  void append(const std::string& record, int64_t step) {
    if (file_.empty()) {
      begin();
    }
    const std::string file = std::exchange(file_, "");  // after an error a new one is begun
    append_to_file(file, record, files_);
    file_ = file;
    first_step_ = std::max(first_step_, step + 1);
  }

  void sync() const {
    if (!file_.empty()) {
      sync_log(file_, files_);
    }
  }

 private:
  // A reader takes the files in the order of their names, so the new name comes after all others,
  // also if the clock was set back or two files begin in one second.
  void begin() {
    make_directories(folder_, files_);
    auto seconds = static_cast<int64_t>(wall_seconds());
    for (const DirectoryEntry& entry : list_directory(folder_, files_)) {
      seconds = std::max(seconds, seconds_of(entry.name) + 1);
    }
    char number[32];
    std::snprintf(number, sizeof number, "%010lld", static_cast<long long>(seconds));
    const std::string path =
        binade::text(folder_, "/", kPrefix, number, ".", host_in_file_name(), ".", getpid());
    OutputFile file(path, files_);
    file.write(version_record(wall_seconds()));
    // Written to every file: TensorBoard treats the first start in a folder as the start of the
    // run, and only later ones as restarts.
    file.write(start_record({wall_seconds(), first_step_}));
    file.finish();
    sync_directory(folder_, files_);
    file_ = path;
  }

  std::string folder_;
  FileSystem& files_;
  int64_t first_step_;  // of those to come
  std::string file_;    // empty: the next record begins one
};

TensorBoard::TensorBoard(TensorBoardOptions options)
    : Logger("tensorboard"), options_(std::move(options)) {
  check(!options_.folder.empty(), name(), ": got no folder, expected a path");
}
TensorBoard::~TensorBoard() = default;
TensorBoard::TensorBoard(TensorBoard&&) noexcept = default;
TensorBoard& TensorBoard::operator=(TensorBoard&&) noexcept = default;

void TensorBoard::open(const LogStart& start) {
  events_ = std::make_unique<Events>(log_path(start, options_.folder), start);
}

void TensorBoard::write(const ScalarRecord& record) {
  if (!record.values.empty()) {
    events_->append(scalars_record({wall_seconds(), record.step}, record.values), record.step);
  }
}

void TensorBoard::write_histogram(int64_t step, const std::string& tag, const Tensor& x) {
  const NoGradGuard no_grad;
  std::vector<double> values = x.detach().to(Device{}).to(DType::f64).to_vector<double>();
  const auto end = std::remove_if(values.begin(), values.end(),
                                  [](double value) { return !std::isfinite(value); });
  const auto lost = static_cast<double>(values.end() - end);
  values.erase(end, values.end());
  const EventTime time{wall_seconds(), step};
  if (!values.empty()) {
    events_->append(histogram_record(time, tag, histogram_of(values)), step);
  }
  if (lost > 0) {
    events_->append(scalars_record(time, {{tag + "/not_finite", lost}}), step);
  }
}

void TensorBoard::write_image(int64_t step, const std::string& tag, const data::Image& image) {
  events_->append(image_record({wall_seconds(), step}, tag, image), step);
}

void TensorBoard::write_text(int64_t step, const std::string& tag, const std::string& text) {
  events_->append(text_record({wall_seconds(), step}, tag, text), step);
}

void TensorBoard::close() { events_->sync(); }

}  // namespace binade::train
