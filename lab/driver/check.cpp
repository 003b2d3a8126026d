#include <binade/lab/driver/builds_internal.h>
#include <binade/lab/driver/device_code_internal.h>
#include <binade/lab/driver/results_internal.h>
#include <binade/lab/runner/wire.h>

#include <algorithm>
#include <atomic>

namespace binade::lab {
namespace {

constexpr uint64_t kStepLimit = uint64_t{1} << 22;
constexpr uint64_t kSampledBlocks = 64;
// If a named shape needs more work than this, accesses are counted but results are not compared.
constexpr double kMostElements = 1 << 22, kMostFlops = 2e8;
// If it needs at most this much, accesses are counted in all blocks.
constexpr double kWholeElements = 1 << 17, kWholeFlops = 4e6;

// The runs of all builds. Only the runs of the plain build have references.
struct Plan {
  std::vector<PreparedRun> runs = {};
  std::vector<Sizes> sizes = {};       // one for each run
  std::vector<Problem> problems = {};  // one for each build
  Sizes counted = {};                  // the shape whose accesses the race build counts
  bool numbers_of_named = true;
};

class Planner {
 public:
  Planner(const Case& of, const std::vector<Parameter>& parameters)
      : of_(of), parameters_(parameters) {
    const auto is_f16 = [](const Parameter& p) {
      return p.passing == Passing::array && p.element == Element::f16;
    };
    narrow_ = std::any_of(parameters.begin(), parameters.end(), is_f16);
  }

  Plan plan(const std::optional<Sizes>& named, bool counts) {
    plan_.counted = named.value_or(of_.shapes.back());
    plan_.problems.resize(std::size(kBuilds));
    for (size_t s = 0; s < of_.shapes.size(); ++s) {
      for (const InputSet& set : of_.inputs) {
        if (set.fits_f16 || !narrow_) {
          add_small(s, set.name);
        }
      }
    }
    if (named) {
      add_named(*named);
    }
    if (counts) {
      ProblemRun counting = prepare_run(of_, parameters_, {plan_.counted, "normal", 1}, false).run;
      counting.counts = true;
      counting.sampled_blocks =
          named && !fits(*named, kWholeElements, kWholeFlops) ? kSampledBlocks : 0;
      problem(Build::race).runs.push_back(std::move(counting));
    }
    for (Problem& problem : plan_.problems) {
      problem.step_limit = kStepLimit;
    }
    return std::move(plan_);
  }

 private:
  Problem& problem(Build build) { return plan_.problems[static_cast<size_t>(build)]; }

  void add_run(const RunChoice& choice, int schedules, const char* name = nullptr) {
    PreparedRun prepared = prepare_run(of_, parameters_, choice, true);
    prepared.run.schedules = schedules;
    if (name != nullptr) {
      prepared.run.inputs = name;
      prepared.run.goes_on = true;
    }
    problem(Build::plain).runs.push_back(prepared.run);
    plan_.runs.push_back(std::move(prepared));
    plan_.sizes.push_back(choice.sizes);
  }
  void add_small(size_t shape, const std::string& inputs) {
    constexpr size_t kAllInputs = 2;  // the checking builds try so many shapes with all inputs
    const RunChoice choice{of_.shapes[shape], inputs, 1};
    const bool normal = inputs == "normal";
    add_run(choice, normal ? 3 : 2);
    if (normal || shape < kAllInputs) {
      ProblemRun run = plan_.runs.back().run;
      run.schedules = normal ? 2 : 1;
      run.writers = true;
      problem(Build::race).runs.push_back(run);
      run.writers = false;
      run.schedules = 1;
      problem(Build::asan).runs.push_back(std::move(run));
    }
    if (normal) {
      add_run({choice.sizes, inputs, 2}, 1, "second call");
    }
  }
  bool fits(const Sizes& sizes, double most_elements, double most_flops) const {
    double elements = 0;
    for (const CaseParameter& p : of_.parameters) {
      elements += p.extents.empty() ? 0 : static_cast<double>(of_.count(p, sizes));
    }
    return elements <= most_elements && of_.flops(sizes) <= most_flops;
  }
  void add_named(const Sizes& sizes) {
    plan_.numbers_of_named = fits(sizes, kMostElements, kMostFlops);
    if (plan_.numbers_of_named) {
      add_run({sizes, "normal", 1}, 1);
    }
  }

  const Case& of_;
  const std::vector<Parameter>& parameters_;
  bool narrow_ = false;
  Plan plan_;
};

std::string elements_of(const std::vector<Parameter>& parameters) {
  std::set<std::string> names;
  for (const Parameter& p : parameters) {
    if (p.passing == Passing::array) {
      names.insert(name_of(p.element));
    }
  }
  std::string all;
  for (const std::string& name : names) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return all;
}

// Reports the first thing that is wrong, once.
class FirstFinding {
 public:
  FirstFinding(const Case& of, const Plan& plan, const CheckOptions& options)
      : of_(of), plan_(plan), options_(options) {}

