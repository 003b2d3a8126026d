// Datasets and collate functions of every kind: the rows of the table that promises_test.cpp runs.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/encode.h>
#include <binade/data/loader.h>
#include <binade/data/sets/combine.h>
#include <binade/data/sets/csv_dataset.h>
#include <binade/data/sets/image_table.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/data/sets/token_windows.h>
#include <binade/data/text_lines.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/data/test_files.h"

namespace binade::data::test {

// The dataset or the rows for a loader, and its options.
struct Source {
  std::shared_ptr<const Dataset> dataset = {};  // one of these two is set
  std::shared_ptr<const IterableDataset> rows = {};
  LoaderOptions options = {};

  std::unique_ptr<Loader> loader(const LoaderOptions& changed) const {
    return dataset ? std::make_unique<Loader>(DatasetPtr(dataset), changed)
                   : std::make_unique<Loader>(IterablePtr(rows), changed);
  }
};

struct Kind {
  std::string name;
  // Makes files in `folder` if it needs any. Another `variant` has other samples.
  std::function<Source(const fs::path& folder, int variant)> make;
  std::vector<std::string> fields;  // fields of its batches
};

inline int64_t mix(int64_t i, int variant) { return (i * 37 + 11 * variant + i * i) % 101; }

inline TensorDataset numbers(int64_t size, int variant) {
  std::vector<float> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < size; ++i) {
    y.push_back(mix(i, variant) % 4);
    for (int64_t j = 0; j < 3; ++j) {
      x.push_back(static_cast<float>(mix(3 * i + j, variant)) / 7);
    }
  }
  return TensorDataset({{"x", Tensor::from(x, {size, 3})},
                        {"labels", Tensor::from(y, {size})},
                        {"flag", Tensor::from(y, {size}).to(DType::boolean)},
                        {"half", Tensor::from(x, {size, 3, 1}).to(DType::f16)}});
}

// A dataset with rows of tokens of different lengths.
class RaggedTexts : public Dataset {
 public:
  RaggedTexts(int64_t size, int variant) : size_(size), variant_(variant) {}
  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override {
    std::vector<int64_t> tokens(static_cast<size_t>(length_of(index)));
    for (size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = mix(index + static_cast<int64_t>(t), variant_);
    }
    return {.label = index % 3, .fields = {{"tokens", Tensor::from(tokens)}}};
  }
  int64_t length_of(int64_t index) const { return mix(index, variant_) % 9; }  // may be 0
  std::string describe(int64_t index) const override {
    return text("text ", index, " of ", variant_);
  }

 private:
  int64_t size_;
  int variant_;
};

class Values : public Dataset {
 public:
  explicit Values(int variant) : variant_(variant) {}
  int64_t size() const override { return 19; }
  Sample get(int64_t index) const override {
    return {.label = index % 2,
            .values = {static_cast<float>(index), static_cast<float>(mix(index, variant_))}};
  }
  std::string describe(int64_t index) const override { return text(variant_, ":", index); }

 private:
  int variant_;
};

// Takes every second sample, backwards, in an order that depends on the epoch.
class Backwards : public Sampler {
 public:
  int64_t size(int64_t dataset_size) const override { return dataset_size / 2; }
  std::vector<int64_t> order(int64_t dataset_size, uint64_t, int64_t epoch) const override {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < size(dataset_size); ++i) {
      order.push_back((2 * (size(dataset_size) - 1 - i) + epoch) % dataset_size);
    }
    return order;
  }
};

inline std::string write(const fs::path& path, const std::string& contents) {
  write_file(path, bytes_of(contents));
  return path.native();
}

inline Source image_table(const fs::path& folder, int variant) {
  std::string csv = "file,price,tag\n";
  for (int i = 0; i < 13; ++i) {
    const std::string name = text("p", i, ".png");
    Image mask = make_image(6, 5, 1);
    for (size_t p = 0; p < mask.pixels.size(); ++p) {
      mask.pixels[p] = static_cast<uint8_t>((p + static_cast<size_t>(i)) % 3);
    }
    write_file(folder / "images" / name, encode_png(picture(6, 5, 3, uint64_t(i + 100 * variant))));
    write_file(folder / "masks" / name, encode_png(mask));
    csv += text(name, ",", mix(i, variant), ".5,", i % 2, "\n");
  }
  LoaderOptions options{.transform = sequence({random_crop(5, 4, 1), random_horizontal_flip()})};
  return {.dataset =
              std::make_shared<ImageTable>(ImageTableOptions{.folder = folder / "images",
                                                             .table = write(folder / "t.csv", csv),
                                                             .masks = folder / "masks"}),
          .options = options};
}

