#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/loop/named_values_internal.h>
#include <binade/train/run_display_internal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace binade::train {
namespace {

template <class... T>
std::string format(const char* form, T... values) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, form, values...);
  return buffer;
}

// "  validation loss 0.1234  accuracy 56.78%  mae 0.12"
std::string validation_words(const NamedValues& values) {
  constexpr std::string_view kPrefix = "validation_";
  std::string words;
  for (const auto& [key, value] : values) {
    if (!key.starts_with(kPrefix)) {
      continue;
    }
    const std::string name = key.substr(kPrefix.size());
    words += name == "loss"       ? format("  validation loss %.4f", value)
             : name == "accuracy" ? format("  accuracy %.2f%%", 100 * value)
                                  : "  " + printable(name) + format(" %.4g", value);
  }
  return words;
}

}  // namespace

std::string time_words(double seconds) {
  if (!std::isfinite(seconds)) {
    return "?";
  }
  const auto all = static_cast<long long>(std::max(seconds, 0.0) + 0.5);
  const long long hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? format("%lld:%02lld:%02lld", hours, minutes, all % 60)
                   : format("%lld:%02lld", minutes, all % 60);
}

bool RunDisplay::is_live() const { return on_ && isatty(STDERR_FILENO) != 0; }

void RunDisplay::progress(const data::Loader& loader, const RunProgress& now) const {
  if (!on_) {
    return;
  }
  const std::string words = now.where + "  " + now.step +
                            format("  %5.1f%%  loss %.4f  lr %.2e  scale %g", 100 * now.share,
                                   now.loss, now.lr, now.scale) +
                            "  skipped " + printable(now.skipped) +
                            format("  %.0f samples/s", now.samples_per_second);
  const std::string left = "  ETA " + time_words(now.seconds_left);
  if (!is_live()) {
    std::printf("  %s%s\n", words.c_str(), left.c_str());
    std::fflush(stdout);
    return;
  }
  const data::LoaderStats stats = loader.stats();
  std::fprintf(stderr, "\r%s  stalled %.0f%%%s \033[K", words.c_str(),
               100 * stats.wait_seconds / std::max(stats.total_seconds, 1e-9), left.c_str());
  std::fflush(stderr);
}

void RunDisplay::line(const ScalarRecord& record, const std::string& where,
                      const std::string& skipped) const {
  if (!on_) {
    return;
  }
  const auto value = [&](const char* name) {
    const double* found = find_value(record.values, name);
    return found ? *found : 0;
  };
  if (is_live()) {
    std::fprintf(stderr, "\r\033[K");
  }
  const bool phases = !find_value(record.values, "learning_rate");
  const std::string rates =
      phases ? "" : format("  lr %.2e  scale %g", value("learning_rate"), value("loss_scale"));
  std::printf("%s  loss %.4f%s%s  skipped %s  %.0f samples/s\n", where.c_str(), value("train_loss"),
              validation_words(record.values).c_str(), rates.c_str(), printable(skipped).c_str(),
              value("samples_per_second"));
  std::fflush(stdout);
}

void RunDisplay::note(const std::string& text) const {
  if (on_) {
    std::printf("%s%s\n", is_live() ? "\r\033[K" : "", printable(text).c_str());
    std::fflush(stdout);
  }
}

}  // namespace binade::train
