// ListDataset returns samples of any kind unchanged and rejects lists that fit no batch.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/identity.h>
#include <binade/data/loader.h>
#include <binade/data/sets/combine.h>
#include <binade/data/sets/list_dataset.h>

#include "tests/data/test_files.h"

namespace binade::data::list_dataset_test {
namespace {

Sample word(std::vector<int64_t> letters, int64_t label) {
  return {.label = label, .fields = {{"letters", Tensor::from(letters)}}};
}

std::vector<Sample> words() { return {word({5, 6, 7}, 1), word({8}, 0), word({}, 1)}; }

Sample picture(int channels, uint8_t first) {
  Sample sample{.image = make_image(2, 3, channels), .label = 0};
  sample.image.pixels[0] = first;
  return sample;
}

TEST(ListDataset, samples_come_back) {
  const ListDataset set(words(), {"noun", "verb"});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.class_count(), 2);
  EXPECT_EQ(set.class_names(), (std::vector<std::string>{"noun", "verb"}));
  EXPECT_EQ(set.channels(), 0);
  EXPECT_TRUE(set.in_memory());
  EXPECT_EQ(set.get(0)["letters"].to_vector<int64_t>(), (std::vector<int64_t>{5, 6, 7}));
  EXPECT_EQ(set.get(1).label, 0);
  EXPECT_EQ(set.label(2), 1);
  EXPECT_EQ(set.length(0, "letters"), 3);
  EXPECT_EQ(set.length(2, "letters"), 0);
  EXPECT_EQ(set.length(0, "other"), std::nullopt);
}

TEST(ListDataset, what_is_returned_is_a_copy) {
  const ListDataset set(words());
  set.get(0)["letters"].data<int64_t>()[0] = 99;
  EXPECT_EQ(set.get(0)["letters"].to_vector<int64_t>(), (std::vector<int64_t>{5, 6, 7}));
}

TEST(ListDataset, a_layout_does_not_matter) {
  const Tensor y = permute(arange(6).reshape({2, 3}), {1, 0});
  const Tensor x = ListDataset({Sample{.fields = {{"x", y}}}}).get(0)["x"];
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
}

TEST(ListDataset, a_loader_pads_it) {
  Loader loader(ListDataset(words()), {.batch = 3, .shuffle = false, .collate = pad("letters", 0)});
  const Batch batch = *loader.begin();
  EXPECT_EQ(batch["letters"].to_vector<int64_t>(),
            (std::vector<int64_t>{5, 6, 7, 8, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.labels.to_vector<int64_t>(), (std::vector<int64_t>{1, 0, 1}));
}

TEST(ListDataset, identity_sees_contents_labels_and_order) {
  const DataIdentity before = identify(ListDataset(words()));
  EXPECT_EQ(difference(identify(ListDataset(words())), before), "");
  std::vector<Sample> other = words();
  other[1].label = 1;
  EXPECT_EQ(difference(identify(ListDataset(other)), before), "other labels");
  std::swap(other[0], other[1]);
  EXPECT_EQ(difference(identify(ListDataset(other)), before), "the same samples in another order");
  other[0] = word({9}, 1);
  EXPECT_EQ(difference(identify(ListDataset(other)), before), "other samples");
}

TEST(ListDataset, a_field_labels_is_the_label) {
  const ListDataset set({Sample{.fields = {{"labels", full({}, 1, DType::i32)}}},
                         Sample{.fields = {{"labels", full({}, 0, DType::i32)}}}},
                        {"no", "yes"});
  EXPECT_EQ(set.label(0), 1);
  EXPECT_EQ(set.label(1), 0);
  EXPECT_EQ(ListDataset({Sample{.fields = {{"labels", full({}, 0.5)}}}}).label(0), std::nullopt);
  EXPECT_EQ(ListDataset({Sample{.fields = {{"x", full({2}, 0.5)}}}}).label(0), std::nullopt);
}

TEST(ListDataset, channels_are_those_of_the_pictures) {
  EXPECT_EQ(ListDataset({picture(3, 1), picture(3, 2)}).channels(), 3);
  EXPECT_EQ(ListDataset({picture(1, 1)}).channels(), 1);
  EXPECT_EQ(ListDataset({picture(3, 1), picture(1, 2)}).channels(), kUnknownChannels);
  EXPECT_NE(ListDataset({picture(3, 1), picture(3, 2)}).id(0),
            ListDataset({picture(3, 1), picture(3, 2)}).id(1));
}

TEST(ListDataset, samples_of_several_kinds_are_refused) {
  EXPECT_ERROR(ListDataset({word({1}, 0), picture(1, 1)}),
               "list dataset: got image, label in sample 1, expected label, 'letters' i64 as "
               "in sample 0");
  EXPECT_ERROR(ListDataset({word({1}, 0), word({1}, kNoLabel)}),
               "got 'letters' i64 in sample 1, expected label, 'letters' i64");
  EXPECT_ERROR(ListDataset({Sample{.fields = {{"x", Tensor()}}}}),
               "list dataset: field 'x' is an undefined tensor");
}

TEST(ListDataset, labels_without_a_class_are_refused) {
  EXPECT_ERROR(ListDataset(words(), {"noun"}),
               "list dataset: got label 1 in sample 0, expected 0 to 0");
  EXPECT_ERROR(ListDataset({word({1}, -1)}, {"noun"}), "got label -1 in sample 0");
  EXPECT_ERROR(ListDataset({word({1}, kNoLabel)}, {"noun"}), "got no label in sample 0");
}

TEST(ListDataset, an_index_outside_is_refused) {
  const ListDataset set(words());
  EXPECT_ERROR((void)set.get(3), "list dataset: got index 3, expected one of 3");
  EXPECT_ERROR((void)set.id(-1), "list dataset: got index -1");
  EXPECT_EQ(ListDataset({}).size(), 0);
}

}  // namespace
}  // namespace binade::data::list_dataset_test
