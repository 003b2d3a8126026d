// RunPlots: the curves of runs as plots. Internal to train.
#pragma once
#include <binade/train/report/plot.h>
#include <binade/train/report/run_record.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace binade::train {

class RunPlots {
 public:
  // REQUIRES: `runs` outlives it. Curves have at most about 4 * `buckets` points, each function
  // returns at most `most` plots.
  RunPlots(const std::vector<RunRecord>& runs, size_t buckets, size_t most)
      : runs_(runs), buckets_(buckets), most_(most) {}

  std::vector<page::Plot> results() const;    // losses and metrics: train, validation, test
  std::vector<page::Plot> optimizer() const;  // rates, scales with skipped steps, norms
  std::vector<page::Plot> speed() const;      // samples per second, waiting for data
  std::vector<page::Plot> memory() const;     // bytes, and of a single run by module

 private:
  enum class From { steps, epochs, timeline, memory };
  static constexpr From kFinestFirst[] = {From::steps, From::timeline, From::epochs};
  page::Plot plot(const std::string& title) const;
  void add(page::Plot& plot, From from, const std::string& key, const std::string& name) const;
  void add_curve(page::Plot& plot, const RunRecord& run, const Curve& curve,
                 const std::string& name) const;
  void add_skips(page::Plot& plot, const std::string& scale_key) const;
  void keep(std::vector<page::Plot>& plots, page::Plot plot) const;
  std::set<std::string> keys(From from) const;
  static const Curve* finest(const RunRecord& run, const std::string& key);
  static const Curves& curves(const RunRecord& run, From from);

  const std::vector<RunRecord>& runs_;
  size_t buckets_, most_;
};

}  // namespace binade::train
