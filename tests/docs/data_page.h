// The files in the working directory and the variables that the programs of docs/data.md use.
#pragma once
#include <binade/binade.h>
#include <binade/data/encode.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

using namespace binade;  // NOLINT: as in a program

// Token ids of different lengths.
struct Sentences : data::Dataset {
  int64_t size() const override { return 22; }
  data::Sample get(int64_t i) const override {
    return {.fields = {{"tokens", arange(0, 3 + i * 5 % 7)}}};
  }
};

class Page : public ::testing::Test {
 protected:
  Page() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory_.path());
    write("iris.csv", "length,width,species\n" + rows(24));
    write("a.txt", "first line\nsecond\n");
    write("b.txt", "third\n");
    std::string bytes;
    for (int i = 0; i < 200; ++i) {
      bytes += static_cast<char>(i);
      bytes += '\0';
      ids.push_back(i);
    }
    write("corpus.bin", bytes);
    for (const char* name : {"train/cat/1", "train/cat/2", "train/dog/1", "test/cat/1"}) {
      write_picture("photos/" + std::string(name) + ".png", 3);
    }
    write_shards();
    std::string table = "file,price,indoor,night\n";
    for (int i = 0; i < 5; ++i) {
      const std::string name = std::to_string(i) + ".png";
      write_picture("rooms/" + name, 3);
      write_picture("rooms_masks/" + name, 1);
      table += name + "," + std::to_string(i) + ".5,1,0\n";
    }
    write("rooms.csv", table);
  }
  ~Page() override { std::filesystem::current_path(before_); }

  static std::string rows(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += std::to_string(i) + "," + (i == 3 ? "NA" : std::to_string(i % 5)) + ",";
      text += i % 3 == 0 ? "virginica\n" : "setosa\n";
    }
    return text;
  }
  static void write(const std::string& name, const std::string& contents) {
    const std::filesystem::path path(name);
    if (path.has_parent_path()) {
      std::filesystem::create_directories(path.parent_path());
    }
    std::ofstream(path, std::ios::binary) << contents;
  }
  // shards/a.tar: two samples with a picture, a class and a text.
  static void write_shards() {
    std::string shard;
    for (const char* key : {"1", "2"}) {
      shard += member(std::string(key) + ".png", picture(3)) +
               member(std::string(key) + ".cls", key == std::string("1") ? "0" : "1") +
               member(std::string(key) + ".txt", std::string(key) + " words");
    }
    write("shards/a.tar", shard + std::string(1024, '\0'));
  }
  static std::string member(const std::string& name, const std::string& contents) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    const auto octal = [&header](size_t at, size_t digits, size_t value) {
      for (; digits > 0; value /= 8) {
        header[at + --digits] = static_cast<char>('0' + value % 8);
      }
    };
    octal(124, 11, contents.size());
    header[156] = '0';
    header.replace(148, 8, "        ");
    size_t sum = 0;
    for (const char c : header) {
      sum += static_cast<unsigned char>(c);
    }
    octal(148, 6, sum);
    header[154] = '\0';
    return header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
  }
  static void write_picture(const std::string& name, int channels) {
    write(name, picture(channels));
  }
  static std::string picture(int channels) {
    data::Image image = data::make_image(9, 8, channels);
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = static_cast<uint8_t>(i % 3);
    }
    const std::vector<uint8_t> bytes = data::encode_png(image);
    return {bytes.begin(), bytes.end()};
  }

  binade::testing::TemporaryDirectory directory_;
  std::filesystem::path before_;

  std::vector<int64_t> ids;
  Sentences sentences;
  Tensor w = randn({2, 2});
};
