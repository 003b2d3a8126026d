#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/format_histories.h>
#include <binade/nn/module_report_internal.h>

namespace binade::nn {

// Names begin with the number of the formats in the model, and a slash.
NamedTensors format_histories(const Module& model) {
  NamedTensors all;
  const auto formats = ModuleReport(model).delayed_formats();
  for (size_t i = 0; i < formats.size(); ++i) {
    for (auto& [name, largest] : formats[i]->histories()) {
      all.emplace_back(text(i, "/", name), std::move(largest));
    }
  }
  return all;
}

void load_format_histories(const Module& model, const NamedTensors& histories) {
  const auto formats = ModuleReport(model).delayed_formats();
  const NamedTensors before = format_histories(model);
  const auto set_all = [&formats](const NamedTensors& given) {
    for (size_t i = 0; i < formats.size(); ++i) {
      const std::string prefix = text(i, "/");
      NamedTensors own;
      for (const auto& [name, largest] : given) {
        if (name.starts_with(prefix)) {
          own.emplace_back(name.substr(prefix.size()), largest);
        }
      }
      formats[i]->set_histories(own);
    }
  };
  try {
    set_all(histories);
  } catch (...) {
    set_all(before);
    throw;
  }
}

}  // namespace binade::nn
