#include <binade/core/observe/text_table_internal.h>
#include <binade/optim/scaler_state.h>
#include <binade/train/precision/overflow_cause.h>
#include <binade/train/precision/scale_replay.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

namespace binade::train {
namespace {

constexpr double kOverflow = 65520, kLargest = 65504;  // of f16: rounds to inf; the largest number
constexpr double kSmallestNormal = 0x1p-14;
constexpr int kFlushed = -25;  // numbers below 2^-25 round to 0
constexpr int64_t kNear = 25;  // steps to each side from which a forecast draws gradients
constexpr int kDraws = 400;
constexpr double kTail = 0.025;

double number_of(const std::string& policy, const std::string& value) {
  double parsed = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, parsed);
  check(error == std::errc() && at == end && std::isfinite(parsed), "policy ", policy, ": got '",
        value, "', expected a number");
  return parsed;
}

// The reaction of a recorded step to a scale.
enum class Fate : uint8_t { applied, overflow, unknown };

Fate fate_of(const ScalerRecord& r, double scale) {
  const bool scale_is_to_blame =
      r.cause.empty() || r.cause == to_string(OverflowCause::scale_too_high);
  if (r.overflow && (scale >= r.scale || !scale_is_to_blame)) {
    return Fate::overflow;
  }
  if (!r.overflow && scale <= r.scale && !(r.gradients && size_of(r.gradients->stored) > 2)) {
    return Fate::applied;
  }
  if (!r.gradients) {
    return Fate::unknown;
  }
  return r.gradients->largest * scale >= kOverflow && r.gradients->stored != DType::bf16
             ? Fate::overflow
             : Fate::applied;
}

// Stored as 65504 at a smaller scale, a gradient may have been up to 65520 before it was rounded.
bool is_on_the_edge(const ScalerRecord& r, double scale) {
  return r.gradients && r.gradients->stored == DType::f16 && scale > r.scale &&
         r.gradients->largest * scale == kLargest;
}

// The reason why gradients at this scale may differ in bits from the recorded ones, else empty.
std::string changed_bits(const ScalerRecord& r, double scale) {
  if (!r.gradients) {
    return "the sizes of its gradients were not recorded";
  }
  if (r.gradients->stored != DType::f16) {
    return {};
  }
  const double smaller = std::min(scale, r.scale);
  if (r.gradients->smallest * smaller < kSmallestNormal) {
    return text("gradients from ", r.gradients->smallest, " on are subnormal at ", smaller);
  }
  // A gradient that is flushed at a larger scale is flushed at a smaller one, too.
  const int64_t unknown = scale > r.scale ? r.gradients->zeros - r.gradients->chosen_zeros : 0;
  return unknown > 0 ? text(unknown, " of ", r.gradients->elements,
                            " gradients are 0, some of which f16 may have flushed")
                     : "";
}

// Runs a policy over records. `pick` gives the record whose gradients a step has, and `unknown` the
// fate of a step whose sizes were not recorded.
template <class Pick, class Visit>
int64_t run_policy(const ScalePolicy& policy, size_t steps, bool unknown_overflows, Pick pick,
                   Visit visit) {
  optim::ScalerState state(policy.options);
  for (size_t i = 0; i < steps; ++i) {
    const double scale = state.scale();
    const Fate fate = fate_of(pick(i), scale);
    const bool overflow = fate == Fate::overflow || (fate == Fate::unknown && unknown_overflows);
    visit(i, scale, overflow);
    state.update(overflow);
  }
  return state.skipped_steps();
}

// Extends the exact part by a step; returns false at its end.
bool extend_exact(const ScalerRecord& r, double scale, bool overflow, ScaleReplay& result) {
  const auto end = [&](const std::string& reason) {
    result.boundary =
        text("step ", r.step, " has the scale ", scale, ", not ", r.scale, ": ", reason);
    return false;
  };
  if (r.gradients && size_of(r.gradients->stored) > 2) {
    result.boundary = "the run stored its gradients in " + text(r.gradients->stored);
    return false;
  }
  if (scale == r.scale) {
    ++result.exact;
    return true;
  }
  if (fate_of(r, scale) == Fate::unknown || is_on_the_edge(r, scale)) {
    return end("it cannot be told whether the largest gradient fits");
  }
  if (overflow != r.overflow) {
    ++result.exact;
    return end(overflow ? "it is skipped, and was applied" : "it is applied, and was skipped");
  }
  const std::string changed = overflow ? "" : changed_bits(r, scale);
  if (!changed.empty()) {
    return end(changed);
  }
  ++result.exact;
  return true;
}

// The interval of skipped steps: gradients after the exact part come from nearby steps.
void forecast(const std::vector<ScalerRecord>& records, ScaleReplay& result) {
  std::mt19937_64 random(1);
  std::vector<int64_t> counts;
  const auto last = static_cast<int64_t>(records.size()) - 1;
  for (int draw = 0; draw < kDraws; ++draw) {
    counts.push_back(run_policy(
        result.policy, records.size(), false,
        [&](size_t i) -> const ScalerRecord& {
          const auto at = static_cast<int64_t>(i);
          if (at < result.exact) {
            return records[i];
          }
          const int64_t low = std::max(std::max<int64_t>(at - kNear, result.exact), int64_t{0});
          const int64_t high = std::min(at + kNear, last);
          const auto width = static_cast<uint64_t>(high - low + 1);
          return records[static_cast<size_t>(low + static_cast<int64_t>(random() % width))];
        },
        [](size_t, double, bool) {}));
  }
  std::sort(counts.begin(), counts.end());
  const auto at = [&](double share) {
    return counts[static_cast<size_t>(std::lround(share * (kDraws - 1)))];
  };
  result.skipped_low = std::min(result.skipped, at(kTail));
  result.skipped_high = std::max(result.skipped, at(1 - kTail));
}

// The share of the gradients other than 0 that f16 flushes at a scale.
double flushed_share(const GradientSizes& sizes, double scale) {
  const int shift = static_cast<int>(std::floor(std::log2(scale)));
  int64_t flushed = 0, all = 0;
  for (size_t i = 0; i < sizes.exponents.size(); ++i) {
    all += sizes.exponents[i];
    flushed +=
        sizes.least_exponent + static_cast<int>(i) + shift < kFlushed ? sizes.exponents[i] : 0;
  }
  return all > 0 ? static_cast<double>(flushed) / static_cast<double>(all) : 0;
}

void add_flushed(const ScalerRecord& r, double scale, int64_t& seen, ScaleReplay& result) {
  if (r.gradients) {
    ++seen;
    result.flushed += flushed_share(*r.gradients, scale);
    result.flushed_is_bound |= r.gradients->stored == DType::f16;
  }
}

}  // namespace

