#include <bench/bench_diff.h>
#include <bench/served_build.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

namespace binade::bench {
namespace {

namespace files = std::filesystem;

constexpr int kUsualRounds = 24;

std::string percent(double value, const char* format) {
  char shown[64];
  std::snprintf(shown, sizeof shown, format, 100 * value);
  return shown;
}

// Takes the samples of one round, of both programs in turn, and returns their medians.
std::pair<double, double> one_round(ServedBuild& before, ServedBuild& after,
                                    const BuildDiff& builds, const CaseSettings& settings) {
  before.prepare(settings);
  after.prepare(settings);
  std::vector<double> a, b;
  for (int i = 0; i < builds.samples; ++i) {
    a.push_back(before.sample());
    b.push_back(after.sample());
  }
  before.drop();
  after.drop();
  return {median(a), median(b)};
}

}  // namespace

void decide(std::vector<CaseDiff>& cases, const DiffSettings& settings) {
  std::vector<CaseDiff*> order;
  for (CaseDiff& one : cases) {
    order.push_back(&one);
  }
  std::ranges::sort(order, [](const CaseDiff* a, const CaseDiff* b) { return a->p < b->p; });
  bool sure = true;
  for (size_t i = 0; i < order.size(); ++i) {
    sure = sure && order[i]->p <= settings.level / static_cast<double>(order.size() - i);
    order[i]->changed = sure && std::fabs(order[i]->change) >= settings.minimum;
  }
}

CaseDiff diff_of_pairs(const std::string& name, const std::vector<double>& before,
                       const std::vector<double>& after) {
  check(before.size() == after.size() && !before.empty(), name, ": got ", before.size(), " and ",
        after.size(), " times, expected pairs");
  std::vector<double> ratios;
  for (size_t i = 0; i < before.size(); ++i) {
    ratios.push_back(std::log(after[i] / before[i]));
  }
  return {.name = name,
          .before = median(before),
          .after = median(after),
          .change = std::exp(hodges_lehmann(ratios)) - 1,
          .p = wilcoxon_signed_rank(ratios),
          .pairs = static_cast<int>(before.size())};
}

CaseDiff diff_of_samples(const CaseRecord& before, const CaseRecord& after) {
  std::vector<double> a, b;
  std::ranges::transform(before.samples, std::back_inserter(a),
                         [](double t) { return std::log(t); });
  std::ranges::transform(after.samples, std::back_inserter(b),
                         [](double t) { return std::log(t); });
  constexpr size_t kMost = 2000;  // samples per file: their pairwise differences are sorted
  a.resize(std::min(a.size(), kMost));
  b.resize(std::min(b.size(), kMost));
  return {.name = case_name(before.settings),
          .before = median(before.samples),
          .after = median(after.samples),
          .change = std::exp(hodges_lehmann_shift(a, b)) - 1,
          .p = rank_sum(a, b)};
}

std::string differing_facts(const BenchRecord& before, const BenchRecord& after) {
  const MachineFacts &a = before.machine, &b = after.machine;
  const auto count = [](int n) { return n > 0 ? std::to_string(n) : std::string(); };
  const struct {
    const char* name;
    std::string old_value, new_value;
  } facts[] = {
      {"caches", before.cache, after.cache},     {"build", a.build, b.build},
      {"compiler", a.compiler, b.compiler},      {"cpu", a.cpu, b.cpu},
      {"cores", count(a.cores), count(b.cores)}, {"threads", count(a.threads), count(b.threads)},
      {"instruction set", a.isa, b.isa},         {"device", a.device, b.device},
      {"governor", a.governor, b.governor},      {"kernel of the system", a.kernel, b.kernel}};
  std::string differ;
  for (const auto& fact : facts) {
    if (!fact.old_value.empty() && !fact.new_value.empty() && fact.old_value != fact.new_value) {
      differ +=
          text(differ.empty() ? "" : "; ", fact.name, ": ", fact.old_value, ", ", fact.new_value);
    }
  }
  return differ;
}

std::vector<CaseDiff> diff_of_records(const BenchRecord& before, const BenchRecord& after,
                                      const DiffSettings& settings) {
  const auto is_warm = [](const BenchRecord& record) { return record.cache.starts_with("warm"); };
  check(before.cache.empty() || after.cache.empty() || is_warm(before) == is_warm(after),
        "bench diff: got a file of ",
        is_warm(before) ? "warm and one of cold" : "cold and one of warm",
        " caches, expected both alike: take both with --warm or both without");
  std::vector<std::pair<const CaseRecord*, const CaseRecord*>> common;
  for (const CaseRecord& one : before.cases) {
    const auto other = std::ranges::find_if(after.cases, [&](const CaseRecord& candidate) {
      return case_name(candidate.settings) == case_name(one.settings);
    });
    if (other != after.cases.end()) {
      common.emplace_back(&one, &*other);
    }
  }
  check(!common.empty(), "bench diff: the files have no case in common");
  std::vector<CaseDiff> diffs;
  const double level = settings.level / static_cast<double>(common.size());
  for (const auto& [one, other] : common) {
    const size_t a = one->samples.size(), b = other->samples.size();
    check(least_rank_sum(a, b) <= level, "bench diff: ", case_name(one->settings), ": got ", a,
          " and ", b, " samples, which cannot tell a change from noise among ", common.size(),
          " cases; take more with --samples");
    diffs.push_back(diff_of_samples(*one, *other));
  }
  decide(diffs, settings);
  return diffs;
}

std::string line_of(const CaseDiff& d) {
  char times[128];
  std::snprintf(times, sizeof times, ": %.2f us, %.2f us, ", d.before * 1e6, d.after * 1e6);
  const char* verdict = !d.changed ? "no change" : d.change > 0 ? "SLOWER" : "FASTER";
  char chance[64];
  std::snprintf(chance, sizeof chance, ", p = %.2g", d.p);
  return d.name + times + percent(d.change, "%+.1f%%") + ": " + verdict + chance +
         (d.pairs > 0 ? text(" of ", d.pairs, " pairs") : " unpaired");
}

std::vector<CaseDiff> diff_of_builds(const BuildDiff& builds, const DiffSettings& settings) {
  const auto cases = static_cast<double>(builds.cases.size());
  const int needed = pairs_for_level(settings.level / cases);
  check(builds.rounds == 0 || builds.rounds >= needed, "bench diff: got ", builds.rounds,
        " rounds, which cannot tell a change from noise among ", builds.cases.size(),
        " cases; expected at least ", needed);
  const int rounds = builds.rounds > 0 ? builds.rounds : std::max(kUsualRounds, needed + 2);
  std::vector<std::vector<double>> before(builds.cases.size()), after(builds.cases.size());
  for (int round = 0; round < rounds; ++round) {
    const ServedBuild::Options options{builds.device, builds.threads, 1};
    ServedBuild::Options planted = options;
    planted.plant = builds.plant;
    ServedBuild a(builds.before, options), b(builds.after, planted);
    for (size_t i = 0; i < builds.cases.size(); ++i) {
      // Which program is timed first alternates; in odd rounds it is the second.
      const bool swapped = round % 2 == 1;
      const auto [first, second] = swapped ? one_round(b, a, builds, builds.cases[i])
                                           : one_round(a, b, builds, builds.cases[i]);
      before[i].push_back(swapped ? second : first);
      after[i].push_back(swapped ? first : second);
    }
  }
  std::vector<CaseDiff> diffs;
  for (size_t i = 0; i < builds.cases.size(); ++i) {
    diffs.push_back(diff_of_pairs(case_name(builds.cases[i]), before[i], after[i]));
  }
  decide(diffs, settings);
  return diffs;
}

std::string bench_program(const std::string& path) {
  std::error_code error;
  if (files::is_regular_file(path, error)) {
    return path;
  }
  for (const char* name : {"bin/binade", "bin/kernel_bench"}) {
    const files::path program = files::path(path) / name;
    if (files::is_regular_file(program, error)) {
      return program.string();
    }
  }
  fail("bench diff: got ", path,
       ", expected a build folder or an installation with bin/binade or "
       "bin/kernel_bench, one of these programs, or a file of binade bench --json");
}

}  // namespace binade::bench
