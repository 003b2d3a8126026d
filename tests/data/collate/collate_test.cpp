// Tests stack, pad and a user's collate function: values, and one clear error for each misuse.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/augment/augment.h>
#include <binade/data/loader.h>
#include <binade/data/sets/tensor_dataset.h>

#include <cmath>

#include "tests/data/test_files.h"

namespace binade::data::collate_test {
namespace {

// A dataset of samples listed in a test.
class Written : public Dataset {
 public:
  explicit Written(std::vector<Sample> samples) : samples_(std::move(samples)) {}
  int64_t size() const override { return std::ssize(samples_); }
  Sample get(int64_t index) const override { return samples_[static_cast<size_t>(index)]; }

 private:
  std::vector<Sample> samples_;
};

Batch first_batch(const std::vector<Sample>& samples, LoaderOptions options = {}) {
  options.workers = 0;
  options.shuffle = false;
  Loader loader(Written(samples), options);
  return *loader.begin();
}

Sample with(const std::string& name, Tensor value) {
  return {.fields = {{name, std::move(value)}}};
}

template <class T>
Tensor row(std::initializer_list<T> values) {
  return Tensor::from(values);
}

TEST(Stack, keeps_dtypes_and_sizes) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                            DType::u8, DType::boolean}) {
    const Tensor x = from_values({1, 0, 3, 0, 5, 6}, {3, 2}).to(dtype);
    const Batch batch =
        first_batch({with("x", x), with("x", x.transpose(0, 1).contiguous().transpose(0, 1))});
    EXPECT_EQ(batch["x"].dtype(), dtype);
    EXPECT_EQ(batch["x"].sizes(), (Dims{2, 3, 2}));
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(batch["x"].at(i), x.at(i % 6));
    }
  }
  EXPECT_EQ(first_batch({with("s", full({}, 2)), with("s", full({}, 3))})["s"].sizes(), (Dims{2}));
  EXPECT_EQ(first_batch({with("e", empty({0, 4}))})["e"].sizes(), (Dims{1, 0, 4}));
}

TEST(Stack, names_the_sample_and_the_field) {
  const Sample three = with("t", row({1, 2, 3}));
  EXPECT_EQ(error_of([&] {
              first_batch({three, with("t", row({1, 2}))});
            }),
            "loader: sample 1 has 't' of [2], the batch began with [3]; pad it: .collate = "
            "data::pad(\"t\", 0)");
  EXPECT_ERROR(first_batch({three, with("t", row({1.f, 2.f, 3.f}))}),
               "sample 1 has 't' as f32 [3]");
  EXPECT_ERROR(first_batch({three, with("u", row({1}))}), "sample 1 has no field 't'");
  EXPECT_ERROR(first_batch({three, {.fields = {{"t", row({1, 2, 3})}, {"u", row({1})}}}}),
               "sample 1 has the fields t, u");
  EXPECT_ERROR(first_batch({with("t", Tensor())}), "is an undefined tensor");
  EXPECT_ERROR(first_batch({with("", row({1}))}), "a field without a name");
  EXPECT_ERROR(first_batch({{.fields = {{"t", row({1})}, {"t", row({1})}}}}), "two fields 't'");
  EXPECT_ERROR(first_batch({Sample{}}), "has no image, no values, no label and no fields");
}

TEST(Batches, mixed_samples_are_errors) {
  const Image image = make_image(2, 2, 1);
  EXPECT_ERROR(first_batch({{.image = image, .label = 1}, {.image = image}}),
               "sample 1 has no label, those before have one");
  EXPECT_ERROR(first_batch({{.image = image}, {.image = image, .label = 1}}),
               "sample 1 has a label, those before have none");
  EXPECT_ERROR(first_batch({{.image = image}, {.values = {1}}}), "sample 1 has no image");
  EXPECT_ERROR(first_batch({{.values = {1}}, {.image = image}}), "sample 1 has an image");
  EXPECT_ERROR(first_batch({{.values = {1}}, {.values = {1, 2}}}), "sample 1 has 2 values");
  EXPECT_ERROR(first_batch({{.image = image, .values = {1}}}), "an image and values");
  EXPECT_ERROR(first_batch({{.image = image, .fields = {{"images", row({1})}}}}),
               "a field \"images\" beside their image");
  EXPECT_ERROR(first_batch({with("x", row({1}))}, {.mean = {.5f}}), "samples without images");
  EXPECT_ERROR(first_batch({with("x", row({1}))}, {.transform = random_horizontal_flip()}),
               "for a sample without an image");
}

