// Fine-tuning: the body of a ResNet that was trained on one folder of pictures learns another one.
//
//   finetune --pretrain --data cifar10/images --run runs/body
//   finetune --data raccoon_kangaroo --body runs/body/classifier.safetensors [--all-folds]
//
// One of five folds is for validation (duplicates stay in one fold, broken files are left out and
// named); --all-folds trains on each of them twice, with the body and from scratch.
#include <binade/binade.h>
#include <binade/data/glyphs.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/flags.h>

#include <cmath>
#include <cstdio>

using namespace binade;

namespace {

struct Options {
  std::string body = {};
  int64_t size = 32;
  bool pretrain = false, all_folds = false;
};

// Groups of learning rates: the first half of the body, the second half, the new head.
optim::AdamW make_adam(nn::Module& model, double lr, bool pretrained) {
  const auto rate = [=](const std::string& name) {
    const bool late = name.starts_with("layer3") || name.starts_with("layer4");
    return !pretrained || name.starts_with("fc") ? lr : late ? lr / 3 : lr / 10;
  };
  std::vector<optim::ParamGroup> groups;
  for (const double wanted : {lr, lr / 3, lr / 10}) {
    const auto parameters =
        model.parameters().filter([&](const Parameter& p) { return rate(p.name) == wanted; });
    if (parameters.size() > 0) {
      groups.push_back({.parameters = parameters, .lr = wanted});
    }
  }
  return optim::AdamW(groups, {.lr = lr, .weight_decay = 0.05});
}

// Trains on parts.first; returns the best accuracy on parts.second, in percent.
double train_on(const data::Split& parts, const train::RunFlags& flags, const Options& o,
                bool pretrained) {
  const auto side = static_cast<int>(o.size);
  const train::ClassifierInfo info{.model = "resnet18",
                                   .class_names = parts.first->class_names(),
                                   .height = side,
                                   .width = side,
                                   .mean = {0.485f, 0.456f, 0.406f},
                                   .deviation = {0.229f, 0.224f, 0.225f}};
  data::LoaderOptions loading{
      .batch = flags.batch,
      .seed = flags.seed,
      .drop_last = true,
      .transform = data::sequence(
          {data::random_resized_crop(side, side, 0.4f), data::random_horizontal_flip()}),
      .mean = info.mean,
      .deviation = info.deviation,
      .bad_file = data::BadFilePolicy::skip};
  data::Loader train_loader(parts.first, loading);
  loading.transform = data::resize(side, side);
  loading.shuffle = loading.drop_last = false;
  data::Loader validation_loader(parts.second, loading);
  manual_seed(flags.seed);
  const auto model = train::make_classifier(info);
  if (pretrained) {
    train::load_model(o.body, *model, {.skip = {"fc"}});
  }
  model->to(flags.target(), flags.policy());
  optim::AdamW adam = make_adam(*model, flags.lr, pretrained);
  const int64_t total = flags.total_steps(train_loader);
  optim::WarmupCosine schedule(adam, {.warmup = total / 10, .total = total, .min_ratio = 0.05});
  train::ConfusionMatrix confusion(info.class_names);
  train::TrainerOptions options = flags.trainer_options();
  options.patience = 8;
  options.monitor = "validation_accuracy";
  options.metrics = {train::Accuracy(), confusion};
  train::Trainer trainer({.model = *model, .optimizer = adam, .schedule = &schedule}, options);
  flags.fit(trainer, train_loader, &validation_loader);
  const double accuracy = trainer.validate(validation_loader)["accuracy"];
  std::printf("%s", confusion.report().c_str());
  for (const data::Loader* loader : {&train_loader, &validation_loader}) {
    for (const data::BadFile& bad : loader->bad_files()) {
      std::printf("left out: %s\n", printable(bad.reason).c_str());
    }
  }
  train::save_classifier(flags.run + "/classifier.safetensors", *model, info);
  return 100 * accuracy;
}

// Trains on every fold with the body and from scratch.
void compare(const std::vector<data::Split>& folds, const train::RunFlags& flags,
             const Options& o) {
  std::vector<double> with_body, gains;
  for (size_t fold = 0; fold < folds.size(); ++fold) {
    train::RunFlags own = flags;
    own.run = text(flags.run, "/fold-", fold);
    with_body.push_back(train_on(folds[fold], own, o, true));
    own.run += "-scratch";
    const double scratch = train_on(folds[fold], own, o, false);
    gains.push_back(with_body.back() - scratch);
    std::printf("fold %zu: %.2f%%, from scratch %.2f%%\n", fold, with_body.back(), scratch);
  }
  const Tensor gain = Tensor::from(gains);
  std::printf("validation accuracy: %.2f%%, gain over scratch: %.2f (standard error %.2f)\n",
              mean(Tensor::from(with_body)).item(), mean(gain).item(),
              std::sqrt(var(gain).item() / static_cast<double>(folds.size())));
}

void run(train::RunFlags flags, const Options& o) {
  if (flags.data.empty()) {
    flags.data = "runs/glyphs";
    data::make_glyph_folder(flags.data, {.train = 600, .test = 200});
  }
  if (o.pretrain) {
    const data::TrainTest sets = data::open_dataset(flags.data, data::Format::folder);
    std::printf("validation accuracy: %.2f%%\n",
                train_on({sets.train, sets.test}, flags, o, false));
    return;
  }
  check(!o.body.empty(), "got neither --pretrain nor --body FILE");
  const auto pictures = data::concat({data::ImageFolder(flags.data, data::Part::train),
                                      data::ImageFolder(flags.data, data::Part::test)});
  const data::SampleGroups groups = data::content_groups(pictures);
  std::vector<data::Split> folds;
  for (int64_t i = 0; i < 5; ++i) {
    folds.push_back(data::k_fold(pictures, {.fold = i, .seed = flags.seed, .groups = groups}));
  }
  if (o.all_folds) {
    compare(folds, flags, o);
  } else {
    std::printf("validation accuracy: %.2f%%\n", train_on(folds[0], flags, o, true));
  }
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("finetune", "Fine-tunes a pretrained ResNet on a folder of pictures.",
                         {.epochs = 30, .batch = 32, .lr = 1e-3});
  Options o;
  program.add("--body", o.body, "a model of --pretrain");
  program.add("--pretrain", o.pretrain, "train a body on --data");
  program.add("--all-folds", o.all_folds, "train on each fold, with the body and from scratch");
  program.add("--image-size", o.size, "of the model's input", {8, 1024});
  return program.run(argc, argv, [&](const train::RunFlags& flags) { return run(flags, o); });
}
