// The gain of each way to a faster training on this machine: alone, left out of all, and together.
//
//   speedups --json                        # on the CPU
//   speedups --device cuda                 # the same on a GPU
//
// The plain program (no loader threads, batches of 8, fp32, JPEG files, ...) and the measures are
// in bench/speedup_work.h. Every sample is a process of its own (two with ddp) that warms up and
// then trains on --samples images. In each round every set of measures runs once, in a newly drawn
// order. A ratio compares times of one round; medians are over the rounds. A measure without an
// effect on the device stays in the table with the reason. bench/RESULTS.md has the results.
#include <bench/bench_record.h>
#include <bench/speedup_work.h>
#include <bench/statistics.h>
#include <binade/core/io/file_system.h>
#include <binade/core/io/json_text.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/dist/job/launch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

namespace binade::bench {
namespace {

struct SpeedupFlags {
  SpeedupSettings settings;
  std::string device = "cpu";
  std::vector<std::string> measures;  // empty: all
  int64_t rounds = 5;
  int gpus = 1;
  bool json = false;
  // Set only in a child process, which takes one sample.
  std::string sample, folder, result;
  bool prepare = false;
};

// A training or evaluation under a set of measures.
struct Trial {
  MeasureSet on = {};
  bool evaluates = false;
  auto operator<=>(const Trial&) const = default;
};

size_t index_of(Measure one) { return static_cast<size_t>(one); }

// The word that tells a process what to run: "0101...", and 'e' for an evaluation.
std::string word_of(const Trial& trial) {
  std::string word;
  for (const bool on : trial.on) {
    word += on ? '1' : '0';
  }
  return word + (trial.evaluates ? "e" : "");
}
Trial parse_word(const std::string& word) {
  check(word.size() >= kMeasureCount, "speedups: got --sample ", word);
  Trial trial{MeasureSet(kMeasureCount), word.size() > kMeasureCount};
  for (size_t i = 0; i < kMeasureCount; ++i) {
    trial.on[i] = word[i] == '1';
  }
  return trial;
}

// A temporary folder, removed by the destructor.
class TrialFolder {
 public:
  TrialFolder() {
    path_ = (std::filesystem::temp_directory_path() / "binade-speedups-XXXXXX").string();
    check(::mkdtemp(path_.data()) != nullptr, "speedups: cannot make a folder in ",
          std::filesystem::temp_directory_path().string());
  }
  ~TrialFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Starts this program again and waits for it.
void run_again(const SpeedupFlags& flags, const std::string& folder,
               const std::vector<std::string>& more, int ranks) {
  const SpeedupSettings& s = flags.settings;
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                      "--folder",
                                      folder,
                                      "--device",
                                      flags.device,
                                      "--model",
                                      s.model,
                                      "--samples",
                                      std::to_string(s.samples),
                                      "--edge",
                                      std::to_string(s.edge),
                                      "--files",
                                      std::to_string(s.files)};
  command.insert(command.end(), more.begin(), more.end());
  const int status = dist::launch(command, {.ranks = ranks});
  check(status == 0, "speedups: a trial ended with status ", status);
}

double sample(const SpeedupFlags& flags, const Trial& trial, const std::string& folder) {
  const std::string result = folder + "/result";
  run_again(flags, folder, {"--sample", word_of(trial), "--result", result},
            has(trial.on, Measure::ddp) ? 2 : 1);
  const std::vector<std::byte> bytes = read_file(result);
  return std::stod(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// A row of the table; it shows the ratios of two pairs of trials.
struct SpeedupRow {
  Measure measure;
  std::string reason;  // why there are no ratios
  Trial before = {}, alone = {}, all = {}, left_out = {};
};

// ZeRO needs ranks: alone it is compared with ddp, and without ddp it is left out.
std::vector<SpeedupRow> rows_of(const SpeedupFlags& flags, Device device) {
  MeasureSet all(kMeasureCount);
  std::vector<SpeedupRow> rows;
  for (size_t i = 0; i < kMeasureCount; ++i) {
    const bool asked = flags.measures.empty() ||
                       std::ranges::find(flags.measures, kMeasures[i].name) != flags.measures.end();
    if (asked) {
      const auto one = static_cast<Measure>(i);
      rows.push_back({.measure = one, .reason = why_not(one, device, flags.gpus)});
      all[i] = rows.back().reason.empty();
    }
  }
  if (has(all, Measure::ddp) && has(all, Measure::graph)) {
    all[index_of(Measure::graph)] = false;  // averages over ranks need the host
  }
  all[index_of(Measure::zero)] = has(all, Measure::zero) && has(all, Measure::ddp);
  for (SpeedupRow& row : rows) {
    const bool evaluates = row.measure == Measure::evaluation;
    MeasureSet none(kMeasureCount), alone(kMeasureCount), left_out = all;
    none[index_of(Measure::ddp)] = alone[index_of(Measure::ddp)] = row.measure == Measure::zero;
    alone[index_of(row.measure)] = true;
    left_out[index_of(row.measure)] = false;
    if (row.measure == Measure::ddp) {
      left_out[index_of(Measure::zero)] = false;
    }
    row.before = {none, evaluates};
    row.alone = {alone, evaluates};
    row.all = {all, evaluates};
    row.left_out = {left_out, evaluates};
  }
  return rows;
}

using Samples = std::map<Trial, std::vector<double>>;  // samples per second in each round

struct SpeedupRatio {
  double median = 0;
  MedianInterval range;
};
SpeedupRatio ratio_of(const Samples& samples, const Trial& slow, const Trial& fast) {
  std::vector<double> ratios;
  const std::vector<double>&a = samples.at(slow), &b = samples.at(fast);
  for (size_t i = 0; i < a.size(); ++i) {
    ratios.push_back(b[i] / a[i]);
  }
  return {median(ratios), median_interval(ratios)};
}

Samples measure_all(const SpeedupFlags& flags, const std::vector<SpeedupRow>& rows,
                    const std::string& folder) {
  Samples samples;
  for (const SpeedupRow& row : rows) {
    if (row.reason.empty()) {
      for (const Trial* trial : {&row.before, &row.alone, &row.all, &row.left_out}) {
        samples[*trial];
      }
    }
  }
  std::vector<Trial> order;
  for (const auto& [trial, none] : samples) {
    order.push_back(trial);
  }
  std::mt19937 random(1);
  for (int64_t round = 0; round < flags.rounds; ++round) {
    for (size_t i = order.size(); i-- > 1;) {
      std::swap(order[i], order[random() % (i + 1)]);
    }
    for (const Trial& trial : order) {
      samples[trial].push_back(sample(flags, trial, folder));
    }
  }
  return samples;
}

std::string json_of(const SpeedupRatio& ratio) {
  return text("{\"ratio\": ", ratio.median, ", \"low\": ", ratio.range.low,
              ", \"high\": ", ratio.range.high, ", \"coverage\": ", ratio.range.coverage, "}");
}

std::string json_of(const SpeedupRow& row, const Samples& samples) {
  const MeasureText& words = kMeasures[index_of(row.measure)];
  const std::string head =
      text("{\"measure\": ", json_quoted(words.name), ", \"without\": ", json_quoted(words.without),
           ", \"with\": ", json_quoted(words.with));
  if (!row.reason.empty()) {
    return text(head, ", \"reason\": ", json_quoted(row.reason), "}");
  }
  return text(head, ", \"alone\": ", json_of(ratio_of(samples, row.before, row.alone)),
              ", \"in_all\": ", json_of(ratio_of(samples, row.left_out, row.all)), "}");
}

std::string cell_of(const SpeedupRatio& ratio) {
  char cell[80];
  std::snprintf(cell, sizeof cell, "x %.2f (%.2f to %.2f)", ratio.median, ratio.range.low,
                ratio.range.high);
  return cell;
}

// The verdict on a ratio: it is a gain if its interval lies above 1.
const char* verdict_of(const SpeedupRatio& ratio) {
  return ratio.range.low > 1 ? "" : ratio.range.high < 1 ? "slower" : "no gain that is sure";
}

void print_results(const std::vector<SpeedupRow>& rows, const Samples& samples) {
  std::vector<std::vector<std::string>> table{
      {"measure", "without", "with", "alone", "", "in all", ""}};
  for (const SpeedupRow& row : rows) {
    const MeasureText& words = kMeasures[index_of(row.measure)];
    table.push_back({words.name, words.without, words.with});
    if (!row.reason.empty()) {
      table.back().insert(table.back().end(), {"-", row.reason, "-", ""});
      continue;
    }
    for (const auto& [slow, fast] :
         {std::pair(&row.before, &row.alone), std::pair(&row.left_out, &row.all)}) {
      const SpeedupRatio ratio = ratio_of(samples, *slow, *fast);
      table.back().insert(table.back().end(), {cell_of(ratio), verdict_of(ratio)});
    }
  }
  std::fputs(text_table(table).c_str(), stdout);
}

// The plain program, all measures together, and their ratio, for training and evaluation.
std::string together_of(const std::vector<SpeedupRow>& rows, const Samples& samples, bool json) {
  std::string out;
  for (const bool evaluates : {false, true}) {
    const auto row = std::ranges::find_if(rows, [&](const SpeedupRow& one) {
      return one.reason.empty() && one.all.evaluates == evaluates && one.measure != Measure::zero;
    });
    if (row == rows.end()) {
      continue;
    }
    const double plain = median(samples.at(row->before)), all = median(samples.at(row->all));
    const SpeedupRatio ratio = ratio_of(samples, row->before, row->all);
    const char* task = evaluates ? "evaluation" : "training";
    out += json ? text(out.empty() ? "" : ", ", "{\"task\": \"", task, "\", \"plain\": ", plain,
                       ", \"all\": ", all, ", \"together\": ", json_of(ratio), "}")
                : text(task, ": ", std::to_string(plain), " samples/s plain, ", std::to_string(all),
                       " with all, ", cell_of(ratio), "\n");
  }
  return out;
}

void run_table(const SpeedupFlags& flags) {
  for (const std::string& name : flags.measures) {
    check(std::ranges::any_of(kMeasures, [&](const auto& one) { return name == one.name; }),
          "--measure: got '", name, "', expected one of those that --help lists");
  }
  // This process only starts others and uses no device, so the kind of device is enough.
  const Device device{flags.device.starts_with("cuda") ? Device::kCuda
                      : flags.device == "emulated"     ? Device::kEmulated
                                                       : Device::kCpu};
  const TrialFolder folder;
  run_again(flags, folder.path(), {"--prepare"}, 1);
  const std::vector<SpeedupRow> rows = rows_of(flags, device);
  const Samples samples = measure_all(flags, rows, folder.path());
  const std::string together = together_of(rows, samples, flags.json);
  if (!flags.json) {
    print_results(rows, samples);
    std::fputs(together.c_str(), stdout);
    return;
  }
  std::string all;
  for (const SpeedupRow& row : rows) {
    all += (all.empty() ? "" : ", ") + json_of(row, samples);
  }
  std::printf(
      "{\"machine\": %s, \"model\": %s, \"device\": %s, \"rounds\": %lld, \"measures\": [%s], "
      "\"together\": [%s]}\n",
      json_of(machine_facts(device)).c_str(), json_quoted(flags.settings.model).c_str(),
      json_quoted(flags.device).c_str(), static_cast<long long>(flags.rounds), all.c_str(),
      together.c_str());
}

void run_sample(const SpeedupFlags& flags) {
  const Trial trial = parse_word(flags.sample);
  dist::World world;
  const Device device = world.size() > 1 && flags.device.starts_with("cuda")
                            ? world.device()
                            : Device::parse(flags.device);
  const double speed =
      samples_per_second(flags.settings, trial.on, trial.evaluates, flags.folder, device, world);
  if (world.is_root()) {
    write_file_durably(flags.result, std::to_string(speed));
  }
}

void add_flags(CLI::App& app, SpeedupFlags& flags) {
  SpeedupSettings& s = flags.settings;
  const CLI::Range positive(int64_t{1}, int64_t{1} << 20);
  std::string names;
  for (const MeasureText& one : kMeasures) {
    names += text(names.empty() ? "" : ", ", one.name);
  }
  app.add_option("--device", flags.device, "cpu, cuda or emulated")->capture_default_str();
  app.add_option("--gpus", flags.gpus, "of the machine: ddp and zero need two")
      ->capture_default_str();
  app.add_option("--model", s.model, "cnn, mlp, resnet18, ...")->capture_default_str();
  app.add_option("--measure", flags.measures, names + "; all by default")->delimiter(',');
  app.add_option("--rounds", flags.rounds, "medians are over these")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--samples", s.samples, "images of a sample")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--edge", s.edge, "of the images that the model gets")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--files", s.files, "images on the disk")->check(positive)->capture_default_str();
  app.add_flag("--json", flags.json, "one JSON object");
  app.add_option("--sample", flags.sample)->group("");
  app.add_option("--folder", flags.folder)->group("");
  app.add_option("--result", flags.result)->group("");
  app.add_flag("--prepare", flags.prepare)->group("");
}

void run(const SpeedupFlags& flags) {
  if (flags.prepare) {
    prepare_images(flags.folder, flags.settings);
  } else if (!flags.sample.empty()) {
    run_sample(flags);
  } else {
    run_table(flags);
  }
}

}  // namespace
}  // namespace binade::bench

int main(int argc, char** argv) {
  binade::bench::SpeedupFlags flags;
  CLI::App app("Measures what each way to a faster training brings: alone, left out, together.");
  try {
    binade::bench::add_flags(app, flags);
    app.parse(argc, argv);
    binade::bench::run(flags);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "speedups: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
