// The provider "auto" on a device (kernels/base/tuning.h): chooses among implementations of one
// operation by rule and by timing, and remembers the choice.
#pragma once
#include <binade/kernels/base/device.h>
#include <binade/kernels/base/provider.h>
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/cuda/recent_cache_internal.h>

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::kernels {

struct Candidate {
  std::string_view name;  // of the provider
  KernelVariant variant;
  std::string hopeless;  // why it is not worth a timing; "" if it is
};

// A call that needs a choice. The functions are called only if the problem is new.
struct ProviderCall {
  Device device;
  std::span<const int64_t> key;                        // all that the choice depends on
  std::function<std::string()> name;                   // of the problem, in the table
  std::function<std::vector<Candidate>()> candidates;  // the first is never hopeless
  // Starts a variant on the current stream, or returns false and says why it cannot. Must be
  // repeatable.
  std::function<bool(KernelVariant variant, std::string& why)> run;
};

struct ProviderChoice {
  KernelVariant variant;
  TuningLine line;  // keeps it in the table
};

// The choices of one operation, looked up by numbers: a call of a known problem makes no text and
// asks neither the table nor the device. Those of the last plan_limit() problems are kept.
class ProviderChoices {
 public:
  // The first candidate during a capture, if the problem is new.
  KernelVariant choose(const ProviderCall& call);

 private:
  using Key = std::vector<int64_t>;
  // REQUIRES: the lock is held.
  void forget_old_table();
  void keep(const Key& key, const ProviderChoice& choice);

  std::mutex mutex_;
  uint64_t version_ = 0;  // of the table that the choices come from
  RecentCache<Key, ProviderChoice> known_;
};

int64_t provider_choices_kept();  // by all operations

}  // namespace binade::kernels
