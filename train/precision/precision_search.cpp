#include <binade/core/autograd/autograd.h>
#include <binade/core/io/json_text.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/nn/stored_as.h>
#include <binade/train/precision/precision_search.h>
#include <binade/train/precision/shadow_report.h>
#include <binade/train/precision/step_undo_internal.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace binade::train {
namespace {

using ModuleSet = std::vector<size_t>;  // numbers of candidates, ascending

class PrecisionSearch {
 public:
  PrecisionSearch(const StepToDiagnose& step, const SearchOptions& options)
      : step_(step), options_(options), base_(step.model.precision().value_or(Precision::full())) {
    check(base_.policy != Precision::kFull,
          "find_f32: got a model in full precision, expected one with a policy, such as "
          "Precision::mixed(DType::f16)");
    check(!step.batches.empty() && std::isfinite(options.loss_difference) &&
              options.loss_difference > 0,
          "find_f32: got ", step.batches.size(), " batches and a loss difference of ",
          options.loss_difference, ", expected at least one, and a number above 0");
  }

  FoundPrecision run() {
    look();
    FoundPrecision found{.wanted = options_.loss_difference};
    found.batches = static_cast<int64_t>(step_.batches.size());
    found.none = tried({});
    ModuleSet all(names_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = i;
    }
    found.all = tried(all);
    const ModuleSet chosen = pruned(grown());
    found.chosen = tried(chosen);
    found.reached = found.chosen.measured <= options_.loss_difference;
    found.is_fewest = found.reached && no_smaller_set(chosen);
    found.random = random_sets(chosen);
    for (size_t i = 0; i < names_.size(); ++i) {
      found.budgets.push_back({.modules = {names_[i]}, .predicted = alone(i), .measured = 0});
    }
    std::stable_sort(found.budgets.begin(), found.budgets.end(),
                     [](const auto& a, const auto& b) { return a.predicted > b.predicted; });
    found.precision = with(chosen);
    return found;
  }

 private:
  // Runs the shadow of each batch: finds the modules, and the error that each adds to each loss.
  void look() {
    for (const StepBatch& micro : step_.batches) {
      StepToDiagnose one = step_;
      one.batches = {micro};
      const ShadowStep shadow_step = shadow(one);
      exact_.push_back(shadow_step.exact);
      std::vector<double>& adds = adds_.emplace_back(names_.size());
      for (const ShadowModule& module : modules_of(shadow_step)) {
        if (module.module.empty()) {  // no rule names the ops of the model itself
          rest_.resize(adds_.size());
          rest_.back() += module.budget;
          continue;
        }
        const auto at = std::find(names_.begin(), names_.end(), module.module);
        const auto index = static_cast<size_t>(at - names_.begin());
        if (at == names_.end()) {
          names_.push_back(module.module);
        }
        adds.resize(names_.size());
        adds[index] += module.budget;
      }
      rest_.resize(adds_.size());
    }
    for (std::vector<double>& adds : adds_) {
      adds.resize(names_.size());
    }
  }

  double alone(size_t candidate) const {
    double squares = 0;
    for (const std::vector<double>& adds : adds_) {
      squares += adds[candidate] * adds[candidate];
    }
    return std::sqrt(squares / static_cast<double>(adds_.size()));
  }

  // A rule for a module holds for those below it, too.
  bool covers(const ModuleSet& set, size_t candidate) const {
    return std::any_of(set.begin(), set.end(),
                       [&](size_t i) { return matches_module(names_[i], names_[candidate]); });
  }

  double predicted(const ModuleSet& set) const {
    double squares = 0;
    for (size_t b = 0; b < adds_.size(); ++b) {
      double sum = rest_[b];
      for (size_t i = 0; i < names_.size(); ++i) {
        sum += covers(set, i) ? 0 : adds_[b][i];
      }
      squares += sum * sum;
    }
    return std::sqrt(squares / static_cast<double>(adds_.size()));
  }

  Precision with(const ModuleSet& set) const {
    std::vector<PrecisionRule> rules;
    for (const size_t i : set) {
      rules.push_back({.module = names_[i], .dtype = DType::f32});
    }
    return base_.with(rules);
  }

  // The differences of the losses from those of f64, with these modules in f32.
  double measured(const ModuleSet& set) const {
    double squares = 0;
    for (size_t b = 0; b < step_.batches.size(); ++b) {
      const StepBatch& micro = step_.batches[b];
      const StepUndo undo(step_);
      const nn::StoredAs stored(step_.model, with(set));
      const NoGradGuard guard;
      generator() = micro.random;
      const double loss = step_.step(step_.model, micro.batch).loss.item();
      squares += std::isfinite(loss) ? (loss - exact_[b]) * (loss - exact_[b])
                                     : std::numeric_limits<double>::infinity();
    }
    return std::sqrt(squares / static_cast<double>(step_.batches.size()));
  }

  TriedModules tried(const ModuleSet& set) const {
    TriedModules result{.modules = {}, .predicted = predicted(set), .measured = measured(set)};
    for (const size_t i : set) {
      result.modules.push_back(names_[i]);
    }
    return result;
  }

