#include <bench/drawn_batch.h>
#include <bench/speedup_work.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/io/file_system.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>
#include <binade/data/pictures/pictures.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/kernels/base/control_group.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/train/graphed_step.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <thread>

namespace binade::bench {
namespace {

constexpr int64_t kFileEdge = 160, kFileClasses = 10;
constexpr int64_t kPlainBatch = 8, kLargeBatch = 64, kMicroBatches = 4, kMostWorkers = 4;

// An observer prevents fusion: each op runs by itself. It records nothing.
struct NoFusion final : OpObserver {};

class SpeedupWork {
 public:
  SpeedupWork(const SpeedupSettings& settings, const MeasureSet& on, bool evaluates,
              const std::string& folder, Device device, dist::World& world)
      : settings_(settings), on_(on), evaluates_(evaluates), device_(device), world_(world) {
    manual_seed(0);
    open(folder);
    model_ = nn::make_model(settings.model, {3, settings.edge, settings.edge, kFileClasses});
    const bool mixed = has(on, Measure::precision);
    model_->to(device, !mixed            ? Precision::full()
                       : device.is_cpu() ? Precision::mixed(DType::bf16)
                                         : Precision::mixed(DType::f16));
    if (evaluates) {
      model_->eval();
      return;
    }
    if (has(on, Measure::zero)) {
      model_->parameters().shard(world.communicator(), Sharding::states);
    }
    adam_.emplace(model_->parameters());
    if (mixed && !device.is_cpu()) {
      scaler_.emplace();
      scaler_->to(device);
    }
    if (has(on, Measure::ddp)) {
      ddp_.emplace(world.communicator(), model_->parameters(),
                   dist::DistributedDataParallelOptions{.check_every = 0});
    }
    if (has(on, Measure::graph)) {
      graphed_.emplace(device, [this](std::span<const Tensor> in) -> std::vector<Tensor> {
        return {update(in)};
      });
    }
  }

  // Trains on, or evaluates, `samples` samples of this rank; returns how many were used.
  int64_t run(int64_t samples) {
    std::optional<NoFusion> apart;
    std::optional<ObserverScope> scope;
    if (!has(on_, Measure::fused)) {
      scope.emplace(apart.emplace());
    }
    int64_t taken = 0;
    while (taken < samples) {
      taken += evaluates_ ? evaluate() : step();
    }
    synchronize(device_);
    return taken;
  }

  int64_t update_samples() const {
    return batch_ * (has(on_, Measure::accumulate) && !evaluates_ ? kMicroBatches : 1);
  }

 private:
  void open(const std::string& folder) {
    const bool packed = has(on_, Measure::packed);
    batch_ = has(on_, Measure::batch) ? kLargeBatch : kPlainBatch;
    if (evaluates_ && has(on_, Measure::evaluation)) {
      batch_ *= 4;
    }
    const int64_t cores = kernels::usable_cores().count;
    const int64_t workers =
        std::max<int64_t>(1, std::min(cores, kMostWorkers) / world_.local_size());
    if (packed) {
      dataset_ = std::make_shared<data::StoreDataset>(folder + "/store");
    } else {
      dataset_ = std::make_shared<data::ImageFolder>(folder + "/jpeg", data::Part::train);
    }
    data::LoaderOptions options{
        .batch = std::min(batch_, dataset_->size() / world_.size()),
        .workers = has(on_, Measure::workers) ? static_cast<int>(workers) : 0,
        .seed = 1,
        .drop_last = true,
        .channels_last = has(on_, Measure::channels_last),
        .cache_bytes = 0,  // as if the data did not fit into memory
        .device = has(on_, Measure::pinned) ? device_ : Device{},
        .shard = world_.rank(),
        .shard_count = world_.size()};
    batch_ = options.batch;
    if (!packed) {
      options.transform =
          data::resize(static_cast<int>(settings_.edge), static_cast<int>(settings_.edge));
    }
    loader_.emplace(dataset_, options);
    loader_->epoch(0);
  }

  data::Batch next() {
    data::Batch batch;
    if (!loader_->next(batch)) {
      loader_->epoch(++epoch_);
      check(loader_->next(batch), "speedups: there are fewer images than a batch has");
    }
    return has(on_, Measure::pinned) ? batch : batch.to(device_);
  }

