// The flags of train_classifier, with their defaults and ranges, and what they choose.
#pragma once
#include <binade/binade.h>
#include <binade/data/glyphs.h>
#include <binade/train/finders/rate_finder.h>
#include <binade/train/flags.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

namespace classifier {

using namespace binade;

struct Flags {
  std::string data, listing_cache, run, model = "cnn", precision = "fp16", policy = "mixed",
                                        loss_scale = "dynamic", at_floor = "auto";
  std::string optimizer = "adamw", checksums = "auto", schedule = "cosine", format = "auto",
              augment = "auto", device = "auto";
  std::string on_nan = "error", workers = "auto", graph = "auto", lens_layers = "*",
              store = "by-policy", overrides, lr_scale = "none", find = "none", profile;
  std::vector<std::string> predict;
  int64_t epochs = 6, batch = 64, rollbacks = 3, accumulate = 1, patience = 10,
          checkpoint_every = 0, seed = 0, lens = 0, log_every = 0, base_batch = 256;
  int threads = 0, image_size = 0, zero = 0;
  double lr = 1e-3, momentum = 0.9, weight_decay = -1, clip = 0, validation_split = 0.1,
         rollback_factor = 0.5, find_f32 = 0;
  optim::LossScalerOptions scaler;
  train::FormatFlags formats;
  int64_t black_box = 0, shadow = 0;
  bool record_gradients = false, ledger = false, explain = false;
  bool async_save = false, no_outside_links = false, resume = false, overwrite = false,
       force = false, momentum_given = false, sync_batch_norm = false, log_norms = false,
       no_report = false;
};

inline CLI::Validator within(double low, double high) {
  const train::FlagRange range{low, high};
  return CLI::Validator([range](std::string& value) { return range.mistake(value); },
                        range.words());
}

// Throws if a flag has no effect with the other chosen flags.
inline void check_combinations(const CLI::App& app, const Flags& f) {
  auto only_with = [&app](const char* flag, bool works, const char* what) {
    check(works || app.get_option(flag)->count() == 0, flag, ": has no effect without ", what);
  };
  only_with("--momentum", f.optimizer == "sgd" || f.optimizer == "lars" || f.optimizer == "rmsprop",
            "--optimizer sgd, lars or rmsprop");
  only_with("--policy", f.precision != "fp32", "--precision fp16 or bf16");
  only_with("--store", f.precision != "fp32", "--precision fp16 or bf16");
  only_with("--at-floor", f.precision == "fp16" || f.loss_scale != "dynamic", "a loss scale");
  const bool dynamic = f.precision == "fp16" && f.loss_scale == "dynamic";
  for (const char* flag : {"--init-scale", "--growth-factor", "--backoff-factor",
                           "--growth-interval", "--hysteresis"}) {
    only_with(flag, dynamic, "--precision fp16 and a dynamic loss scale");
  }
  (void)optim::ScalerState(f.scaler);  // throws if the factors do not go together
  f.formats.check_together();
  for (const char* flag : {"--format", "--checksums", "--no-outside-links", "--listing-cache"}) {
    only_with(flag, !f.data.empty(), "--data");
  }
  only_with("--lens-layers", f.lens > 0, "--lens K");
  for (const char* flag : {"--rollbacks", "--rollback-factor"}) {
    only_with(flag, f.on_nan == "roll-back", "--on-nan roll-back");
  }
  only_with("--find-f32", f.precision != "fp32", "--precision fp16 or bf16");
  only_with("--base-batch", f.lr_scale != "none", "--lr-scale linear or sqrt");
  only_with("--resume", !f.run.empty(), "--run DIR");
  only_with("--force", f.resume, "--resume");
  for (const char* flag : {"--data", "--run", "--overrides", "--listing-cache"}) {
    const CLI::Option* option = app.get_option(flag);
    check(option->count() == 0 || !option->as<std::string>().empty(), flag, ": got an empty path");
  }
}

inline CLI::Validator positive() { return CLI::Range(int64_t(1), int64_t(1) << 20); }

inline void add_model_flags(CLI::App& app, Flags& f) {
  app.add_option(
      "--data", f.data,
      "directory of an image folder, of idx or CIFAR files, of tar shards, or of a store "
      "that binade pack wrote; without it images are drawn");
  app.add_option("--format", f.format, "of the data")
      ->check(CLI::IsMember({"auto", "idx", "folder", "store", "cifar", "tar"}));
  app.add_option("--checksums", f.checksums,
                 "of the data, as `binade checksum DIR` wrote them: auto verifies them if they are "
                 "there")
      ->check(CLI::IsMember({"auto", "require", "ignore"}));
  app.add_flag("--no-outside-links", f.no_outside_links,
               "a link that leads out of --data is an error");
  app.add_option("--listing-cache", f.listing_cache,
                 "file, outside of --data, that keeps the list of an image folder's files, so that "
                 "only changed folders are listed at the next start");
  app.add_option("--model", f.model, "network")
      ->check(CLI::IsMember(
          {"mlp", "cnn", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}));
  app.add_option("--precision", f.precision)->check(CLI::IsMember({"fp32", "fp16", "bf16"}));
  app.add_option("--policy", f.policy, "of fp16 and bf16")
      ->check(CLI::IsMember({"mixed", "autocast", "half"}));
  app.add_option(
         "--store", f.store,
         "of ops that compute in f32: paper keeps the dtype of the inputs, apex returns f32")
      ->check(CLI::IsMember({"by-policy", "paper", "apex"}));
  app.add_option("--overrides", f.overrides,
                 "JSON file of exceptions by op and module (docs/mixed_precision.md)");
  app.add_option("--loss-scale", f.loss_scale, "dynamic, or a number");
  app.add_option("--at-floor", f.at_floor,
                 "what an overflow does when the loss scale can fall no further; auto: error, and "
                 "skip with a number as loss scale")
      ->check(CLI::IsMember({"auto", "error", "skip", "fp32", "clip"}));
}

inline void add_scaler_flags(CLI::App& app, Flags& f) {
  app.add_option("--init-scale", f.scaler.init_scale, "of a dynamic loss scale, a power of two")
      ->check(within(0x1p-24, 0x1p24));
  app.add_option("--growth-factor", f.scaler.growth_factor, "of the loss scale, a power of two")
      ->check(within(1, 0x1p24));
  app.add_option("--backoff-factor", f.scaler.backoff_factor,
                 "of the loss scale at an overflow, a power of two")
      ->check(within(0x1p-24, 1));
  app.add_option("--growth-interval", f.scaler.growth_interval,
                 "steps without an overflow until the loss scale grows")
      ->check(within(1, 1e9));
  app.add_option("--hysteresis", f.scaler.hysteresis,
                 "overflows since the last growth until the loss scale falls")
      ->check(within(1, 1e9));
  app.add_flag("--record-gradients", f.record_gradients,
               "the sizes of each step's gradients go to scaler.jsonl, for binade replay");
  app.add_option("--shadow", f.shadow,
                 "every so many steps a step also runs in f64, to show which op errs; 0: never")
      ->check(within(0, 1e9));
  app.add_option("--find-f32", f.find_f32,
                 "after training, find which modules must stay in f32 for this difference of the "
                 "loss from f64: RUN/f32-rules.json, for --overrides")
      ->check(within(1e-12, 1e6));
  app.add_option("--black-box", f.black_box,
                 "keep the first step that is not finite, in at most so many MB; 0: none")
      ->check(within(0, 1 << 20));
  app.add_flag("--explain", f.explain,
               "print in which dtype each module's ops run, and why, before the training");
  app.add_flag("--ledger", f.ledger,
               "print which ops of the first step ran in which dtype, and every cast");
}

inline void add_divergence_flags(CLI::App& app, Flags& f) {
  app.add_option(
         "--on-nan", f.on_nan,
         "if the loss, the gradients or the weights are not finite: end with an error, skip "
         "the step, return to the newest checkpoint with a smaller rate, or go on")
      ->check(CLI::IsMember({"error", "skip", "roll-back", "ignore"}));
  app.add_option("--rollbacks", f.rollbacks, "returns to a checkpoint before the error")
      ->check(positive());
  app.add_option("--rollback-factor", f.rollback_factor, "of the learning rate at each return")
      ->check(within(1e-6, 0.999999));
}

inline void add_training_flags(CLI::App& app, Flags& f) {
  app.add_option("--epochs", f.epochs)->check(positive());
  app.add_option("--batch", f.batch, "samples per micro-batch, of each rank")->check(positive());
  app.add_option("--lr", f.lr, "learning rate")->check(within(1e-12, 1e6));
  app.add_option("--lr-scale", f.lr_scale,
                 "--lr is for --base-batch samples per step (of all ranks, with --accumulate): "
                 "linear multiplies it by the ratio of the batches, for SGD; sqrt by its root, for "
                 "Adam and its kin. --schedule cosine warms up to it")
      ->check(CLI::IsMember({"none", "linear", "sqrt"}));
  app.add_option("--base-batch", f.base_batch)->check(positive());
  app.add_option("--find", f.find,
                 "do not train: find the largest batch that fits into memory, the learning rate "
                 "(writes lr-finder.html), the gradient noise scale, or forecast the memory")
      ->check(CLI::IsMember({"none", "batch", "lr", "noise", "memory"}));
  app.add_option("--optimizer", f.optimizer)
      ->check(CLI::IsMember({"adamw", "adam", "sgd", "rmsprop", "adagrad", "lamb", "lars"}));
  app.add_option("--momentum", f.momentum, "of sgd and lars, and of rmsprop where it is given")
      ->check(within(0.0, 1.0));
  app.add_option("--weight-decay", f.weight_decay,
                 "default 0.01 for adamw and lamb, 0.0001 for lars, else 0")
      ->check(within(0.0, 1e3));
  app.add_option("--schedule", f.schedule,
                 "of the learning rate; plateau: a tenth after three epochs without a better "
                 "validation loss")
      ->check(CLI::IsMember({"cosine", "step", "linear", "one-cycle", "plateau", "constant"}));
  app.add_option("--clip", f.clip, "largest gradient norm")->check(within(1e-12, 1e12));
  app.add_option("--accumulate", f.accumulate, "micro-batches per step")->check(positive());
  app.add_option("--validation-split", f.validation_split, "share of the training part")
      ->check(within(0.0, 0.9));
  app.add_option("--patience", f.patience,
                 "epochs without a better validation loss; 0: no early stop")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20));
  app.add_option(
         "--augment", f.augment,
         "of training images; auto: crop-flip for colour, none for grey; the last three add "
         "a policy of torchvision's to crop-flip")
      ->check(
          CLI::IsMember({"auto", "none", "crop", "crop-flip", "trivial", "randaugment", "augmix"}));
  app.add_option("--image-size", f.image_size, "resize to N x N; needed for mixed sizes")
      ->check(CLI::Range(8, 4096));
}

