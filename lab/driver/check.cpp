#include <binade/lab/driver/builds_internal.h>

#include <algorithm>
#include <future>

namespace binade::lab {
namespace {

constexpr uint64_t kStepLimit = uint64_t{1} << 22;
constexpr uint64_t kSampledBlocks = 64;
// A named shape with more work than this is counted, but its numbers are not compared.
constexpr double kMostElements = 1 << 22, kMostFlops = 2e8;
// With no more than that it is counted on all of its blocks.
constexpr double kWholeElements = 1 << 17, kWholeFlops = 4e6;

// What the builds are to run. The runs of the plain build have references.
struct Plan {
  std::vector<PreparedRun> runs = {};
  std::vector<Sizes> sizes = {};       // of each of them
  std::vector<Problem> problems = {};  // of each build
  Sizes counted = {};                  // the shape that the race build counts
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
    }
    problem(Build::plain).runs.push_back(prepared.run);
    plan_.runs.push_back(std::move(prepared));
    plan_.sizes.push_back(choice.sizes);
  }
  void add_small(size_t shape, const std::string& inputs) {
    constexpr size_t kAllInputs = 2;  // shapes that the checking builds try with all inputs
    const RunChoice choice{of_.shapes[shape], inputs, 1};
    const bool normal = inputs == "normal";
    add_run(choice, normal ? 3 : 2);
    if (normal || shape < kAllInputs) {
      ProblemRun run = plan_.runs.back().run;
      run.schedules = normal ? 2 : 1;
      problem(Build::race).runs.push_back(run);
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

std::vector<BuildResult> run_builds(const Toolchain& toolchain, const Translation& translation,
                                    const Plan& plan, int seconds) {
  const ScratchFolder scratch;
  const std::string source = scratch / "kernel.cpp";
  write_text(source, "#include <binade/lab/device/prelude.h>\n" + translation.code);
  std::vector<std::future<BuildResult>> started;
  for (const Build build : kBuilds) {
    started.push_back(std::async(std::launch::async, [&, build] {
      return run_build(
          {toolchain, scratch, source, build, plan.problems[static_cast<size_t>(build)], seconds});
    }));
  }
  std::vector<BuildResult> results;
  std::exception_ptr error;
  for (auto& build : started) {
    try {
      results.push_back(build.get());
    } catch (...) {  // the others end first: they use the folder
      error = error == nullptr ? std::current_exception() : error;
    }
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  return results;
}

// The lesson of docs/kernels about the gravest issue, or about the case.
std::string lesson_for(const Report& report, const Case& of) {
  static const std::map<std::string, const char*, std::less<>> lessons = {
      {"race", "4, \"reductions, races and determinism\""},
      {"missing barrier", "4, \"reductions, races and determinism\""},
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
  const Case of = options.own != nullptr ? *options.own : find_case(options.name);
  std::optional<Sizes> named;
  if (!options.shape.empty()) {
    named = of.shape_from(options.shape);
  }
  const Translation translation = translate_file(options.file);
  check_parameters(of, translation, options.file);
  const Toolchain toolchain = find_toolchain(options.compiler, options.root);
  const Plan plan = Planner(of, translation.parameters).plan(named, options.counts);
  const std::vector<BuildResult> builds = run_builds(toolchain, translation, plan, options.seconds);

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
