// A classifier of pictures in one file: the weights of a model of nn::make_model(), and in the
// file's metadata everything else that a prediction needs.
//
//   train::save_classifier("cats.safetensors", model, {.model = "cnn", .class_names = names, ...});
//   train::Classifier classifier = train::load_classifier("cats.safetensors");
//   for (const train::Guess& guess : classifier.classify("photo.jpg", 5)) { ... }
#pragma once
#include <binade/core/owned.h>
#include <binade/data/sample.h>
#include <binade/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::train {

struct ClassifierInfo {
  std::string model = "cnn";  // of nn::make_model()
  std::vector<std::string> class_names = {};
  int channels = 3, height = 0, width = 0;       // of the model's input
  std::vector<float> mean = {}, deviation = {};  // as in data::Normalization
};

// Makes the model that the information describes, by nn::make_model().
std::unique_ptr<nn::Module> make_classifier(const ClassifierInfo& info);

// A class and its probability.
struct Guess {
  std::string name;
  double probability;
};

// One thread at a time.
class Classifier {
 public:
  // REQUIRES: a model with info.class_names.size() results. It is put into evaluation mode.
  Classifier(std::unique_ptr<nn::Module> model, ClassifierInfo info);

  // The `count` most probable classes, the best one first (fewer if there are fewer classes). The
  // picture is resized as train::open_classifier_data() does.
  std::vector<Guess> classify(const data::Image& image, int64_t count = 1);
  // The same of a file. Throws Error that names it if it cannot be decoded.
  std::vector<Guess> classify(const std::string& path, int64_t count = 1);

  nn::Module& model() { return *model_; }
  const ClassifierInfo& info() const { return info_; }

 private:
  Owned<nn::Module> model_;
  ClassifierInfo info_;
};

// Writes durably, as save_model() does. Throws Error if the information is incomplete.
void save_classifier(const std::string& path, const nn::Module& model, const ClassifierInfo& info);
// Throws Error if the file has no such information or its weights do not fit the model that it
// names.
Classifier load_classifier(const std::string& path);

}  // namespace binade::train
