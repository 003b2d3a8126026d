#include <binade/dist/collective/share.h>
#include <binade/train/ranks_internal.h>

#include <algorithm>

namespace binade::train {

void Ranks::check_loader(const data::Loader& loader, const char* what, bool equal_shards) const {
  check(loader.batches_per_epoch() >= 0, "trainer: got a ", what,
        " loader of a dataset of unknown length, expected one whose size() is known");
  if (alone()) {
    return;
  }
  const data::LoaderOptions& o = loader.options();
  check(o.shard == rank() && o.shard_count == count(), "trainer: got a ", what, " loader of shard ",
        o.shard, " of ", o.shard_count, " on rank ", rank(), " of ", count(),
        ", expected the rank's own; set shard and shard_count of its options");
  check(!equal_shards || o.uneven_shards != data::UnevenShards::keep, "trainer: got a ", what,
        " loader with UnevenShards::keep, expected pad or drop, so that every rank takes the same "
        "steps");
  check(!equal_shards || o.bad_file != data::BadFilePolicy::skip, "trainer: got a ", what,
        " loader with BadFilePolicy::skip, whose batches may differ in size between ranks; use "
        "replace or fail");
}

std::vector<double> Ranks::sum(const std::vector<double>& numbers) const {
  return group_ ? dist::reduce_numbers(*group_, numbers) : numbers;
}

double Ranks::largest(double number) const { return largest(std::vector{number})[0]; }

std::vector<double> Ranks::largest(const std::vector<double>& numbers) const {
  return group_ ? dist::reduce_numbers(*group_, numbers, dist::ReduceOp::max) : numbers;
}

std::vector<std::string> Ranks::all_names(const std::vector<std::string>& own) const {
  std::string joined;
  for (const std::string& name : own) {
    joined += name + "\n";
  }
  std::vector<std::string> names;
  for (int rank = 0; rank < count(); ++rank) {
    const std::string text = group_ ? dist::broadcast_text(*group_, joined, rank) : joined;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string name = text.substr(at, end - at);
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
      at = end + 1;
    }
  }
  return names;
}

void Ranks::on_root(const std::function<void()>& f) const {
  if (alone()) {
    f();
    return;
  }
  if (!is_root()) {
    const std::string error = share(std::string());
    check(error.empty(), error);
    return;
  }
  try {
    f();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    share(what.empty() ? "rank 0 failed without a reason" : what);
    throw;
  }
  share(std::string());
}

std::string Ranks::share(const std::string& text) const {
  return group_ ? dist::broadcast_text(*group_, text) : text;
}

std::map<std::string, std::string> Ranks::share(
    const std::map<std::string, std::string>& fields) const {
  if (!group_) {
    return fields;
  }
  std::string all;  // name, zero byte, value, zero byte, ...
  for (const auto& [name, value] : fields) {
    all.append(name).append(1, '\0').append(value).append(1, '\0');
  }
  all = dist::broadcast_text(*group_, all);
  std::map<std::string, std::string> out;
  for (size_t at = 0; at < all.size();) {
    const std::string name = all.c_str() + at;
    const std::string value = all.c_str() + at + name.size() + 1;
    at += name.size() + value.size() + 2;
    out[name] = value;
  }
  return out;
}

NamedTensors Ranks::share(const NamedTensors& tensors) const {
  return group_ ? dist::broadcast_tensors(*group_, tensors) : tensors;
}

std::string Ranks::prefix(int rank) { return text("rank", rank, "/"); }

NamedTensors Ranks::collect(const NamedTensors& own) const {
  NamedTensors all;
  for (int from = 0; from < count(); ++from) {
    for (auto& [name, tensor] : group_ ? dist::broadcast_tensors(*group_, own, from) : own) {
      all.emplace_back(prefix(from) + name, tensor);
    }
  }
  return all;
}

void Ranks::average(const NamedTensors& tensors) const {
  for (const auto& [name, tensor] : tensors) {
    if (group_) {
      group_->all_reduce(tensor, dist::ReduceOp::avg);
    }
  }
}

}  // namespace binade::train