ScalePolicy parse_scale_policy(const std::string& policy) {
  const size_t colon = policy.find(':');
  const std::string kind = policy.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : policy.substr(colon + 1);
  ScalePolicy result{.name = policy, .options = {}};
  optim::LossScalerOptions& o = result.options;
  if (kind == "static") {
    const double scale = number_of(policy, rest);
    o = optim::fixed_scale(scale);
    (void)optim::ScalerState(o);  // throws for a scale that cannot be
    return result;
  }
  check(kind == "dynamic", "policy ", policy,
        ": expected static:SCALE or dynamic:KEY=VALUE,... with the keys init, growth, backoff, "
        "interval, hysteresis, min and max");
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string item = rest.substr(0, comma);
    rest.erase(0, comma + 1);
    const size_t equal = std::min(item.find('='), item.size());
    const std::string key = item.substr(0, equal);
    const double value = number_of(policy, equal < item.size() ? item.substr(equal + 1) : "");
    const std::pair<const char*, double*> numbers[] = {{"init", &o.init_scale},
                                                       {"growth", &o.growth_factor},
                                                       {"backoff", &o.backoff_factor},
                                                       {"min", &o.min_scale},
                                                       {"max", &o.max_scale}};
    const auto number = std::find_if(std::begin(numbers), std::end(numbers),
                                     [&](const auto& entry) { return key == entry.first; });
    if (number != std::end(numbers)) {
      *number->second = value;
      continue;
    }
    check(key == "interval" || key == "hysteresis", "policy ", policy, ": got the key '", key,
          "', expected init, growth, backoff, interval, hysteresis, min or max");
    check(value == std::floor(value) && std::abs(value) < 0x1p53, "policy ", policy, ": got ", key,
          " = ", value, ", expected a whole number");
    (key == "interval" ? o.growth_interval : o.hysteresis) = static_cast<int64_t>(value);
  }
  o.power_of_two = is_power_of_two(o.init_scale) && is_power_of_two(o.growth_factor) &&
                   is_power_of_two(o.backoff_factor);
  (void)optim::ScalerState(o);
  return result;
}

