#include "data.h"

#include <binade/data/glyphs.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace study {
namespace {

constexpr int kClasses = 10, kEdge = 16;  // of drawn pictures
constexpr int64_t kTrainPictures = 12'000, kTestPictures = 6000;
constexpr size_t kTrainText = 120'000, kTestText = 20'000;

void set_picture(const Pictures& pictures, int64_t index, const data::Image& image, int64_t label) {
  const int64_t plane = int64_t(image.height) * image.width, channels = image.channels;
  float* to = pictures.images.data<float>() + index * plane * channels;
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const float level = image.pixels[static_cast<size_t>(i * channels + c)];
      to[c * plane + i] = level / 64 - 2;  // 0..255 to -2..2
    }
  }
  pictures.labels.data<int64_t>()[index] = label;
}

Pictures draw_pictures(int part, int64_t count) {
  const data::GlyphOptions options{.seed = 0, .classes = kClasses, .size = kEdge};
  Pictures pictures{empty({count, 3, kEdge, kEdge}), empty({count}, DType::i64)};
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % kClasses);
    set_picture(pictures, i, data::draw_glyph(label, options, part, static_cast<int>(i)), label);
  }
  return pictures;
}

Pictures read_pictures(const data::IdxDataset& dataset, int64_t count) {
  count = std::min(count, dataset.size());
  Pictures pictures{empty({count, dataset.channels(), dataset.height(), dataset.width()}),
                    empty({count}, DType::i64)};
  for (int64_t i = 0; i < count; ++i) {
    const data::Sample sample = dataset.get(i);
    set_picture(pictures, i, sample.image, sample.label);
  }
  return pictures;
}

// A language of 160 words: sentences of article, noun, verb, article, noun, some with adjectives.
// Some words are much more frequent than others, as in a real language.
class ToyLanguage {
 public:
  ToyLanguage() : random_(11, 0) {
    for (int i = 0; i < 160; ++i) {
      std::string word;
      for (uint32_t syllables = 1 + random_.next_below(3); syllables > 0; --syllables) {
        word += "bdfgklmnprstvz"[random_.next_below(14)];
        word += "aeiou"[random_.next_below(5)];
        word += random_.next_below(3) == 0 ? "nrs"[random_.next_below(3)] : '\0';
      }
      word.erase(std::remove(word.begin(), word.end(), '\0'), word.end());
      words_.push_back(word);
    }
  }

  std::string write(size_t length) {
    std::string text;
    while (text.size() < length) {
      text += noun_phrase() + ' ' + word(100, 60) + ' ' + noun_phrase() + ".\n";
    }
    text.resize(length);
    return text;
  }

 private:
  // One of `count` words from `first`, word i with a probability of about 1 / i.
  const std::string& word(uint32_t first, uint32_t count) {
    return words_[first + random_.next_below(1 + random_.next_below(count))];
  }
  std::string noun_phrase() {
    const std::string article = random_.next_below(2) ? "a " : "the ";
    return article + (random_.next_below(4) ? "" : word(0, 40) + ' ') + word(40, 60);
  }
  philox::Stream random_;
  std::vector<std::string> words_;
};

std::vector<int64_t> numbers_of(const std::string& text, const std::set<char>& symbols) {
  std::vector<int64_t> numbers;
  for (const char c : text) {
    numbers.push_back(std::distance(symbols.begin(), symbols.find(c)));
  }
  return numbers;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  check(text.size() >= kTrainText + kTestText, path, ": has ", text.size(),
        " bytes, expected at least ", kTrainText + kTestText);
  return text;
}

}  // namespace

Data::Data(const std::string& directory, Device device) : device_(device) {
  if (directory.empty()) {
    return;
  }
  for (const char* folder : {"", "/mnist", "/fashion-mnist"}) {
    if (idx_directory_.empty() && data::has_idx_files(directory + folder)) {
      idx_directory_ = directory + folder;
    }
  }
  for (const char* file : {"/input.txt", "/tinyshakespeare/input.txt"}) {
    if (text_file_.empty() && std::filesystem::exists(directory + file)) {
      text_file_ = directory + file;
    }
  }
  check(!idx_directory_.empty() || !text_file_.empty(), "--data: ", directory,
        " has neither idx files (here, in mnist or in fashion-mnist) nor input.txt (here or in "
        "tinyshakespeare)");
}

const PictureSet& Data::pictures() {
  if (!pictures_ && idx_directory_.empty()) {
    pictures_ = std::make_unique<PictureSet>(
        PictureSet{"drawn glyphs of 16 x 16 pixels, 10 classes", kClasses,
                   draw_pictures(0, kTrainPictures), draw_pictures(1, kTestPictures)});
  } else if (!pictures_) {
    const data::IdxDataset train(idx_directory_, data::Part::train);
    const data::IdxDataset test(idx_directory_, data::Part::test);
    pictures_ = std::make_unique<PictureSet>(
        PictureSet{"the first " + std::to_string(kTrainPictures) + " pictures of " + idx_directory_,
                   train.class_count(), read_pictures(train, kTrainPictures),
                   read_pictures(test, kTestPictures)});
  }
  return *pictures_;
}

const Text& Data::text() {
  if (!text_) {
    const bool drawn = text_file_.empty();
    const std::string all =
        drawn ? ToyLanguage().write(kTrainText + kTestText) : read_text(text_file_);
    const std::set<char> symbols(all.begin(), all.end());
    text_ = std::make_unique<Text>(
        Text{drawn ? "text of a drawn toy language" : "the beginning of " + text_file_,
             static_cast<int64_t>(symbols.size()), numbers_of(all.substr(0, kTrainText), symbols),
             numbers_of(all.substr(kTrainText, kTestText), symbols)});
  }
  return *text_;
}

}  // namespace study
