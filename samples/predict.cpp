// Names the most probable classes of pictures: predict RUN/classifier.safetensors a.jpg b.png
// Classifiers are those that train_classifier and finetune save.
#include <binade/binade.h>
#include <binade/core/io/program_streams.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/flags.h>

#include <cstdio>

using namespace binade;

int main(int argc, char** argv) {
  train::Program program(
      "predict", "Names the most probable classes of pictures.", {},
      {"--data", "--epochs", "--steps", "--batch", "--lr", "--seed", "--run", "--resume",
       "--overwrite", "--checkpoint-every", "--init-scale", "--growth-factor", "--backoff-factor",
       "--growth-interval", "--hysteresis", "--record-gradients", "--black-box"});
  std::string model;
  std::vector<std::string> files;
  int64_t top = 5;
  program.add("--top", top, "classes to name", {1, 1000});
  program.add("MODEL", model, "a file of save_classifier()");
  program.add("FILE", files, "pictures");
  return program.run(argc, argv, [&](const train::RunFlags& flags) {
    check(!model.empty() && !files.empty(), "got no ", model.empty() ? "model" : "picture",
          ", expected predict MODEL FILE...");
    train::Classifier classifier = train::load_classifier(model);
    classifier.model().to(flags.target(), flags.policy());
    int64_t named = 0;
    for (const std::string& file : files) {
      try {
        std::string line;
        for (const train::Guess& guess : classifier.classify(file, top)) {
          char share[32];
          std::snprintf(share, sizeof share, " %.1f%%", 100 * guess.probability);
          line += (line.empty() ? "" : ", ") + printable(guess.name) + share;
        }
        std::printf("%s: %s\n", printable(file).c_str(), line.c_str());
        ++named;
      } catch (const Error& error) {
        std::fflush(stdout);
        print_error(error);
      }
    }
    std::printf("pictures named: %lld of %zu\n", static_cast<long long>(named), files.size());
    return named == static_cast<int64_t>(files.size()) ? 0 : 1;
  });
}
