// A bidirectional LSTM that tells the class of a line of text: --data DIR has one file CLASS.txt
// per class, one sample per line; without it words of four invented languages.
#include <binade/binade.h>
#include <binade/train/flags.h>

#include <cstdio>

using namespace binade;

namespace {

struct Net : nn::Module {
  Net(int64_t classes, int64_t hidden)
      : embedding(*this, "embedding", {.count = 256, .width = 32, .padding_idx = 0}),
        lstm(*this, "lstm",
             {.input = 32, .hidden = hidden, .batch_first = true, .bidirectional = true}),
        dropout(*this, "dropout", {.p = 0.2}),
        fc(*this, "fc", {.in = 2 * hidden, .out = classes}) {}
  // bytes i64 [N, T], mask bool [N, T] -> logits [N, classes]; the mean over the line's own steps.
  Tensor classify(const Tensor& bytes, const Tensor& mask) {
    const Tensor h = lstm(embedding(bytes));
    const Tensor weight = unsqueeze(mask, 2).to(h.dtype());
    return fc(dropout(sum(h * weight, {1}) / sum(weight, {1})));
  }

  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Dropout dropout;
  nn::Linear fc;
};

// A line as a sample: "bytes" i64 [length], "labels".
data::Sample sample(const std::string& line, int64_t label) {
  const std::vector<uint8_t> bytes(line.begin(), line.end());
  return {.label = label, .fields = {{"bytes", Tensor::from(bytes).to(DType::i64)}}};
}

data::ListDataset drawn_lines(int64_t count) {
  const char* syllables[4][5] = {{"ka", "to", "mi", "ra", "no"},
                                 {"sch", "ein", "ber", "ung", "tal"},
                                 {"la", "que", "ción", "mar", "no"},
                                 {"ka", "lli", "mar", "tö", "nen"}};
  std::vector<data::Sample> lines;
  philox::Stream random(11, 0);
  for (int64_t i = 0; i < count; ++i) {
    std::string word;
    for (uint32_t left = 2 + random.next_below(4); left > 0; --left) {
      word += syllables[i % 4][random.next_below(5)];
    }
    lines.push_back(sample(word, i % 4));
  }
  return data::ListDataset(lines, {"kato", "schein", "laque", "kalli"});
}

data::ListDataset read_lines(const std::string& folder) {
  std::vector<std::string> names;
  std::vector<data::Sample> lines;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (entry.is_file && entry.name.ends_with(".txt")) {
      names.push_back(entry.name.substr(0, entry.name.size() - 4));
      for (std::string line : train::read_lines(folder + "/" + entry.name)) {
        line.erase(line.find_last_not_of("\r\n") + 1);
        if (!line.empty()) {
          lines.push_back(sample(line, std::ssize(names) - 1));
        }
      }
    }
  }
  check(names.size() > 1, folder, ": got ", names.size(), " files *.txt, expected one per class");
  return data::ListDataset(lines, names);
}

void run(const train::RunFlags& flags, int64_t hidden) {
  const data::ListDataset lines = flags.data.empty() ? drawn_lines(4000) : read_lines(flags.data);
  const data::Split parts = data::split(lines, {.share = 0.2, .seed = flags.seed});
  data::LoaderOptions loading{
      .batch = flags.batch, .seed = flags.seed, .collate = data::pad("bytes", 0)};
  data::Loader train_loader(parts.first, loading);
  loading.shuffle = false;
  data::Loader validation_loader(parts.second, loading);

  Net net(lines.class_count(), hidden);
  net.to(flags.target(), flags.policy());
  optim::Adam adam(net.parameters(), {.lr = flags.lr});
  train::TrainerOptions options = flags.trainer_options();
  options.clip_norm = 1;
  options.patience = 3;
  options.metrics = {train::Accuracy(), train::F1()};
  options.step = [](Net& model, const data::Batch& batch) -> train::StepOutput {
    const Tensor logits = model.classify(batch["bytes"], batch["bytes_mask"]);
    return {.loss = cross_entropy(logits, batch.labels), .output = logits};
  };
  train::Trainer trainer({.model = net, .optimizer = adam}, options);
  flags.fit(trainer, train_loader, &validation_loader);
  trainer.save_model();
  const train::Evaluation result = trainer.validate(validation_loader);
  std::printf("validation accuracy: %.2f%%, f1: %.4f\n", 100 * result["accuracy"], result["f1"]);
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("lstm_classifier", "Trains an LSTM that classifies lines of text.",
                         {.epochs = 10, .batch = 64, .lr = 3e-3});
  int64_t hidden = 64;
  program.add("--hidden", hidden, "size of the LSTM, in each direction", {1, 1 << 14});
  return program.run(argc, argv, [&](const train::RunFlags& flags) { return run(flags, hidden); });
}
