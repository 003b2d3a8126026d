// A character-level GPT: learns the text files in --data (*.txt), or a small text drawn by rule,
// and writes 300 characters of its own.
#include <binade/binade.h>
#include <binade/train/flags.h>

#include <cstdio>
#include <set>

using namespace binade;

namespace {

struct Size {
  int64_t layers = 4, width = 128, heads = 4, context = 128;
};

struct GPT : nn::Module {
  GPT(int64_t characters, const Size& size)
      : tokens(*this, "tokens", {.count = characters, .width = size.width}),
        positions(*this, "positions", {.count = size.context, .width = size.width}),
        blocks(*this, "blocks",
               {.layer = {.embed = size.width,
                          .heads = size.heads,
                          .feedforward = 4 * size.width,
                          .dropout = 0,
                          .activation = nn::FeedforwardActivation::gelu,
                          .batch_first = true,
                          .norm_first = true},
                .layers = size.layers,
                .norm = true}),
        head(*this, "head", {.in = size.width, .out = characters}) {
    nn::init::normal(tokens.weight, 0, 0.02);
    nn::init::normal(positions.weight, 0, 0.02);
  }
  // i64 [N, T] -> logits [N, T, characters] of each next character
  Tensor forward(const Tensor& ids) override {
    const Tensor place = arange(ids.size(1), DType::i64, ids.device());
    return head(blocks(tokens(ids) + positions(place), nn::AttentionMask{.is_causal = true}));
  }

  nn::Embedding tokens, positions;
  nn::TransformerEncoder blocks;
  nn::Linear head;
};

// Sentences of a small grammar, for a trial without files.
std::string drawn_text(int64_t sentences) {
  const char* words[4][4] = {{"a small", "the red", "every old", "one quiet"},
                             {" bird", " river", " teacher", " ship"},
                             {" sees", " follows", " remembers", " leaves"},
                             {" the sea", " a friend", " its name", " two trees"}};
  philox::Stream random(7, 0);
  std::string text;
  for (int64_t i = 0; i < sentences; ++i) {
    for (const auto& choices : words) {
      text += choices[random.next_below(4)];
    }
    text += ".\n";
  }
  return text;
}

std::string read_text(const std::string& folder) {
  std::string all;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (entry.is_file && entry.name.ends_with(".txt")) {
      for (const std::byte byte : read_file(folder + "/" + entry.name)) {
        all += static_cast<char>(byte);
      }
    }
  }
  check(!all.empty(), folder, ": got no text, expected files *.txt");
  return all;
}

std::string generate(GPT& gpt, const std::string& characters, const Size& size,
                     double temperature) {
  const NoGradGuard guard;
  gpt.eval();
  std::vector<int64_t> ids{0};
  std::string text;
  while (text.size() < 300) {
    const size_t first = ids.size() - std::min(ids.size(), static_cast<size_t>(size.context));
    const std::vector<int64_t> window(ids.begin() + static_cast<int64_t>(first), ids.end());
    const Tensor logits = gpt(Tensor::from(window).reshape({1, -1}).to(gpt.device()))[0][-1];
    const Tensor next = multinomial(softmax(logits.to(DType::f32) / temperature, 0), 1);
    ids.push_back(static_cast<int64_t>(next.item()));
    text += characters[static_cast<size_t>(ids.back())];
  }
  return text;
}

void run(const train::RunFlags& flags, const Size& size, double temperature) {
  const std::string text = flags.data.empty() ? drawn_text(2000) : read_text(flags.data);
  const std::set<char> alphabet(text.begin(), text.end());
  const std::string characters(alphabet.begin(), alphabet.end());
  std::vector<int64_t> ids;
  for (const char c : text) {
    ids.push_back(static_cast<int64_t>(characters.find(c)));
  }
  const auto cut = ids.begin() + static_cast<int64_t>(ids.size() * 9 / 10);
  const data::TokenWindows train(std::vector<int64_t>(ids.begin(), cut),
                                 {.context = size.context, .stride = size.context / 2});
  const data::TokenWindows validation(std::vector<int64_t>(cut, ids.end()),
                                      {.context = size.context});
  data::Loader train_loader(train, {.batch = flags.batch, .seed = flags.seed, .drop_last = true});
  data::Loader validation_loader(validation, {.batch = flags.batch, .shuffle = false});

  GPT gpt(static_cast<int64_t>(characters.size()), size);
  gpt.to(flags.target(), flags.policy());
  optim::AdamW adam(gpt.parameters(), {.lr = flags.lr, .betas = {0.9, 0.99}, .weight_decay = 0.1});
  const int64_t total = flags.total_steps(train_loader);
  optim::WarmupCosine schedule(adam, {.warmup = total / 50, .total = total, .min_ratio = 0.1});
  train::TrainerOptions options = flags.trainer_options();
  options.clip_norm = 1;
  options.patience = 0;
  options.validate_every = {.steps = std::max<int64_t>(total / 10, 1)};
  options.metrics = {train::Perplexity({.target = "targets", .class_dim = -1})};
  options.step = [](GPT& model, const data::Batch& batch) -> train::StepOutput {
    const Tensor logits = model(batch["tokens"]);
    return {.loss = cross_entropy(flatten(logits, 0, 1), flatten(batch["targets"])),
            .output = logits};
  };
  train::Trainer trainer({.model = gpt, .optimizer = adam, .schedule = &schedule}, options);
  flags.fit(trainer, train_loader, &validation_loader);
  trainer.save_model();
  const train::Evaluation result = trainer.validate(validation_loader);
  std::printf("%s\n", generate(gpt, characters, size, temperature).c_str());
  std::printf("validation loss: %.4f, perplexity: %.4f\n", result.loss, result["perplexity"]);
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("char_gpt", "Trains a character-level GPT and lets it write.",
                         {.epochs = 0, .steps = 6000, .batch = 32, .lr = 2e-3});
  Size size;
  double temperature = 0.8;
  program.add("--layers", size.layers, "of the transformer", {1, 100});
  program.add("--width", size.width, "of the embedding", {1, 1 << 16});
  program.add("--heads", size.heads, "of the attention", {1, 1024});
  program.add("--context", size.context, "characters that the model sees", {2, 1 << 16});
  program.add("--temperature", temperature, "of the text it writes", {1e-3, 100});
  return program.run(argc, argv,
                     [&](const train::RunFlags& flags) { return run(flags, size, temperature); });
}
