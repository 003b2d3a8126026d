#include <binade/core/io/named_tensors.h>

#include <algorithm>
#include <map>

namespace binade {
namespace {

void add_problem(std::string& problems, const char* what, const std::vector<std::string>& names) {
  if (!names.empty()) {
    problems +=
        text(problems.empty() ? "" : "; ", names.size(), " ", what, ": ", list_names(names));
  }
}

}  // namespace

std::string list_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 16;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    out += (i ? ", " : "") + names[i];
  }
  return names.size() > kShown ? text(out, " and ", names.size() - kShown, " more") : out;
}

std::vector<Tensor> match_named(const char* op, std::span<const LoadTarget> targets,
                                const NamedTensors& sources) {
  std::map<std::string_view, const Tensor*> left;
  std::vector<std::string> twice, missing, unexpected, wrong;
  for (const auto& [name, tensor] : sources) {
    if (!left.emplace(name, &tensor).second) {
      twice.push_back(name);
    }
  }
  std::vector<Tensor> found;
  for (const LoadTarget& target : targets) {
    const Tensor* source = nullptr;
    for (const std::string& name : target.names) {
      const auto at = left.find(name);
      if (at == left.end()) {
        continue;
      }
      source = source ? source : at->second;
      left.erase(at);
    }
    if (!source) {
      missing.push_back(target.names[0]);
    } else if (!source->defined()) {
      wrong.push_back(target.names[0] + " is undefined");
    } else if (!(source->sizes() == target.sizes)) {
      wrong.push_back(text(target.names[0], " has ", source->sizes(), ", expected ", target.sizes));
    } else if (is_floating(source->dtype()) != target.floating) {
      wrong.push_back(text(target.names[0], " has dtype ", source->dtype()));
    }
    found.push_back(source ? *source : Tensor());
  }
  for (const auto& [name, tensor] : left) {
    unexpected.emplace_back(name);
  }
  std::string problems;
  add_problem(problems, "missing", missing);
  add_problem(problems, "unexpected", unexpected);
  add_problem(problems, "of the wrong shape or dtype", wrong);
  add_problem(problems, "given twice", twice);
  check(problems.empty(), op, ": ", problems,
        "; nothing was changed: expected the names and shapes that the target has");
  return found;
}

}  // namespace binade