  void look(Build build, const Record& record) {
    std::string line;
    if (options_.on_first == nullptr || said_) {
      return;
    }
    if (record.kind == RecordKind::early) {
      WireReader in(record.payload);
      const Found found = read_found(in);
      if (found.gravity <= Gravity::wrong) {
        line = text(name_of(found.gravity), "  ", headline_of(found));
      }
    } else if (record.kind == RecordKind::outputs && build == Build::plain) {
      const std::string numbers =
          wrong_numbers_of(of_, plan_.runs[record.run], plan_.sizes[record.run], record);
      line = numbers.empty() ? "" : text(name_of(Gravity::wrong), "  ", numbers);
    }
    if (!line.empty() && !said_.exchange(true)) {
      options_.on_first(line);
    }
  }

 private:
  const Case& of_;
  const Plan& plan_;
  const CheckOptions& options_;
  std::atomic<bool> said_{false};
};

std::vector<BuildResult> run_builds(const Toolchain& toolchain, const Translation& translation,
                                    const Plan& plan, const Case& of, const CheckOptions& options) {
  const ScratchFolder scratch;
  FirstFinding first(of, plan, options);
  const std::string source = scratch / "kernel.cpp";
  write_text(source, "#include <binade/lab/device/prelude.h>\n" + translation.code);
  std::vector<std::future<BuildResult>> started;
  for (const Build build : kBuilds) {
    started.push_back(std::async(std::launch::async, [&, build] {
      return run_build({toolchain, scratch, source, build,
                        plan.problems[static_cast<size_t>(build)], options.seconds,
                        [&first, build](const Record& record) { first.look(build, record); }});
    }));
  }
  return results_of(started);
}

// The lesson of docs/kernels for the gravest issue, or else for the case.
std::string lesson_for(const Report& report, const Case& of) {
  static const std::map<std::string, const char*, std::less<>> lessons = {
      {"race", "4, \"reductions, races and determinism\""},
      {"missing barrier", "4, \"reductions, races and determinism\""},
      {"missing fence", "4, \"reductions, races and determinism\""},
      {"non-deterministic", "4, \"reductions, races and determinism\""},
      {"out of bounds", "1, \"threads and memory\""},
      {"bad argument", "1, \"threads and memory\""},
      {"host access", "1, \"threads and memory\""},
      {"uncoalesced", "2, \"coalescing\""},
      {"bank conflict", "3, \"shared memory and banks\""}};
  const auto found =
      report.issues.empty() ? lessons.end() : lessons.find(report.issues[0].found.kind);
  return found == lessons.end() ? of.lesson : text("lesson ", found->second);
}

}  // namespace

Report check_kernel(const CheckOptions& options) {
  const Translation translation = translate_file(options.file);
  const Case of = options.own != nullptr ? *options.own : find_case(options.name);
  std::optional<Sizes> named;
  if (!options.shape.empty()) {
    named = of.shape_from(options.shape);
  }
  check_parameters(of, translation, options.file);
  const Toolchain toolchain = find_toolchain(options.compiler, options.root);
  const Plan plan = Planner(of, translation.parameters).plan(named, options.counts);
  std::optional<DeviceCompilers> device;
  if (options.device_code) {
    device.emplace(options.file);
  }
  const std::vector<BuildResult> builds = run_builds(toolchain, translation, plan, of, options);

  Report report;
  report.file = options.file;
  report.case_name = of.name;
  report.elements = elements_of(translation.parameters);
  for (const Sizes& sizes : of.shapes) {
    report.shapes.push_back(of.text_of(sizes));
  }
  for (const InputSet& set : of.inputs) {
    report.inputs.push_back(set.name);
  }
  for (const BuildResult& build : builds) {
    report.builds.push_back(build.times);
  }
  report.output = builds[0].output.substr(0, 2000);
  const Evidence evidence{of, translation, plan.sizes, plan.runs, builds, plan.problems};
  add_findings(report, evidence);
  add_numbers(report, evidence);
  add_compiler_warnings(report, builds[0]);
  if (options.counts) {
    add_counts(report, evidence, plan.counted);
    report.counts.compared = plan.numbers_of_named;
  }
  sort_issues(report);
  report.hint = lesson_for(report, of);
  if (options.on_verdict) {
    options.on_verdict(report);
  }
  if (device) {
    report.device = device->results(report.counts.launches);
  }
  return report;
}

bool Report::right() const {
  return std::none_of(issues.begin(), issues.end(),
                      [](const Issue& i) { return i.found.gravity <= Gravity::wrong; });
}
int Report::exit_status(bool strict) const {
  return right() && (!strict || issues.empty()) ? 0 : 1;
}

}  // namespace binade::lab
