// binade report, diff, runs and watch: show run directories (train/report/run_record.h).
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/core/observe/byte_text.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/report/page.h>
#include <binade/train/report/run_diff.h>
#include <binade/train/report/run_report.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

namespace binade::tool {

void print_lines(const std::string& lines) {
  std::string_view rest = lines;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::printf("%s\n", printable(std::string(rest.substr(0, end))).c_str());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

namespace {

using train::Curve;
using train::RunRecord;

// Finds the runs below a folder; the folder may itself be a run.
void find_runs(const std::string& folder, int depth, std::vector<std::string>& runs) {
  if (train::is_run(folder)) {
    runs.push_back(folder);
    return;
  }
  constexpr int kMostDepth = 4;
  if (depth == kMostDepth) {
    return;
  }
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (entry.is_directory) {
      find_runs(folder + "/" + entry.name, depth + 1, runs);
    }
  }
}

std::string last_of(const RunRecord& run, const std::string& key) {
  const auto epoch = run.epochs.find(key);
  const Curve* curve = epoch != run.epochs.end() ? &epoch->second : run.curve(key);
  return curve ? train::page::short_number(curve->last()) : "-";
}

std::string best_of(const RunRecord& run, const std::string& key, bool largest) {
  const auto epoch = run.epochs.find(key);
  return epoch == run.epochs.end()
             ? "-"
             : train::page::short_number(largest ? epoch->second.most_finite()
                                                 : epoch->second.least_finite());
}

std::string shortened(const std::string& value, size_t most) {
  return value.size() <= most ? value : value.substr(0, most - 3) + "...";
}

using Row = std::vector<std::string>;

void print_table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "");
    }
    print_lines(line);
  }
}

// Draws a curve with text characters, 64 columns wide; each column is the mean of its points.
std::string sparkline(const Curve& curve) {
  constexpr size_t kColumns = 64;
  constexpr std::string_view kLevels = "_.,-~=+*#@";
  const double least = curve.least_finite(), most = curve.most_finite();
  const size_t columns = std::min(kColumns, curve.value.size());
  std::string out;
  for (size_t c = 0; c < columns; ++c) {
    double sum = 0;
    int64_t count = 0;
    for (size_t i = c * curve.value.size() / columns; i < (c + 1) * curve.value.size() / columns;
         ++i) {
      if (std::isfinite(curve.value[i])) {
        sum += curve.value[i];
        ++count;
      }
    }
    const double share =
        most > least && count > 0 ? (sum / static_cast<double>(count) - least) / (most - least) : 0;
    const auto level = static_cast<size_t>(share * static_cast<double>(kLevels.size() - 1) + 0.5);
    out += count > 0 ? kLevels[std::min(level, kLevels.size() - 1)] : '!';  // !: not finite
  }
  return out;
}

void add_curve(std::string& out, const char* name, const Curve* curve) {
  if (curve && !curve->empty()) {
    out +=
        text("  ", name, std::string(18 - std::min<size_t>(std::string_view(name).size(), 18), ' '),
             sparkline(*curve), "  ", train::page::short_number(curve->last()), "  (",
             train::page::short_number(curve->least_finite()), " to ",
             train::page::short_number(curve->most_finite()), ")\n");
  }
}

std::string picture_of(const RunRecord& run) {
  std::string out = text(run.path, ": ", run.state(), ", epoch ", run.epoch + 1, ", step ",
                         run.step, ", ", train::page::seconds_text(run.seconds), "\n");
  const auto in = [](const train::Curves& curves, const std::string& key) -> const Curve* {
    const auto found = curves.find(key);
    return found == curves.end() ? nullptr : &found->second;
  };
  const Curve* loss = in(run.steps, "train_loss");
  add_curve(out, "loss of steps", loss ? loss : in(run.timeline, "loss"));
  for (const auto& [key, curve] : run.epochs) {
    if (key == "train_loss" || key.starts_with("validation_")) {
      add_curve(out, key.c_str(), &curve);
    }
  }
  for (const char* key : {"learning_rate", "loss_scale", "gradient_norm", "skipped_steps"}) {
    add_curve(out, key, run.curve(key));
  }
  add_curve(out, "samples/s", in(run.timeline, "samples_per_second"));
  add_curve(out, "waits for data", in(run.timeline, "wait_share"));
  if (const Curve* memory = in(run.timeline, "reserved")) {
    out += text("  memory            ", byte_text(memory->last()), ", at most ",
                byte_text(memory->most_finite()), "\n");
  }
  for (const std::string& note : run.notes) {
    out += "  note: " + note + "\n";
  }
  return out;
}

}  // namespace

