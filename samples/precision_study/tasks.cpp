#include "tasks.h"

#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace study {
namespace {

constexpr int64_t kPictures = 64;                       // in a batch
constexpr int64_t kSequences = 16, kContext = 32;       // of a batch of text
constexpr int64_t kTestPictures = 500, kTestRows = 64;  // in a batch of the test

Batch draw_pictures(const Pictures& from, uint64_t seed, int64_t step) {
  philox::Stream random(seed, static_cast<uint64_t>(step));
  Tensor index = empty({kPictures}, DType::i64);
  for (int64_t i = 0; i < kPictures; ++i) {
    index.data<int64_t>()[i] = random.next_below(static_cast<uint32_t>(from.count()));
  }
  return {index_select(from.images, 0, index), index_select(from.labels, 0, index)};
}

std::vector<Batch> test_pictures(const Pictures& test) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < test.count(); i += kTestPictures) {
    const int64_t end = std::min(i + kTestPictures, test.count());
    batches.push_back({slice(test.images, 0, i, end), slice(test.labels, 0, i, end)});
  }
  return batches;
}

// Rows of text that begin at the given places; y holds the character after each one.
Batch text_rows(const std::vector<int64_t>& text, const std::vector<size_t>& starts) {
  const auto rows = static_cast<int64_t>(starts.size());
  Batch batch{empty({rows, kContext}, DType::i64), empty({rows * kContext}, DType::i64)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t* from = text.data() + starts[static_cast<size_t>(row)];
    std::memcpy(batch.x.data<int64_t>() + row * kContext, from, kContext * sizeof(int64_t));
    std::memcpy(batch.y.data<int64_t>() + row * kContext, from + 1, kContext * sizeof(int64_t));
  }
  return batch;
}

Batch draw_text(const std::vector<int64_t>& text, uint64_t seed, int64_t step) {
  philox::Stream random(seed, static_cast<uint64_t>(step));
  std::vector<size_t> starts;
  for (int64_t i = 0; i < kSequences; ++i) {
    starts.push_back(random.next_below(static_cast<uint32_t>(text.size() - kContext)));
  }
  return text_rows(text, starts);
}

std::vector<Batch> test_text(const std::vector<int64_t>& text) {
  std::vector<Batch> batches;
  size_t next = 0;
  for (int i = 0; i < 4; ++i) {
    std::vector<size_t> starts;
    for (int64_t row = 0; row < kTestRows; ++row, next += kContext) {
      starts.push_back(next);
    }
    batches.push_back(text_rows(text, starts));
  }
  return batches;
}

// Values of one picture.
int64_t pixels(const Pictures& pictures) { return pictures.images.numel() / pictures.count(); }

// The mean over pictures of the sum of their squared values. Gradients of the first layer are
// proportional to its root, and so is their effect on the output, so a stable step is proportional
// to its inverse.
double mean_energy(const Pictures& pictures) {
  return sum(pictures.images * pictures.images).item() / static_cast<double>(pictures.count());
}

// The learning rates of the experiments are made for the built-in pictures.
constexpr double kDrawnEnergy = 876;

Task picture_task(const char* name, const PictureSet& set, Device device) {
  return {
      .name = name,
      .classifies = true,
      .chance_loss = std::log(static_cast<double>(set.classes)),
      .make_model = {},
      .draw = [&set](uint64_t seed, int64_t step) { return draw_pictures(set.train, seed, step); },
      .test = test_pictures(set.test),
      .step_factor = kDrawnEnergy / mean_energy(set.train),
      .device = device};
}

Task text_task(const char* name, const Text& text, Device device) {
  return {
      .name = name,
      .classifies = false,
      .chance_loss = std::log(static_cast<double>(text.symbols)),
      .make_model = {},
      .draw = [&text](uint64_t seed, int64_t step) { return draw_text(text.train, seed, step); },
      .test = test_text(text.test),
      .device = device};
}

}  // namespace

Task mlp_task(Data& data) {
  const PictureSet& set = data.pictures();
  Task task = picture_task("MLP", set, data.device());
  const int64_t in = pixels(set.train), classes = set.classes;
  task.make_model = [in, classes] {
    return std::make_unique<Perceptron>(in, std::vector<int64_t>{128, 64}, classes);
  };
  return task;
}

Task cnn_task(Data& data) {
  const PictureSet& set = data.pictures();
  Task task = picture_task("CNN with batch norm", set, data.device());
  const int64_t channels = set.train.images.size(1), edge = set.train.images.size(2);
  const int64_t classes = set.classes;
  task.make_model = [channels, edge, classes] {
    return std::make_unique<ConvNet>(channels, edge, classes);
  };
  return task;
}

Task gpt_task(Data& data) {
  const Text& text = data.text();
  Task task = text_task("char-GPT", text, data.device());
  const int64_t symbols = text.symbols;
  task.make_model = [symbols] { return std::make_unique<CharGpt>(symbols, kContext); };
  return task;
}

Task lstm_task(Data& data) {
  const Text& text = data.text();
  Task task = text_task("char-LSTM", text, data.device());
  const int64_t symbols = text.symbols;
  task.make_model = [symbols] { return std::make_unique<CharLSTM>(symbols); };
  return task;
}

}  // namespace study
