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

struct Lines {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, int64_t>> lines;  // text, class
};

// Lines as samples of different lengths: "bytes" i64 [length], "labels".
class LineDataset : public data::Dataset {
 public:
  explicit LineDataset(Lines lines) : all_(std::move(lines)) {}
  int64_t size() const override { return static_cast<int64_t>(all_.lines.size()); }
  data::Sample get(int64_t index) const override {
    const auto& [text, label] = all_.lines.at(static_cast<size_t>(index));
    std::vector<int64_t> bytes;
    for (const char c : text) {
      bytes.push_back(static_cast<unsigned char>(c));
    }
    return {.label = label, .fields = {{"bytes", Tensor::from(bytes)}}};
  }
  std::optional<int64_t> label(int64_t index) const override {
    return all_.lines.at(static_cast<size_t>(index)).second;
  }
  uint64_t id(int64_t index) const override {
    return std::hash<std::string>()(all_.lines.at(static_cast<size_t>(index)).first);
  }
  int64_t class_count() const override { return static_cast<int64_t>(all_.names.size()); }
  std::vector<std::string> class_names() const override { return all_.names; }
  int channels() const override { return 0; }

 private:
  Lines all_;
};

Lines drawn_lines(int64_t count) {
  const char* syllables[4][5] = {{"ka", "to", "mi", "ra", "no"},
                                 {"sch", "ein", "ber", "ung", "tal"},
                                 {"la", "que", "ción", "mar", "no"},
                                 {"ka", "lli", "mar", "tö", "nen"}};
  Lines all{.names = {"kato", "schein", "laque", "kalli"}, .lines = {}};
  philox::Stream random(11, 0);
  for (int64_t i = 0; i < count; ++i) {
    std::string word;
    for (uint32_t left = 2 + random.next_below(4); left > 0; --left) {
      word += syllables[i % 4][random.next_below(5)];
    }
    all.lines.emplace_back(word, i % 4);
  }
  return all;
}

Lines read_lines(const std::string& folder) {
  Lines all;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (entry.is_file && entry.name.ends_with(".txt")) {
      all.names.push_back(entry.name.substr(0, entry.name.size() - 4));
      for (std::string line : train::read_lines(folder + "/" + entry.name)) {
        line.erase(line.find_last_not_of("\r\n") + 1);
        if (!line.empty()) {
          all.lines.emplace_back(line, static_cast<int64_t>(all.names.size()) - 1);
        }
      }
    }
  }
  check(all.names.size() > 1, folder, ": got ", all.names.size(),
        " files *.txt, expected one per class");
  return all;
}

void run(const train::RunFlags& flags, int64_t hidden) {
  const auto lines = std::make_shared<LineDataset>(flags.data.empty() ? drawn_lines(4000)
                                                                      : read_lines(flags.data));
  const data::Split parts = data::split(lines, {.share = 0.2, .seed = flags.seed});
  data::LoaderOptions loading{
      .batch = flags.batch, .seed = flags.seed, .collate = data::pad("bytes", 0)};
  data::Loader train_loader(parts.first, loading);
  loading.shuffle = false;
  data::Loader validation_loader(parts.second, loading);

  Net net(lines->class_count(), hidden);
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
