#include <binade/core/io/hash64.h>
#include <binade/data/dataset.h>
#include <binade/data/identity.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>

#include <atomic>
#include <charconv>

namespace binade::data {
namespace {

uint64_t hash_of(uint64_t a, uint64_t b) {
  Hash64 hash;
  hash.add(a);
  hash.add(b);
  return hash.value();
}

uint64_t known(uint64_t hash) { return hash == 0 ? 1 : hash; }  // 0 stands for "not known"

}  // namespace

// Adds up hashes, so threads may add in any order. A sum of hashes of (index, id) depends on the
// order of the samples; a sum of hashes of the ids alone does not.
DataIdentity identify(const Dataset& dataset) {
  std::atomic<uint64_t> ids{0}, any_order{0}, labels{0};
  std::atomic<bool> has_labels{true};
  constexpr int64_t kGrain = 4096;
  kernels::parallel_for(dataset.size(), kGrain, [&](int64_t begin, int64_t end) {
    uint64_t own_ids = 0, own_any_order = 0, own_labels = 0;
    bool all_labels = true;
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t id = dataset.id(i);
      own_ids += hash_of(static_cast<uint64_t>(i), id);
      own_any_order += hash_of(0, id);
      const std::optional<int64_t> label = dataset.label(i);
      all_labels = all_labels && label.has_value();
      own_labels += hash_of(static_cast<uint64_t>(i), static_cast<uint64_t>(label.value_or(0)));
    }
    ids += own_ids;
    any_order += own_any_order;
    labels += own_labels;
    if (!all_labels) {
      has_labels = false;
    }
  });
  return {dataset.size(), known(ids), known(any_order), has_labels ? known(labels) : 0};
}

std::string to_string(const DataIdentity& identity) {
  return text(identity.samples, " ", Hash64::hex(identity.ids), " ",
              Hash64::hex(identity.ids_in_any_order), " ", Hash64::hex(identity.labels));
}

DataIdentity parse_identity(const std::string& text) {
  DataIdentity identity;
  const char *at = text.data(), *end = at + text.size();
  auto result = std::from_chars(at, end, identity.samples);
  for (uint64_t* hash : {&identity.ids, &identity.ids_in_any_order, &identity.labels}) {
    check(result.ec == std::errc() && result.ptr != end, "data identity: got '", text,
          "', expected a count and three hashes");
    result = std::from_chars(result.ptr + 1, end, *hash, 16);
  }
  check(to_string(identity) == text, "data identity: got '", text,
        "', expected a count and three hashes");
  return identity;
}

std::string difference(const DataIdentity& now, const DataIdentity& before) {
  const auto differ = [](uint64_t a, uint64_t b) { return a != b && a != 0 && b != 0; };
  if (now.samples != before.samples && now.samples >= 0 && before.samples >= 0) {
    return text(now.samples, " samples instead of ", before.samples);
  }
  if (differ(now.ids_in_any_order, before.ids_in_any_order)) {
    return "other samples";
  }
  if (differ(now.ids, before.ids)) {
    return "the same samples in another order";
  }
  return differ(now.labels, before.labels) ? "other labels" : "";
}

}  // namespace binade::data