int run(const ReportOptions& o) {
  std::vector<RunRecord> runs;
  for (const std::string& path : o.runs) {
    runs.push_back(train::read_run(path));
  }
  // Runs with the same name are told apart by their paths.
  for (RunRecord& run : runs) {
    const auto same = std::count_if(runs.begin(), runs.end(), [&run](const RunRecord& other) {
      return other.name == run.name || other.path == run.name;
    });
    run.name = same > 1 ? run.path : run.name;
  }
  const std::string page = !o.page.empty()      ? o.page
                           : o.runs.size() == 1 ? o.runs[0] + "/report.html"
                                                : "report.html";
  write_file_durably(page, train::report_page(runs));
  print_lines(page);
  return 0;
}

int run(const DiffOptions& o) {
  const train::ReadRunOptions options{.lens = false, .trace = false};
  const RunRecord a = train::read_run(o.a, options), b = train::read_run(o.b, options);
  const train::RunDiff diff = train::diff_runs(a, b);
  print_lines(train::to_text(diff, a, b));
  return diff.same() ? 0 : 1;
}

int run(const RunsOptions& o) {
  const std::string kind = file_kind(o.folder);
  check(kind == "a directory", o.folder, ": got ", kind, ", expected a folder with runs");
  std::vector<std::string> paths;
  find_runs(o.folder, 0, paths);
  check(!paths.empty(), o.folder, ": got no run in it, expected a folder with runs");
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) {
    runs.push_back(train::read_run(path, {.lens = false, .trace = false, .checkpoints = false}));
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const auto& a, const auto& b) { return a.started < b.started; });
  std::vector<Row> rows{{"run", "begun", "state", "epoch", "step", "time", "train loss",
                         "best validation loss", "best accuracy"}};
  for (const RunRecord& run : runs) {
    rows.push_back({run.path, run.started.empty() ? "-" : run.started, shortened(run.state(), 28),
                    std::to_string(run.epoch + 1), std::to_string(run.step),
                    run.seconds > 0 ? train::page::seconds_text(run.seconds) : "-",
                    last_of(run, "train_loss"), best_of(run, "validation_loss", false),
                    best_of(run, "validation_accuracy", true)});
  }
  print_table(rows);
  return 0;
}

// On a terminal the new picture replaces the old one; otherwise a line is printed when the step has
// changed.
int run(const WatchOptions& o) {
  const train::ReadRunOptions options{.lens = false, .trace = false, .checkpoints = false};
  const bool draws = isatty(STDOUT_FILENO) != 0 && !o.once;
  int64_t shown = -1;
  for (;;) {
    const RunRecord run = train::read_run(o.run, options);
    if (draws) {
      std::fputs("\033[H\033[2J", stdout);  // home, clear
      print_lines(picture_of(run));
    } else if (o.once || !run.is_running) {
      print_lines(picture_of(run));
    } else if (run.step != shown) {
      const auto loss = run.timeline.find("loss");
      print_lines(text("step ", run.step, ", epoch ", run.epoch + 1, ", loss ",
                       loss == run.timeline.end()
                           ? last_of(run, "train_loss")
                           : train::page::short_number(loss->second.last())));
    }
    std::fflush(stdout);
    shown = run.step;
    if (o.once || !run.is_running) {
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(o.interval));
  }
}

}  // namespace binade::tool