inline void add_machine_flags(CLI::App& app, Flags& f) {
  app.add_option(
      "--workers", f.workers,
      "loader threads: a number, or auto, which tries more where the stall adviser asks for them");
  app.add_option("--threads", f.threads, "compute threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--seed", f.seed)->check(CLI::Range(int64_t(0), int64_t(1) << 62));
  app.add_option("--device", f.device, "auto, cpu, cuda[:N] or emulated");
  app.add_option("--graph", f.graph, "auto: replay a step on a GPU as one CUDA graph; off")
      ->check(CLI::IsMember({"auto", "off"}));
  app.add_option("--zero", f.zero,
                 "with several ranks: 1 spreads the optimizer's states over them, 2 gradients too")
      ->check(CLI::Range(0, 2));
  app.add_flag("--sync-batch-norm", f.sync_batch_norm,
               "with several ranks: batch norms see the batches of all");
}

inline void add_run_flags(CLI::App& app, Flags& f) {
  app.add_option("--run", f.run,
                 "directory for metrics and checkpoints; default: the next free runs/MODEL-N");
  app.add_flag("--resume", f.resume, "continue the run in --run, or start it");
  app.add_flag("--async-save", f.async_save, "write checkpoints while training goes on");
  app.add_flag("--overwrite", f.overwrite,
               "begin anew in --run; the run in it is kept as RUN.replaced-N");
  app.add_flag("--force", f.force, "with --resume: also with other settings or other data");
  app.add_option("--checkpoint-every", f.checkpoint_every,
                 "steps between checkpoints within an epoch")
      ->check(positive());
  app.add_option("--lens", f.lens,
                 "steps between looks of the exponent lens, which writes lens.jsonl and lens.html "
                 "to the run directory; 0: none")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 30));
  app.add_option("--lens-layers", f.lens_layers,
                 "the layers that it watches: a pattern of module paths with * and ?");
  app.add_option("--log-every", f.log_every, "steps between lines of metrics; 0: one per epoch")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 30));
  app.add_flag("--log-norms", f.log_norms, "norms of gradients and weights in each line");
  app.add_flag("--no-report", f.no_report, "no run.json, timeline.jsonl and report.html");
  app.add_option("--profile", f.profile,
                 "record steps as RUN/trace.json: STEPS, or WAIT,WARMUP,STEPS[,REPEAT]; without a "
                 "value 5,2,20")
      ->expected(0, 1);
  app.add_option("--predict", f.predict, "image files to classify after training");
}