TEST(Batches, images_without_labels_and_labels_of_any_kind) {
  const Image image = make_image(2, 3, 3);
  const Batch plain = first_batch({{.image = image}});
  EXPECT_EQ(plain.names(), (std::vector<std::string>{"images"}));
  EXPECT_FALSE(plain.labels.defined());
  EXPECT_EQ(plain.images.sizes(), (Dims{1, 3, 2, 3}));
  const Batch own = first_batch({{.image = image, .label = 4, .fields = {{"labels", row({.5f})}}}});
  EXPECT_EQ(own.labels.dtype(), DType::f32);
  EXPECT_EQ(own["labels"].at(0), 0.5);
  EXPECT_EQ(first_batch({{.label = 4, .fields = {{"x", row({1})}}}}).labels.at(0), 4);
}

TEST(Batches, answer_by_name) {
  Batch batch = first_batch({{.label = 1, .fields = {{"x", row({1, 2})}}}});
  EXPECT_TRUE(batch.has("x") && batch.has("labels") && !batch.has("images") && !batch.has("y"));
  EXPECT_ERROR(batch["y"], "batch: got no field 'y', expected one of: labels, x");
  EXPECT_ERROR(Batch()["y"], "expected one of: none");
  batch.set("x", {});
  batch.set("images", row({1}));
  EXPECT_EQ(batch.names(), (std::vector<std::string>{"images", "labels"}));
  const Sample sample = with("x", row({1}));
  EXPECT_ERROR(sample["y"], "sample: got no field 'y', expected one of: x");
}

TEST(Pad, fills_to_the_longest_and_masks) {
  const std::vector<Sample> samples = {
      {.fields = {{"t", row<int64_t>({1, 2})}, {"n", row({1})}}},
      {.fields = {{"t", empty({0}, DType::i64)}, {"n", row({2})}}},
      {.fields = {{"t", row<int64_t>({3, 4, 5})}, {"n", row({3})}}}};
  const Batch batch = first_batch(samples, {.collate = pad("t", -1)});
  EXPECT_EQ(batch["t"].to_vector<int64_t>(), (std::vector<int64_t>{1, 2, -1, -1, -1, -1, 3, 4, 5}));
  EXPECT_EQ(batch["t_mask"].to_vector<bool>(),
            (std::vector<bool>{true, true, false, false, false, false, true, true, true}));
  EXPECT_EQ(batch["n"].sizes(), (Dims{3, 1}));
  EXPECT_EQ(batch.names(), (std::vector<std::string>{"t", "t_mask", "n"}));
  const Batch wide =
      first_batch(samples, {.collate = pad({{.field = "t", .multiple = 8, .mask = false}})});
  EXPECT_EQ(wide["t"].sizes(), (Dims{3, 8}));
  EXPECT_FALSE(wide.has("t_mask"));
}

TEST(Pad, pads_several_dimensions) {
  const Sample small = with("a", from_values({1, 2, 3, 4}, {2, 1, 2}));
  const Sample tall =
      with("a", from_values({5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {3, 2, 2}));
  const Batch batch =
      first_batch({small, tall}, {.collate = pad({{.field = "a", .value = .5, .dims = 2}})});
  EXPECT_EQ(batch["a"].sizes(), (Dims{2, 3, 2, 2}));
  const std::vector<float> expected = {1, 2, .5, .5, 3, 4, .5, .5, .5, .5, .5, .5};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(batch["a"].at(static_cast<int64_t>(i)), expected[i]) << i;
    EXPECT_EQ(batch["a"].at(static_cast<int64_t>(i) + 12), 5 + double(i));
  }
  EXPECT_EQ(batch["a_mask"].sizes(), (Dims{2, 3, 2}));
  EXPECT_EQ(batch["a_mask"].to_vector<bool>(),
            (std::vector<bool>{true, false, true, false, false, false, true, true, true, true, true,
                               true}));
}

