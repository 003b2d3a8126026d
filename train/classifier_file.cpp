#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/decode.h>
#include <binade/data/pictures/pictures.h>
#include <binade/data/transforms.h>
#include <binade/nn/models.h>
#include <binade/train/classifier_file.h>
#include <binade/train/model_file.h>

#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

using nlohmann::json;

constexpr const char* kClassifierKey = "classifier";  // in the metadata: one JSON object

void check_info(const char* op, const ClassifierInfo& info) {
  constexpr int kMaxSide = 1 << 15;
  check(!info.class_names.empty(), op, ": got no class names, expected one per class");
  check((info.channels == 1 || info.channels == 3) && info.height > 0 && info.width > 0 &&
            info.height <= kMaxSide && info.width <= kMaxSide,
        op, ": got pictures of ", info.height, " x ", info.width, " x ", info.channels,
        ", expected sides of 1 to ", kMaxSide, " pixels and 1 or 3 channels");
  const auto channels = static_cast<size_t>(info.channels);
  const auto fits = [&](const std::vector<float>& values) {
    return values.empty() || values.size() == channels;
  };
  check(fits(info.mean) && fits(info.deviation), op, ": got ", info.mean.size(), " means and ",
        info.deviation.size(), " deviations for ", info.channels, " channels");
}

std::string to_text(const ClassifierInfo& info) {
  return json{{"model", info.model},        {"class_names", info.class_names},
              {"channels", info.channels},  {"height", info.height},
              {"width", info.width},        {"mean", info.mean},
              {"deviation", info.deviation}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

ClassifierInfo parse_info(const std::string& path, const std::string& text) {
  try {
    const json root = json::parse(text);
    ClassifierInfo info{.model = root.at("model").get<std::string>(),
                        .class_names = root.at("class_names").get<std::vector<std::string>>(),
                        .channels = root.at("channels").get<int>(),
                        .height = root.at("height").get<int>(),
                        .width = root.at("width").get<int>(),
                        .mean = root.at("mean").get<std::vector<float>>(),
                        .deviation = root.at("deviation").get<std::vector<float>>()};
    check_info("load_classifier", info);
    return info;
  } catch (const json::exception&) {
    fail("load_classifier: got ", path,
         ", whose information about the classifier cannot be read; write it with "
         "save_classifier()");
  }
}

// A new model. Its initial weights do not use the program's sequence of random numbers.
std::unique_ptr<nn::Module> blank_model(const ClassifierInfo& info) {
  const Generator before = std::exchange(generator(), Generator{});
  try {
    auto model = make_classifier(info);
    generator() = before;
    return model;
  } catch (...) {
    generator() = before;
    throw;
  }
}

}  // namespace

std::unique_ptr<nn::Module> make_classifier(const ClassifierInfo& info) {
  check_info("make_classifier", info);
  return nn::make_model(info.model, {.channels = info.channels,
                                     .height = info.height,
                                     .width = info.width,
                                     .classes = static_cast<int64_t>(info.class_names.size())});
}

Classifier::Classifier(std::unique_ptr<nn::Module> model, ClassifierInfo info)
    : model_(std::move(model)), info_(std::move(info)) {
  check(model_ != nullptr, "Classifier: got no model");
  check_info("Classifier", info_);
  model_->eval();
}

std::vector<Guess> Classifier::classify(const data::Image& image, int64_t count) {
  check(count >= 1, "classify: got ", count, " classes to return, expected at least 1");
  check(image.channels == info_.channels, "classify: got a picture of ", image.channels,
        " channels, expected ", info_.channels);
  const NoGradGuard guard;
  const bool fits = image.height == info_.height && image.width == info_.width;
  const Tensor x =
      data::to_tensor(fits ? image : data::resize_image(image, info_.height, info_.width),
                      {.mean = info_.mean, .deviation = info_.deviation});
  const Tensor logits = (*model_)(channels_last(unsqueeze(x, 0).to(model_->device())));
  const auto classes = static_cast<int64_t>(info_.class_names.size());
  check(logits.sizes() == Dims{1, classes}, "classify: got results ", logits.sizes(),
        " of the model, expected [1, ", classes, "]");
  const ValuesIndices best = topk(softmax(logits.to(DType::f32), 1)[0], std::min(count, classes));
  std::vector<Guess> guesses;
  const std::vector<float> values = best.values.to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto label = static_cast<size_t>(best.indices.at(static_cast<int64_t>(i)));
    guesses.push_back({info_.class_names[label], values[i]});
  }
  return guesses;
}

std::vector<Guess> Classifier::classify(const std::string& path, int64_t count) {
  return classify(data::read_image(path, {.channels = info_.channels}), count);
}

void save_classifier(const std::string& path, const nn::Module& model, const ClassifierInfo& info) {
  check_info("save_classifier", info);
  const auto wanted = blank_model(info);
  (void)wanted->load_state(model.state());  // throws if the model is not the one that it names
  save_model(path, model, {{kClassifierKey, to_text(info)}});
}

Classifier load_classifier(const std::string& path) {
  const Metadata metadata = load_metadata(path);
  const auto found = metadata.find(kClassifierKey);
  check(found != metadata.end(), "load_classifier: got ", path,
        ", which says nothing about classes, sizes and means, expected a file of "
        "save_classifier(), such as RUN/classifier.safetensors of train_classifier and finetune");
  const ClassifierInfo info = parse_info(path, found->second);
  auto model = blank_model(info);
  load_model(path, *model);
  return {std::move(model), info};
}

}  // namespace binade::train