// Exit statuses (docs/runs.md); a run ended by a signal has 128 + signal.
inline constexpr int kError = 1, kUsage = 2, kDiverged = 3;

inline void add_format_flags(CLI::App& app, train::FormatFlags& formats) {
  for (const train::FormatFlag& flag : train::format_flags()) {
    app.add_option(flag.name, formats.*flag.value, flag.help)
        ->check([check = flag.check](const std::string& value) {
          try {
            check(value);
            return std::string();
          } catch (const Error& error) {
            return std::string(error.what());
          }
        })
        ->capture_default_str();
  }
}

inline void add_flags(CLI::App& app, Flags& f) {
  app.footer(
      "Exit status: 0 success, 1 error, 2 wrong flags, 3 the run diverged, 75 another rank failed, "
      "128 + N ended by signal N with a checkpoint.");
  add_model_flags(app, f);
  add_training_flags(app, f);
  add_divergence_flags(app, f);
  add_scaler_flags(app, f);
  add_machine_flags(app, f);
  add_run_flags(app, f);
  for (CLI::Option* option :
       app.get_options([](CLI::Option* o) { return o->get_expected_max() == 1; })) {
    option->capture_default_str();
  }
}

inline double number(const std::string& flag, const std::string& value, double low, double high) {
  const std::string mistake = train::FlagRange{low, high}.mistake(value);
  check(mistake.empty(), flag, ": ", mistake);
  return std::strtod(value.c_str(), nullptr);
}

