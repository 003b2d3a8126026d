#include <binade/core/device/upload.h>
#include <binade/core/observe/timeline.h>
#include <binade/data/loader.h>
#include <binade/data/loader_state_internal.h>

#include <filesystem>
#include <string_view>

namespace binade::data {
namespace {

// A program has several loaders, so an error says which one it is. The place is unknown if the
// standard library makes the loader (std::make_unique).
std::string words_of(const SourceLine& made) {
  const std::string_view file = made.file;
  const bool known = !file.empty() && file.find("/c++/") == std::string_view::npos;
  return known ? text("(the loader of ", std::filesystem::path(file).filename().native(), ":",
                      made.line, ")")
               : "";
}

template <class D>
std::shared_ptr<LoaderState> make_state(std::shared_ptr<const D> dataset, LoaderOptions options,
                                        const SourceLine& made) {
  try {
    return std::make_shared<LoaderState>(std::move(dataset), std::move(options));
  } catch (Error& error) {
    if (const std::string words = words_of(made); !words.empty()) {
      error.add_context(words);
    }
    throw;
  }
}

}  // namespace

Loader::Loader(DatasetPtr dataset, LoaderOptions options, SourceLine made)
    : Loader(make_state(dataset.get(), std::move(options), made)) {}

Loader::Loader(IterablePtr dataset, LoaderOptions options, SourceLine made)
    : Loader(make_state(dataset.get(), std::move(options), made)) {}

Loader::Loader(std::shared_ptr<LoaderState> state) : state_(std::move(state)) {
  if (!state_->options.device.is_cpu()) {
    uploader_ = std::make_unique<Uploader>(state_->options.device);
  }
}

Loader::~Loader() { state_->close(); }

Loader::Epoch Loader::epoch(int64_t number, int64_t first_batch) {
  state_->start_epoch(number, first_batch, 0);
  next_epoch_ = number + 1;
  return Epoch(this);
}

Loader::Epoch Loader::epoch_after(int64_t number, int64_t samples) {
  state_->start_epoch(number, 0, samples);
  next_epoch_ = number + 1;
  return Epoch(this);
}

bool Loader::next(Batch& batch) {
  const PhaseSpan phase("data");
  if (!state_->next(batch)) {
    return false;
  }
  if (uploader_) {
    const TimelineSpan span(Activity::device, TimelineEvent::copy, "upload of the batch");
    for (const std::string& name : batch.names()) {
      const Tensor& field = batch[name];
      if (field.device().is_cpu()) {
        const bool dense = is_dense(field.sizes(), field.strides());
        batch.set(name, upload(*uploader_, dense ? field : field.contiguous()));
      }
    }
    uploader_->ready();
  }
  return true;
}

int64_t Loader::batches_per_epoch() const { return state_->builder.batches(); }

int64_t Loader::samples_per_epoch() const { return state_->builder.samples(); }

const LoaderOptions& Loader::options() const { return state_->options; }

const DataIdentity& Loader::identity() const { return state_->identity(); }

LoaderStats Loader::stats() const { return state_->stats(); }

std::vector<BadFile> Loader::bad_files() const { return state_->bad_files(); }

std::string to_string(const LoaderStats& stats) {
  const auto rounded = [](double seconds) {
    return static_cast<double>(static_cast<int64_t>(seconds * 1000 + 0.5)) / 1000;
  };
  return text(stats.samples, " samples in ", stats.batches, " batches, ", stats.workers,
              " workers; decode ", rounded(stats.decode_seconds), " s, transform ",
              rounded(stats.transform_seconds), " s, normalise ", rounded(stats.normalize_seconds),
              " s; waited ", rounded(stats.wait_seconds), " of ", rounded(stats.total_seconds),
              " s",
              stats.decode_errors > 0 ? text("; ", stats.decode_errors, " unreadable files") : "",
              stats.more_workers_would_help ? "; more workers would help" : "");
}

}  // namespace binade::data