ScaleReplay replay(const ScalerLog& log, const ScalePolicy& policy) {
  const std::vector<ScalerRecord>& records = log.records;
  check(!records.empty(), "replay: got a log without steps");
  ScaleReplay result{.policy = policy, .scales = {}, .overflows = {}};
  bool exact = true;
  int64_t seen = 0;
  const auto own = [&](size_t i) -> const ScalerRecord& { return records[i]; };
  result.skipped =
      run_policy(policy, records.size(), false, own, [&](size_t i, double scale, bool overflow) {
        result.scales.push_back(scale);
        result.overflows.push_back(overflow);
        result.is_bound |= fate_of(records[i], scale) == Fate::unknown;
        exact = exact && extend_exact(records[i], scale, overflow, result);
        add_flushed(records[i], scale, seen, result);
      });
  result.flushed /= static_cast<double>(std::max<int64_t>(seen, 1));
  result.flushed_is_known = seen > 0;
  result.skipped_low = result.skipped_high = result.skipped;
  if (result.is_bound) {
    const int64_t most = run_policy(policy, records.size(), true, own, [](size_t, double, bool) {});
    result.skipped_low = std::min(result.skipped, most);
    result.skipped_high = std::max(result.skipped, most);
  } else if (!exact) {
    forecast(records, result);
  }
  return result;
}

std::string to_text(const ScalerLog& log, std::span<const ScaleReplay> replays) {
  const std::vector<ScalerRecord>& records = log.records;
  const auto recorded = std::count_if(records.begin(), records.end(),
                                      [](const ScalerRecord& r) { return r.overflow; });
  std::string out = text(records.size(), " steps, ", records.front().step, " to ",
                         records.back().step, ", ", recorded, " skipped; the scale went from ",
                         records.front().scale, " to ", records.back().scale, "\n\n");
  std::vector<std::vector<std::string>> table{
      {"policy", "skipped", "95% interval", "exact steps", "last scale", "flushed to 0"}};
  std::string notes;
  for (const ScaleReplay& r : replays) {
    const bool certain = r.skipped_low == r.skipped_high && r.boundary.empty();
    char flushed[32];
    std::snprintf(flushed, sizeof flushed, "%s%.2g%%", r.flushed_is_bound ? "at least " : "",
                  100 * r.flushed);
    table.push_back(
        {r.policy.name, text(r.skipped),
         certain ? "exact"
                 : text(r.skipped_low, " to ", r.skipped_high, r.is_bound ? " (bounds)" : ""),
         text(r.exact), text(r.scales.back()), r.flushed_is_known ? flushed : "not recorded"});
    if (!r.boundary.empty()) {
      notes += text(r.policy.name, ": exact for ", r.exact, " steps; ", r.boundary, "\n");
    }
  }
  return out + text_table(table) + "\n" + notes;
}

}  // namespace binade::train