  // Adds the module whose removal from the budget leaves the smallest difference, until the
  // measured difference is small enough; else returns the set with the smallest one.
  ModuleSet grown() const {
    ModuleSet set, best;
    double least = measured(set);
    while (least > options_.loss_difference && set.size() < names_.size()) {
      ModuleSet next;
      double rest = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < names_.size(); ++i) {
        if (covers(set, i)) {
          continue;
        }
        ModuleSet larger = set;
        larger.insert(std::upper_bound(larger.begin(), larger.end(), i), i);
        const double now = predicted(larger);
        if (next.empty() || now < rest) {
          rest = now;
          next = std::move(larger);
        }
      }
      if (next.empty()) {
        break;
      }
      set = std::move(next);
      const double difference = measured(set);
      if (difference < least) {
        least = difference;
        best = set;
      }
    }
    return best;
  }

  // Removes modules that the measurement shows to be unnecessary, those that add least first.
  ModuleSet pruned(ModuleSet set) const {
    ModuleSet order = set;
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return alone(a) < alone(b); });
    for (const size_t i : order) {
      ModuleSet smaller = set;
      std::erase(smaller, i);
      if (measured(smaller) <= options_.loss_difference) {
        set = std::move(smaller);
      }
    }
    return set;
  }

  // True if all sets with one module fewer were measured and none is enough.
  bool no_smaller_set(const ModuleSet& chosen) const {
    if (chosen.empty()) {
      return true;
    }
    std::vector<bool> picked(names_.size());
    std::fill(picked.begin(), picked.begin() + static_cast<std::ptrdiff_t>(chosen.size() - 1),
              true);
    int64_t count = 0;
    do {
      if (++count > options_.most_sets) {
        return false;
      }
      ModuleSet set;
      for (size_t i = 0; i < picked.size(); ++i) {
        if (picked[i]) {
          set.push_back(i);
        }
      }
      if (measured(set) <= options_.loss_difference) {
        return false;
      }
    } while (std::prev_permutation(picked.begin(), picked.end()));
    return true;
  }

  std::vector<TriedModules> random_sets(const ModuleSet& chosen) const {
    std::vector<TriedModules> sets;
    std::mt19937_64 random(options_.seed);
    const bool others = !chosen.empty() && chosen.size() < names_.size();
    for (int i = 0; others && i < options_.random_sets; ++i) {
      ModuleSet pool(names_.size()), set;
      for (size_t k = 0; k < pool.size(); ++k) {
        pool[k] = k;
      }
      do {
        set.clear();
        std::shuffle(pool.begin(), pool.end(), random);
        set.assign(pool.begin(), pool.begin() + static_cast<std::ptrdiff_t>(chosen.size()));
        std::sort(set.begin(), set.end());
      } while (set == chosen);
      sets.push_back(tried(set));
    }
    return sets;
  }

  const StepToDiagnose& step_;
  const SearchOptions options_;
  const Precision base_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> adds_;  // [batch][candidate]
  std::vector<double> rest_, exact_;       // per batch: the error beyond all rules; the f64 loss
};

std::string names_text(const TriedModules& tried) {
  std::string out;
  for (const std::string& name : tried.modules) {
    out += (out.empty() ? "" : ", ") + name;
  }
  return out.empty() ? "none" : out;
}

std::string brief_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

}  // namespace

FoundPrecision find_f32(const StepToDiagnose& step, const SearchOptions& options) {
  return PrecisionSearch(step, options).run();
}

std::string to_text(const FoundPrecision& f) {
  std::vector<std::vector<std::string>> table{
      {"in f32", "modules", "by the budget", "measured", "wanted"}};
  const auto add = [&](const char* what, const TriedModules& tried, const std::string& names) {
    table.push_back({what, names, brief_text(tried.predicted), brief_text(tried.measured),
                     tried.measured <= f.wanted ? "yes" : "no"});
  };
  add("none", f.none, "");
  add("chosen", f.chosen, names_text(f.chosen));
  for (const TriedModules& random : f.random) {
    add("random", random, names_text(random));
  }
  add("every module", f.all, "");
  std::string out = text("differences of the loss from f64, root mean square over ", f.batches,
                         " batches; wanted: at most ", f.wanted, "\n", text_table(table));
  if (!f.reached) {
    out +=
        "no set of modules keeps the difference: what is left comes from ops of the model "
        "itself, of the loss, or from f32\n";
  } else {
    out += text(f.chosen.modules.size(), " modules in f32 keep it",
                f.is_fewest ? "; no set of one fewer does, all were measured\n" : "\n");
  }
  return out;
}

std::string to_rules(const FoundPrecision& f) {
  std::string out;
  if (f.precision.rules) {
    for (const PrecisionRule& rule : f.precision.rules->list()) {
      out += out.empty() ? "\n" : ",\n";
      out += "  {";
      if (!rule.op.empty()) {
        out += "\"op\": " + json_quoted(rule.op) + ", ";
      }
      if (rule.op_class) {
        out += "\"class\": " + json_quoted(to_string(*rule.op_class)) + ", ";
      }
      if (!rule.module.empty()) {
        out += "\"module\": " + json_quoted(rule.module) + ", ";
      }
      out += text("\"dtype\": \"",
                  rule.dtype == DType::f32   ? "fp32"
                  : rule.dtype == DType::f16 ? "fp16"
                                             : "bf16",
                  "\"}");
    }
  }
  return "{\"overrides\": [" + out + "]}\n";
}

}  // namespace binade::train