inline std::vector<Kind> all_kinds() {
  using Folder = const fs::path&;
  const auto ragged = [](int variant) { return std::make_shared<RaggedTexts>(23, variant); };
  const auto plain = [](int variant) {
    return std::make_shared<TensorDataset>(numbers(23, variant));
  };
  return {
      {"tensors",
       [=](Folder, int v) { return Source{.dataset = plain(v)}; },
       {"labels", "x", "flag", "half"}},
      {"values",
       [](Folder, int v) { return Source{.dataset = std::make_shared<Values>(v)}; },
       {"images", "labels"}},
      {"token_file",
       [](Folder folder, int v) {
         std::string bytes = "HEAD";
         for (int64_t i = 0; i < 120; ++i) {
           bytes += static_cast<char>(mix(i, v));
           bytes += static_cast<char>(i % 2);
         }
         const std::string path = write(folder / "a.bin", bytes);
         return Source{.dataset = std::make_shared<TokenWindows>(
                           std::vector<std::string>{path, path},
                           TokenWindowsOptions{.context = 9, .stride = 7, .header_bytes = 4})};
       },
       {"tokens", "targets"}},
      {"token_ids",
       [](Folder, int v) {
         std::vector<int32_t> ids(100);
         for (size_t i = 0; i < ids.size(); ++i) {
           ids[i] = static_cast<int32_t>(mix(static_cast<int64_t>(i), v));
         }
         return Source{.dataset =
                           std::make_shared<TokenWindows>(ids, TokenWindowsOptions{.context = 5})};
       },
       {"tokens", "targets"}},
      {"csv",
       [](Folder folder, int v) {
         std::string csv = "a,b,kind\n";
         for (int i = 0; i < 17; ++i) {
           csv += text(mix(i, v), ",", i, ".25,", i % 3 == 0 ? "cat" : "\"d\"\"og\"", "\n");
         }
         CsvOptions options{.columns = {{"kind", CsvType::category}}, .targets = {"kind"}};
         return Source{.dataset =
                           std::make_shared<CsvDataset>(write(folder / "t.csv", csv), options)};
       },
       {"x", "y"}},
      {"image_table", image_table, {"images", "labels", "mask"}},
      {"text_lines",
       [](Folder folder, int v) {
         std::string lines;
         for (int i = 0; i < 21; ++i) {
           lines += text(mix(i, v), " ", i, "\n");
         }
         const auto rows = std::make_shared<TextLines>(
             std::vector<std::string>{write(folder / "t.txt", lines)}, [](std::string_view line) {
               return Sample{.fields = {{"bytes", Tensor::from(std::vector<uint8_t>(line.begin(),
                                                                                    line.end()))}}};
             });
         rows->count_rows();
         return Source{.rows = rows, .options = {.shuffle_buffer = 6, .collate = pad("bytes", 32)}};
       },
       {"bytes", "bytes_mask"}},
      {"collected",
       [](Folder folder, int v) {
         std::string lines;
         for (int i = 0; i < 21; ++i) {
           lines += text(i % 4, ",", mix(i, v), "\n");
         }
         return Source{.dataset = collect(TextLines({write(folder / "t.csv", lines)}, csv_sample))};
       },
       {"images", "labels"}},
      {"map",
       [=](Folder, int v) {
         return Source{.dataset = map(plain(v), [](Sample sample) {
                         sample.set("x", sample["x"] * 2);
                         sample.set("sum", sum(sample["x"]));
                         return sample;
                       })};
       },
       {"labels", "x", "flag", "half", "sum"}},
      {"filter",
       [=](Folder, int v) {
         return Source{.dataset = filter(plain(v), [](const Sample& sample) {
                         return sample["labels"].item() != 2;
                       })};
       },
       {"labels", "x", "flag", "half"}},
      {"concat",
       [=](Folder, int v) {
         return Source{.dataset = concat({plain(v), plain(v + 7)})};
       },
       {"labels", "x", "flag", "half"}},
      {"zip",
       [=](Folder, int v) {
         return Source{.dataset = zip({subset(ragged(v), {3, 4, 5, 3, 1, 0, 22, 9, 17}),
                                       TensorDataset({{"w", arange(0, 9) + v}})}),
                       .options = {.collate = pad("tokens", -1)}};
       },
       {"labels", "tokens", "tokens_mask", "w"}},
      {"cached_split",
       [=](Folder, int v) {
         return Source{.dataset = cache(split(plain(v), {.share = 0.3, .seed = 4}).first),
                       .options = {.cache_bytes = 0}};
       },
       {"labels", "x", "flag", "half"}},
      {"pad",
       [=](Folder, int v) {
         return Source{
             .dataset = ragged(v),
             .options = {.collate = pad({{.field = "tokens", .value = 7, .multiple = 4}})}};
       },
       {"labels", "tokens", "tokens_mask"}},
      {"budget",
       [=](Folder, int v) {
         return Source{.dataset = ragged(v),
                       .options = {.budget = TokenBudget{.tokens = 24, .width = 2},
                                   .collate = pad("tokens")}};
       },
       {"labels", "tokens", "tokens_mask"}},
      {"weighted",
       [=](Folder, int v) {
         return Source{.dataset = plain(v),
                       .options = {.sampler = balanced_sampler(plain(v), {.samples = 31}),
                                   .map = [](Sample& sample, philox::Stream& random) {
                                     sample.set("noise", full({2}, random.next_uniform()));
                                   }}};
       },
       {"labels", "x", "flag", "half", "noise"}},
      {"weighted_once",
       [=](Folder, int v) {
         std::vector<double> weights;
         for (int i = 0; i < 23; ++i) {
           weights.push_back(i % 5);
         }
         return Source{.dataset = plain(v),
                       .options = {.sampler = WeightedSampler(
                                       weights, {.samples = 15, .replacement = false})}};
       },
       {"labels", "x", "flag", "half"}},
      {"own_sampler",
       [=](Folder, int v) {
         return Source{.dataset = plain(v), .options = {.sampler = Backwards()}};
       },
       {"labels", "x", "flag", "half"}},
      {"own_collate",
       [=](Folder, int v) {
         LoaderOptions options{.collate = [](std::span<const Sample> samples, Batch& batch) {
           philox::Stream random(5, uint64_t(batch.epoch) << 40 | uint64_t(batch.first));
           batch.set("mixed", stack_field(samples, "x") * double(random.next_uniform()));
         }};
         return Source{.dataset = plain(v), .options = options};
       },
       {"mixed"}},
  };
}

// A batch reduced to names, dtypes, sizes and bytes.
struct Seen {
  std::string bytes;
  std::vector<int64_t> indices;
  int64_t first = 0, size = 0, repeated = 0;
  bool operator==(const Seen&) const = default;
};

inline Seen seen(const Batch& batch) {
  Seen out{.bytes = {},
           .indices = batch.indices,
           .first = batch.first,
           .size = batch.size,
           .repeated = batch.repeated};
  for (const std::string& name : batch.names()) {
    const Tensor& field = batch[name];
    out.bytes += text(name, " ", field.dtype(), " ", field.sizes(), ":");
    const Tensor host = field.to(Device{}).contiguous();
    const size_t bytes = static_cast<size_t>(host.numel()) * size_of(host.dtype());
    out.bytes.append(static_cast<const char*>(static_cast<const void*>(host.view().data)), bytes);
  }
  return out;
}

inline std::vector<Seen> read_epoch(Loader& loader, int64_t epoch, int64_t first_batch = 0) {
  std::vector<Seen> batches;
  for (const Batch& batch : loader.epoch(epoch, first_batch)) {
    EXPECT_EQ(batch.epoch, epoch);
    batches.push_back(seen(batch));
  }
  return batches;
}

}  // namespace binade::data::test