TEST(Pad, misuse_is_an_error) {
  const Sample two = with("t", row({1, 2}));
  const auto padded = [&](const std::vector<Sample>& samples, Padding padding) {
    return first_batch(samples, {.collate = pad({std::move(padding)})});
  };
  EXPECT_ERROR(padded({two}, {.field = "u"}), "pad: got field 'u', expected one of: t");
  EXPECT_ERROR(padded({two}, {.field = "t", .value = .5}), "expected a value of i32");
  EXPECT_ERROR(padded({two}, {.field = "t", .dims = 2}), "has 1 dimensions per sample");
  EXPECT_ERROR(padded({with("t", full({}, 1))}, {.field = "t"}), "has 0 dimensions per sample");
  EXPECT_ERROR(padded({with("t", zeros({2, 2})), with("t", zeros({2, 3}))}, {.field = "t"}),
               "only the first 1 dimensions are padded");
  EXPECT_ERROR(padded({{.fields = {{"t", row({1})}, {"t_mask", row({1})}}}}, {.field = "t"}),
               "a field 't_mask' already");
  EXPECT_ERROR(pad({}), "got no fields");  // this pad is not the transform of augment.h
  EXPECT_ERROR(pad(std::vector<Padding>{}), "got no fields");
  EXPECT_ERROR(pad({{.field = "t"}, {.field = "t"}}), "'t' twice");
  EXPECT_ERROR(pad({{.field = "t", .multiple = 0}}), "multiple 0");
  EXPECT_ERROR(pad({{.field = "t", .dims = 0}}), "dims 0");
  EXPECT_ERROR(pad(""), "without a name");
  // A padding of infinity or NaN needs a floating dtype.
  EXPECT_TRUE(std::isnan(
      padded({with("f", row({1.f})), with("f", row({1.f, 2.f}))}, {.field = "f", .value = NAN})["f"]
          .at(1)));
}

TEST(OwnCollate, errors_name_the_batch) {
  const std::vector<Sample> samples = {with("t", row({1, 2})), with("t", row({1}))};
  const auto run = [&](Collate collate, int workers) {
    Loader loader(Written(samples), {.workers = workers, .shuffle = false, .collate = collate});
    loader.begin();
  };
  for (const int workers : {0, 2}) {
    EXPECT_ERROR(run([](auto, Batch&) { throw std::runtime_error("mine"); }, workers),
                 "loader: in the collate function, for the batch of 2 samples that begins with "
                 "sample 0: mine");
    EXPECT_ERROR(run([](auto, Batch&) { throw 7; }, workers), "unknown exception");
    EXPECT_ERROR(run([](auto, Batch& batch) { batch.fields.emplace_back("x", Tensor()); }, workers),
                 "field 'x' is an undefined tensor");
    EXPECT_ERROR(run([](auto s, Batch& b) { b.set("t", stack_field(s, "t")); }, workers),
                 "sample 1 has 't' of [1]");
    EXPECT_ERROR(run([](auto, Batch&) {}, workers), "left the batch without fields");
  }
}

// If a user changes a sample, neither the dataset nor the loader's cache changes.
TEST(Samples, have_memory_of_their_own) {
  const Tensor x = from_values({1, 2, 3}, {3});
  LoaderOptions options{.workers = 0, .shuffle = false, .map = [](Sample& sample, philox::Stream&) {
                          sample.fields[0].second += 1;
                        }};
  Loader tensors(TensorDataset({{"x", x}}), options);
  Loader cached(Written({with("x", full({}, 1).clone())}), options);
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ((*tensors.begin())["x"].to_vector<float>(), (std::vector<float>{2, 3, 4}));
  }
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

TEST(Loops, are_one_epoch_each) {
  Loader loader(TensorDataset({{"x", arange(10)}}), {.batch = 3, .workers = 2});
  std::vector<int64_t> epochs;
  std::vector<std::vector<int64_t>> orders;
  for (int loop = 0; loop < 3; ++loop) {
    orders.emplace_back();
    for (auto& batch : loader) {
      epochs.push_back(batch.epoch);
      orders.back().insert(orders.back().end(), batch.indices.begin(), batch.indices.end());
    }
    if (loop == 1) {
      loader.epoch(7);  // the next loop is epoch 8
    }
  }
  EXPECT_EQ(epochs, (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 8, 8, 8, 8}));
  EXPECT_NE(orders[0], orders[1]);
  for (auto& batch : loader) {  // left early
    EXPECT_EQ(batch.epoch, 9);
    break;
  }
  EXPECT_EQ((*loader.begin()).epoch, 10);
}

}  // namespace
}  // namespace binade::data::collate_test