  // Makes one update from batches: images, labels, images, labels, ... Returns the last loss.
  Tensor update(std::span<const Tensor> batches) {
    const size_t count = batches.size() / 2;
    const double weight = 1.0 / static_cast<double>(count);
    Tensor loss;
    for (size_t i = 0; i < count; ++i) {
      if (ddp_) {
        ddp_->set_reduce(i + 1 == count);
      }
      loss = cross_entropy((*model_)(batches[2 * i]), batches[2 * i + 1]);
      if (scaler_) {
        scaler_->scale(loss, weight).backward();
      } else {
        (count > 1 ? loss * weight : loss).backward();
      }
    }
    if (scaler_) {
      (void)scaler_->step(*adam_);
    } else {
      (void)adam_->step();
    }
    return loss.detach();
  }

  int64_t step() {
    int64_t taken = 0;
    std::vector<Tensor> batches;
    for (int64_t i = 0; i < update_samples() / batch_; ++i) {
      const data::Batch batch = next();
      taken += batch.images.size(0);
      batches.push_back(batch.images);
      batches.push_back(batch.labels);
    }
    const Tensor loss = graphed_ ? (*graphed_)(batches)[0] : update(batches);
    if (!has(on_, Measure::no_item)) {
      last_loss_ = loss.item();
    }
    return taken;
  }

  int64_t evaluate() {
    const data::Batch batch = next();
    std::optional<NoGradGuard> guard;
    if (has(on_, Measure::evaluation)) {
      guard.emplace();
    }
    const Tensor right = sum(argmax((*model_)(batch.images), 1) == batch.labels);
    if (!has(on_, Measure::no_item)) {
      last_loss_ = right.item();
    }
    return batch.images.size(0);
  }

  const SpeedupSettings& settings_;
  const MeasureSet& on_;
  bool evaluates_;
  Device device_;
  dist::World& world_;
  std::shared_ptr<data::Dataset> dataset_;
  std::optional<data::Loader> loader_;
  std::unique_ptr<nn::Module> model_;
  std::optional<optim::AdamW> adam_;
  std::optional<optim::LossScaler> scaler_;
  std::optional<dist::DistributedDataParallel> ddp_;
  std::optional<train::GraphedStep> graphed_;
  int64_t batch_ = 0, epoch_ = 0;
  double last_loss_ = 0;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string why_not(Measure one, Device device, int gpus) {
  const bool cpu = device.is_cpu();
  switch (one) {
    case Measure::pinned: return cpu ? "batches are in the memory of the CPU already" : "";
    case Measure::graph: return cpu ? "graphs are of GPUs" : "";
    case Measure::ddp:
    case Measure::zero:
      return cpu || gpus >= 2 ? "" : text("2 processes need 2 GPUs, there are ", gpus);
    default: return "";
  }
}

void prepare_images(const std::string& folder, const SpeedupSettings& settings) {
  const auto edge = static_cast<int>(settings.edge);
  constexpr int64_t kAtOnce = 32;
  for (int64_t begin = 0; begin < settings.files; begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, settings.files - begin);
    const DrawnBatch drawn = drawn_images({count, 3, kFileEdge, kFileClasses}, begin / kAtOnce);
    const Tensor pictures = drawn.inputs * 0.25 + 0.5;  // from [-2, 2) to [0, 1)
    for (int64_t i = 0; i < count; ++i) {
      const std::string of_class =
          text(folder, "/jpeg/class", static_cast<int64_t>(drawn.labels.at(i)));
      make_directories(of_class);
      data::save_jpeg(text(of_class, "/", begin + i, ".jpg"), select(pictures, 0, i));
    }
  }
  data::pack(data::ImageFolder(folder + "/jpeg", data::Part::train), folder + "/store",
             {.images = data::PackImages::raw, .transform = data::resize(edge, edge)});
}

double samples_per_second(const SpeedupSettings& settings, const MeasureSet& on, bool evaluates,
                          const std::string& folder, Device device, dist::World& world) {
  SpeedupWork work(settings, on, evaluates, folder, device, world);
  // Runs at least three steps, because a graph is recorded in the third.
  work.run(std::max(3 * work.update_samples(), int64_t{64} / world.size()));
  world.communicator().barrier();
  const double start = seconds_now();
  const int64_t taken = work.run(settings.samples / world.size());
  world.communicator().barrier();
  return static_cast<double>(taken * world.size()) / (seconds_now() - start);
}

}  // namespace binade::bench