// Loader threads, or -1 for the loader's own choice. Ranks on one machine share its cores.
inline int workers(const Flags& f, const dist::World& world) {
  if (f.workers == "auto") {
    return world.local_size() > 1 ? std::max(1, threads()) : -1;
  }
  const double value = number("--workers", f.workers, 0, 256);
  check(value == static_cast<int>(value), "--workers: got ", f.workers,
        ", expected a whole number");
  return static_cast<int>(value);
}

inline Precision precision_of(const Flags& f) {
  const DType low = f.precision == "bf16" ? DType::bf16 : DType::f16;
  const Precision policy = f.precision == "fp32"    ? Precision::full()
                           : f.policy == "mixed"    ? Precision::mixed(low)
                           : f.policy == "autocast" ? Precision::autocast(low)
                                                    : Precision::half(low);
  const Precision stored = f.store == "by-policy" ? policy : policy.with(parse_store(f.store));
  const Precision ruled = f.overrides.empty() ? stored : read_precision(f.overrides, stored);
  return f.formats.schemes().any() ? f.formats.applied_to(ruled) : ruled;
}

inline std::optional<optim::LossScaler> make_scaler(const Flags& f) {
  using optim::AtFloor;
  const std::map<std::string, AtFloor> policies{{"error", AtFloor::error},
                                                {"skip", AtFloor::skip},
                                                {"fp32", AtFloor::fp32},
                                                {"clip", AtFloor::clip}};
  const bool dynamic = f.loss_scale == "dynamic";
  const AtFloor at_floor = f.at_floor != "auto" ? policies.at(f.at_floor)
                           : dynamic            ? AtFloor::error
                                                : AtFloor::skip;
  if (!dynamic) {
    return optim::LossScaler::fixed(number("--loss-scale", f.loss_scale, 0x1p-24, 0x1p24),
                                    at_floor);
  }
  optim::LossScalerOptions options = f.scaler;
  options.at_floor = at_floor;
  return f.precision == "fp16" ? std::optional(optim::LossScaler(options)) : std::nullopt;
}

