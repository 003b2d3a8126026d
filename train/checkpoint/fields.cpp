#include <binade/core/observe/warning.h>
#include <binade/data/loader.h>
#include <binade/train/checkpoint/fields_internal.h>

#include <charconv>
#include <cmath>

namespace binade::train::manifest {
namespace {

constexpr const char *kSetting = "setting.", *kStated = "stated.";

// The settings that the fields have under the prefix with another value: "NAME = VALUE, ..." now
// and before; empty if there are none.
struct Differences {
  std::string now, before;
};
Differences differences(const Fields& settings, const Fields& fields, const std::string& prefix) {
  Differences all;
  for (const auto& [name, value] : settings) {
    const auto old = fields.find(prefix + name);
    if (old != fields.end() && old->second != value) {
      all.now += text(all.now.empty() ? "" : ", ", name, " = ", value);
      all.before += text(all.before.empty() ? "" : ", ", name, " = ", old->second);
    }
  }
  return all;
}

template <class T>
std::string text_of(T value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

template <class T>
T number(const Fields& fields, const std::string& name, T low, T high) {
  T value{};
  const std::string& text = field(fields, name);
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(status == std::errc() && end == text.data() + text.size(), "checkpoint: got '", text,
        "' in field '", name, "', expected a number");
  check(!(value < low || value > high), "checkpoint: got ", value, " in field '", name,
        "', expected ", low, " to ", high);
  return value;
}

}  // namespace

std::string shortest(double value) { return text_of(value); }
std::string shortest(int64_t value) { return text_of(value); }
std::string shortest(uint64_t value) { return text_of(value); }

const std::string& field(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  check(found != fields.end(), "checkpoint: got no field '", name, "' in the manifest");
  return found->second;
}

double real(const Fields& fields, const std::string& name, double low, double high) {
  return number<double>(fields, name, low, high);
}

double real(const Fields& fields, const std::string& name) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return number<double>(fields, name, -kInfinity, kInfinity);
}

int64_t count(const Fields& fields, const std::string& name, int64_t low) {
  return number<int64_t>(fields, name, low, kMostCounted);
}

int64_t integer(const Fields& fields, const std::string& name) {
  return number<int64_t>(fields, name, std::numeric_limits<int64_t>::min(),
                         std::numeric_limits<int64_t>::max());
}

uint64_t natural(const Fields& fields, const std::string& name) {
  return number<uint64_t>(fields, name, 0, std::numeric_limits<uint64_t>::max());
}

void add_random(Fields& fields, const std::string& prefix, const Generator& random) {
  fields[prefix + "seed"] = shortest(random.seed);
  fields[prefix + "offset"] = shortest(random.offset);
}

Generator random_of(const Fields& fields, const std::string& prefix) {
  return {natural(fields, prefix + "seed"), natural(fields, prefix + "offset")};
}

void add_scalars(Fields& fields, const std::string& prefix, const optim::NamedScalars& scalars) {
  for (const auto& [name, value] : scalars) {
    fields[prefix + name] = shortest(value);
  }
}

optim::NamedScalars scalars_of(const Fields& fields, const std::string& prefix) {
  optim::NamedScalars scalars;
  for (auto at = fields.lower_bound(prefix); at != fields.end() && at->first.starts_with(prefix);
       ++at) {
    const std::string name = at->first.substr(prefix.size());
    const double value = real(fields, at->first);
    const double most = name == "best" ? std::numeric_limits<double>::max() : double{kMostCounted};
    check(std::abs(value) <= most, "checkpoint: got ", value, " in field '", at->first,
          "', expected a number up to ", most);
    scalars[name] = value;
  }
  return scalars;
}

Fields with_version(const Fields& settings) {
  Fields all = settings;
  all.emplace("Binade version", BINADE_VERSION);
  return all;
}

void add_settings(Fields& fields, const Fields& settings) {
  for (const auto& [name, value] : settings) {
    fields[kSetting + name] = value;
  }
}

void check_settings(const Fields& settings, const Checkpoint& checkpoint, bool force) {
  const auto [now, before] = differences(settings, checkpoint.fields, kSetting);
  if (now.empty()) {
    return;
  }
  const std::string differs =
      text("resume: got ", now, ", but ", checkpoint.path, " was trained with ", before);
  check(force, differs,
        "; resume with the same settings and data, use another run directory, or resume all the "
        "same with force (--force)");
  warn(differs);
}

void add_stated(Fields& fields, const Fields& stated) {
  for (const auto& [name, value] : stated) {
    fields[kStated + name] = value;
  }
}

void tell_stated(const Fields& stated, const Fields& before, const std::string& path) {
  const auto [now, old] = differences(stated, before, kStated);
  if (!now.empty()) {
    warn(text("resume: goes on with ", now, "; ", path, " was trained with ", old));
  }
}

bool has_other_setting(const Fields& fields, const std::string& name, const Fields& settings) {
  const auto now = settings.find(name), before = fields.find(kSetting + name);
  return now != settings.end() && before != fields.end() && now->second != before->second;
}

std::string order_of(const data::Loader& loader) {
  const data::LoaderOptions& o = loader.options();
  const char* kind = o.sampler   ? "drawn by a sampler"
                     : o.budget  ? "in batches of a budget"
                     : o.shuffle ? "shuffled"
                                 : "not shuffled";
  return text(kind, " with seed ", o.seed);
}

void refuse_other_data(const std::string& difference, const std::string& what, bool force) {
  const std::string got =
      text("resume: got ", difference, " in the ", what, ", expected the data of the run so far");
  check(force, got,
        "; resume with it, use another run directory, or resume all the same with force (--force)");
  warn(got);
}

void tell_other_batch(const StepBatches& now, const StepBatches& before, bool force, bool tells) {
  const auto words = [](const StepBatches& b) {
    return text(b.samples(), " samples per step (accumulate ", b.accumulate, ", ", b.global_batch,
                " per batch of all ranks)");
  };
  const std::string got =
      text("resume: got ", words(now), ", but the run so far had ", words(before));
  check(force || now.samples() == before.samples(), got,
        "; resume with the same number of samples per step, use another run directory, or resume "
        "all the same with force (--force)");
  if (tells) {
    warn(got);
  }
}

void refuse_other_order(const std::string& now, const std::string& before, bool force) {
  const std::string got = text("resume: got training data ", now,
                               " in the middle of an epoch that was begun with them ", before);
  check(force, got,
        "; give the loader its options of before, or resume all the same with force (--force)");
  warn(got);
}

}  // namespace binade::train::manifest
