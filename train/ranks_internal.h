// Ranks: lets the processes of a run agree on sums of metrics, decisions and checkpoints. A run of
// one process does not communicate.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/data/loader.h>
#include <binade/dist/collective/communicator.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace binade::train {

class Ranks {
 public:
  // With no group, or a group of one rank, the process is alone. REQUIRES: the group outlives this.
  explicit Ranks(dist::Communicator* group)
      : group_(group && group->size() > 1 ? group : nullptr) {}

  bool alone() const { return group_ == nullptr; }
  int rank() const { return group_ ? group_->rank() : 0; }
  int count() const { return group_ ? group_->size() : 1; }
  bool is_root() const { return rank() == 0; }
  dist::Communicator* group() const { return group_; }  // null if alone

  // Throws if the loader does not read this rank's shard. `equal_shards`: every rank takes the same
  // steps.
  void check_loader(const data::Loader& loader, const char* what, bool equal_shards) const;

  // The functions from here on are collective. All give every rank the same bits.
  std::vector<double> sum(const std::vector<double>& numbers) const;
  double largest(double number) const;
  std::vector<double> largest(const std::vector<double>& numbers) const;
  // The names of all ranks, each once: those of rank 0 first. They have no line breaks.
  std::vector<std::string> all_names(const std::vector<std::string>& own) const;
  // Calls f on rank 0. If f throws, every rank throws: other ranks throw an Error with the same
  // text.
  void on_root(const std::function<void()>& f) const;
  // Returns the text of rank 0.
  std::string share(const std::string& text) const;
  std::map<std::string, std::string> share(const std::map<std::string, std::string>& fields) const;
  NamedTensors share(const NamedTensors& tensors) const;
  // The tensors of all ranks, which may have different ones: the names of each begin with
  // prefix(rank).
  NamedTensors collect(const NamedTensors& own) const;
  static std::string prefix(int rank);
  // Replaces every tensor, in place, by its mean over the ranks. Floating dtypes.
  void average(const NamedTensors& tensors) const;

 private:
  dist::Communicator* group_;
};

}  // namespace binade::train
