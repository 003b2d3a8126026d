#include <binade/kernels/base/printable.h>
#include <binade/train/run_display_internal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace binade::train {

bool RunDisplay::is_live() const { return on_ && isatty(STDERR_FILENO) != 0; }

void RunDisplay::progress(const data::Loader& loader, const RunProgress& now) const {
  if (!is_live()) {
    return;
  }
  const data::LoaderStats stats = loader.stats();
  std::fprintf(
      stderr,
      "\repoch %lld/%lld  %5.1f%%  loss %.4f  lr %.2e  scale %g  skipped %s  %.0f samples/s  "
      "stalled %.0f%% ",
      static_cast<long long>(now.epoch + 1), static_cast<long long>(epochs_),
      100.0 * static_cast<double>(now.batch) / static_cast<double>(loader.batches_per_epoch()),
      now.loss, now.lr, now.scale, now.skipped.c_str(),
      static_cast<double>(now.samples) / now.seconds,
      100 * stats.wait_seconds / std::max(stats.total_seconds, 1e-9));
  std::fflush(stderr);
}

void RunDisplay::epoch(const EpochMetrics& m, const std::string& skipped) const {
  if (!on_) {
    return;
  }
  std::string validation;
  char buffer[60];
  if (m.validation_loss) {
    std::snprintf(buffer, sizeof buffer, "  validation loss %.4f", *m.validation_loss);
    validation = buffer;
  }
  if (m.validation_accuracy) {
    std::snprintf(buffer, sizeof buffer, "  accuracy %.2f%%", 100 * *m.validation_accuracy);
    validation += buffer;
  }
  if (is_live()) {
    std::fprintf(stderr, "\r\033[K");
  }
  std::printf("epoch %lld/%lld  loss %.4f%s  lr %.2e  scale %g  skipped %s  %.0f samples/s\n",
              static_cast<long long>(m.epoch + 1), static_cast<long long>(epochs_), m.train_loss,
              validation.c_str(), m.learning_rate, m.loss_scale, skipped.c_str(),
              m.samples_per_second);
  std::fflush(stdout);
}

void RunDisplay::note(const std::string& text) const {
  if (on_) {
    std::printf("%s%s\n", is_live() ? "\r\033[K" : "", printable(text).c_str());
    std::fflush(stdout);
  }
}

}  // namespace binade::train
