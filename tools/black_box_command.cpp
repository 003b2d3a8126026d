// binade blackbox: repeats a step that a run saved because it was not finite.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>
#include <binade/nn/models.h>
#include <binade/train/precision/black_box.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace binade::tool {
namespace {

int64_t number_in(const train::BlackBox& box, const std::string& key) {
  const std::string& value = box.description.at(key);
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  check(error == std::errc() && at == end && number >= 1 && number <= (1 << 20), "blackbox: got ",
        key, " = '", printable(value), "', expected a number from 1 to 2^20");
  return number;
}

// Makes the model that train_classifier trained.
std::unique_ptr<nn::Module> make_model(const train::BlackBox& box) {
  return nn::make_model(box.description.at("model"), {.channels = number_in(box, "channels"),
                                                      .height = number_in(box, "height"),
                                                      .width = number_in(box, "width"),
                                                      .classes = number_in(box, "classes")});
}

}  // namespace

int run(const BlackBoxOptions& o) {
  const bool is_run = file_kind(o.file) == "a directory";
  const train::BlackBox box =
      train::read_black_box(is_run ? o.file + "/blackbox.safetensors" : o.file);
  bool known = true;
  for (const char* key : {"model", "channels", "height", "width", "classes"}) {
    known = known && box.description.contains(key);
  }
  if (o.show || !known) {
    print_lines(train::to_text(box));
    check(o.show, "blackbox: ", printable(o.file),
          " is of a model that this tool cannot make; run the step again from the program that "
          "has it, with train::replay() (docs/overflow.md), or print this alone with --show");
    return 0;
  }
  kernels::set_threads(o.threads);
  const train::TrainingStep step = train::classification_step;
  const auto replay = train::replay(
      box, [&box] { return make_model(box); }, step, Device::parse(o.device));
  print_lines(train::to_text(box, replay));
  return 0;
}

}  // namespace binade::tool