// The rate for the samples of a step: --lr is for --base-batch.
inline double scaled_lr(const Flags& f, const dist::World& world) {
  using train::RateScaling;
  return train::scale_rate(f.lr, f.batch * f.accumulate * world.size(), f.base_batch,
                           f.lr_scale == "linear" ? RateScaling::linear
                           : f.lr_scale == "sqrt" ? RateScaling::square_root
                                                  : RateScaling::none);
}

// Without --data, generates the images, once per machine.
inline void draw_data(Flags& f, dist::World& world) {
  f.data = "runs/glyphs-" + std::to_string(f.seed);
  f.augment = f.augment == "auto" ? "crop" : f.augment;  // a mirrored letter is another one
  if (world.local_rank() == 0) {
    data::make_glyph_folder(f.data, {.seed = static_cast<uint64_t>(f.seed)});
  }
  world.communicator().barrier();
}

inline Device device_of(const Flags& f, const dist::World& world) {
  return f.device == "auto" ? world.device() : Device::parse(f.device);
}

inline train::ClassifierData open_data(const Flags& f, const dist::World& world) {
  const std::map<std::string, train::Augment> augments{
      {"auto", train::Augment::automatic},  {"none", train::Augment::none},
      {"crop", train::Augment::crop},       {"crop-flip", train::Augment::crop_flip},
      {"trivial", train::Augment::trivial}, {"randaugment", train::Augment::rand},
      {"augmix", train::Augment::aug_mix}};
  const std::map<std::string, data::Format> formats{
      {"auto", data::Format::automatic}, {"idx", data::Format::idx},
      {"folder", data::Format::folder},  {"store", data::Format::store},
      {"cifar", data::Format::cifar},    {"tar", data::Format::tar}};
  const std::map<std::string, data::Checksums> checksums{{"auto", data::Checksums::if_present},
                                                         {"require", data::Checksums::require},
                                                         {"ignore", data::Checksums::ignore}};
  return train::open_classifier_data({.path = f.data,
                                      .format = formats.at(f.format),
                                      .checksums = checksums.at(f.checksums),
                                      .outside_links = f.no_outside_links
                                                           ? data::OutsideLinks::refuse
                                                           : data::OutsideLinks::follow,
                                      .listing_cache = {.file = f.listing_cache},
                                      .validation_split = f.validation_split,
                                      .augment = augments.at(f.augment),
                                      .image_size = f.image_size,
                                      .batch = f.batch,
                                      .workers = workers(f, world),
                                      .seed = static_cast<uint64_t>(f.seed),
                                      .device = device_of(f, world),
                                      .shard = world.rank(),
                                      .shard_count = world.size()});
}

}  // namespace classifier
