// Tests CsvDataset: the grammar of RFC 4180, types and fields, and errors that name the cell.
#include <binade/data/loader.h>
#include <binade/data/sampling/sampler.h>
#include <binade/data/sets/csv_dataset.h>

#include <cmath>

#include "tests/data/test_files.h"

namespace binade::data::csv_dataset_test {
namespace {

class Csv : public ::testing::Test {
 protected:
  CsvDataset read(const std::string& contents, CsvOptions options = {}) {
    path_ = (folder_.path() / "t.csv").native();
    test::write_file(path_, test::bytes_of(contents));
    return CsvDataset(path_, std::move(options));
  }
  // The error for a record, without the folder.
  std::string wrong(const CsvDataset& csv, int64_t index) const {
    const std::string error = error_of([&] { csv.get(index); });
    return error.starts_with(path_) ? "t.csv" + error.substr(path_.size()) : error;
  }

  test::TemporaryFolder folder_;
  std::string path_;
};

std::string text_of(const Sample& sample, const std::string& field) {
  const std::vector<uint8_t> bytes = sample[field].to_vector<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

TEST_F(Csv, numbers_and_targets) {
  const CsvDataset csv = read("a,b,y\n1,-2.5,3\n 4 ,+1e-3,0x\n7,8,9", {.targets = {"y"}});
  EXPECT_EQ(csv.size(), 3);
  EXPECT_EQ(csv.field_names(), (std::vector<std::string>{"x", "y"}));
  const Sample first = csv.get(0);
  EXPECT_EQ(first["x"].to_vector<float>(), (std::vector<float>{1, -2.5f}));
  EXPECT_EQ(first["y"].sizes(), (Dims{1}));
  EXPECT_EQ(wrong(csv, 1),
            "t.csv:3:3: column 'y': got '0x', expected a number; set CsvColumn::type if the column "
            "has another kind of values");
  EXPECT_EQ(csv.get(2)["x"].at(1), 8);
  EXPECT_EQ(csv.describe(2), path_ + ":4");
  EXPECT_ERROR(csv["x"], ":3:3: column 'y'");
  EXPECT_ERROR(csv["z"], "no field 'z', expected one of: x, y");
  EXPECT_ERROR(csv.get(3), "index 3, expected one of 3");
}

TEST_F(Csv, rfc_4180) {
  const CsvDataset csv = read(
      "\xEF\xBB\xBFname,\"te,xt\"\r\n"
      "a,\"say \"\"hi\"\"\"\r\n"
      "\r\n"
      "b,\"two\nlines, and\r\nmore\"\r\n"
      ",\"\"\r\n"
      "\"c\", spaced \n",
      {.columns = {{"name", CsvType::text}, {"te,xt", CsvType::text}}});
  EXPECT_EQ(csv.column_names(), (std::vector<std::string>{"name", "te,xt"}));
  ASSERT_EQ(csv.size(), 4);
  EXPECT_EQ(text_of(csv.get(0), "te,xt"), "say \"hi\"");
  EXPECT_EQ(text_of(csv.get(1), "te,xt"), "two\nlines, and\r\nmore");
  EXPECT_EQ(text_of(csv.get(2), "te,xt"), "");
  EXPECT_EQ(text_of(csv.get(3), "name"), "c");
  EXPECT_EQ(text_of(csv.get(3), "te,xt"), " spaced ");
  EXPECT_EQ(csv.describe(1), path_ + ":4");
  EXPECT_EQ(csv.describe(3), path_ + ":8");
  EXPECT_EQ(csv.length(1, "te,xt"), 20);
}

TEST_F(Csv, wrong_forms_name_the_place) {
  const CsvDataset csv = read("a,b\n1,2\n3\n4,5,6\n7,\"8\"9\n1\"0,1\n11,12\n");
  EXPECT_EQ(wrong(csv, 1), "t.csv:3:2: got 1 cells, expected 2 as in the header");
  EXPECT_EQ(wrong(csv, 2), "t.csv:4:3: got 3 cells, expected 2 as in the header");
  EXPECT_TRUE(test::contains(wrong(csv, 3), "t.csv:5:2: got text after the closing quote"));
  EXPECT_TRUE(test::contains(wrong(csv, 4), "t.csv:6:1: got a quote within a cell"));
  EXPECT_EQ(csv.get(5)["x"].at(0), 11);
  EXPECT_ERROR(csv["x"], "(4 records are wrong)");
  EXPECT_ERROR(read("a,b\n1,2\n3,\"4\n5,6\n"), "t.csv:3:2: csv: the file ends within the quotes");
  EXPECT_ERROR(read("a,a\n1,2\n"), "names column 'a' twice");
  EXPECT_ERROR(read(""), "no records");
  EXPECT_ERROR(read("\n\n"), "no records");
  EXPECT_ERROR(read("a,b\n"), "no records after its header");
  EXPECT_ERROR(CsvDataset((folder_.path() / "none.csv").native()), "none.csv");
  EXPECT_ERROR(CsvDataset(folder_.path().native()), folder_.path().native());
}

TEST_F(Csv, the_loader_treats_wrong_records_as_bad_samples) {
  const CsvDataset csv = read("a,b\n1,2\n3,x\n5,6\n7,\n");
  Loader failing(csv, {.batch = 4, .workers = 0, .shuffle = false});
  EXPECT_ERROR(failing.begin(), "t.csv:3:2: column 'b': got 'x'");
  Loader skipping(csv, {.batch = 4, .workers = 2, .bad_file = BadFilePolicy::skip});
  EXPECT_EQ((*skipping.begin()).size, 2);
  ASSERT_EQ(skipping.bad_files().size(), 2u);
  for (const BadFile& bad : skipping.bad_files()) {
    EXPECT_EQ(bad.path, path_ + (bad.index == 1 ? ":3" : ":5"));
  }
}

TEST_F(Csv, a_wrong_record_has_no_label) {
  const CsvDataset csv = read("a,k\n1,u\nx,v\n", {.columns = {{"k", CsvType::category}},
                                                  .fields = {{"x", {"a"}}, {"labels", {"k"}}}});
  EXPECT_EQ(csv.label(0), 0);
  EXPECT_EQ(csv.label(1), std::nullopt);
}

TEST_F(Csv, missing_values) {
  CsvOptions options{.columns = {{.name = "a", .missing = -1},
                                 {.name = "b"},
                                 {.name = "n", .type = CsvType::integer, .missing = 7}}};
  const CsvDataset csv = read("a,b,n\n,1,2\nNA,1,?\n1,,2\n1,n/a,2\n", options);
  EXPECT_EQ(csv.get(0)["x"].at(0), -1);
  EXPECT_EQ(csv.get(1)["x"].at(0), -1);
  EXPECT_EQ(csv.get(1)["n"].at(0), 7);
  EXPECT_EQ(wrong(csv, 2),
            "t.csv:4:2: column 'b': the value is missing (''); give "
            "CsvColumn::missing to use another one");
  EXPECT_TRUE(test::contains(wrong(csv, 3), "got 'n/a', expected a number"));
  options.columns[1].missing = NAN;
  options.missing_texts = {"n/a", ""};
  options.columns[0].missing.reset();
  const CsvDataset other = read("a,b,n\n1,n/a,2\nNA,1,2\n", options);
  EXPECT_TRUE(std::isnan(other.get(0)["x"].at(1)));
  EXPECT_TRUE(test::contains(wrong(other, 1), "got 'NA', expected a number"));
}

TEST_F(Csv, categories) {
  const std::string contents = "kind,v\nzebra,1\nant,2\nzebra,3\nNA,4\n";
  const CsvDataset csv =
      read(contents, {.columns = {{"kind", CsvType::category}}, .targets = {"kind"}});
  EXPECT_EQ(csv.categories("kind"), (std::vector<std::string>{"ant", "zebra"}));
  EXPECT_EQ(csv.class_names(), csv.categories("kind"));
  EXPECT_EQ(csv.class_count(), 2);
  EXPECT_EQ(csv.get(0)["y"].sizes(), Dims());
  EXPECT_EQ(csv.get(0)["y"].dtype(), DType::i64);
  EXPECT_EQ(csv.get(0)["y"].at(0), 1);
  EXPECT_EQ(csv.label(1), 0);
  EXPECT_TRUE(
      test::contains(wrong(csv, 3), "t.csv:5:1: column 'kind': the value is missing ('NA')"));
  const CsvDataset given = read(contents, {.columns = {{.name = "kind",
                                                        .type = CsvType::category,
                                                        .missing = 9,
                                                        .categories = {"zebra", "cat"}}}});
  EXPECT_EQ(given.get(0)["kind"].at(0), 0);
  EXPECT_EQ(given.get(3)["kind"].at(0), 9);
  EXPECT_TRUE(
      test::contains(wrong(given, 1), "got 'ant', expected one of the 2 categories: zebra, cat"));
  EXPECT_ERROR(csv.categories("v"), "column 'v' is not a category");
  EXPECT_ERROR(csv.categories("w"), "no column 'w', expected one of: kind, v");
  EXPECT_ERROR(
      read(contents,
           {.columns = {{.name = "kind", .type = CsvType::category, .categories = {"a", "a"}}}}),
      "category 'a' of column 'kind' twice");
}

TEST_F(Csv, types_and_fields) {
  const CsvDataset csv =
      read("a;b;c;d\n1;9007199254740993;1e300;x\n2;-3;1e39;y\n3;4.0;1e999;z\n",
           {.columns = {{"b", CsvType::integer}, {"c", CsvType::number64}, {"d", CsvType::ignore}},
            .separator = ';'});
  EXPECT_EQ(csv.field_names(), (std::vector<std::string>{"x", "b", "c"}));
  EXPECT_EQ(csv.get(0)["b"].to_vector<int64_t>()[0], 9007199254740993);
  EXPECT_EQ(csv.get(0)["c"].dtype(), DType::f64);
  EXPECT_EQ(csv.get(0)["c"].sizes(), (Dims{1}));
  EXPECT_TRUE(
      test::contains(wrong(csv, 2), "t.csv:4:2: column 'b': got '4.0', expected an integer"));
  const CsvDataset narrow = read("a\n1e39\n1e999\n-inf\n", {});
  EXPECT_TRUE(
      test::contains(wrong(narrow, 0), "outside of the range of f32; use CsvType::number64"));
  EXPECT_TRUE(test::contains(wrong(narrow, 1), "outside of the range of f64"));
  EXPECT_EQ(narrow.get(2)["x"].at(0), -INFINITY);
  const CsvDataset fields =
      read("1,2,3\n4,5,6\n", {.columns = {{"3", CsvType::integer}, {"1", CsvType::integer}},
                              .fields = {{"p", {"3", "1"}}, {"q", {"2"}}},
                              .header = false});
  EXPECT_EQ(fields.get(1)["p"].to_vector<int64_t>(), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(fields["q"].sizes(), (Dims{2, 1}));
}

TEST_F(Csv, bad_options_are_errors) {
  const std::string t = "a,b,c\n1,2,3\n";
  EXPECT_ERROR(read(t, {.columns = {{"z", CsvType::text}}}),
               "no column 'z', expected one of: a, b, c");
  EXPECT_ERROR(read(t, {.columns = {{"a"}, {"a"}}}), "column 'a' twice");
  EXPECT_ERROR(read(t, {.targets = {"z"}}), "no column 'z'");
  EXPECT_ERROR(read(t, {.targets = {"a"}, .fields = {{"x", {"b"}}}}), "fields and targets");
  EXPECT_ERROR(read(t, {.fields = {{"x", {}}}}), "0 columns");
  EXPECT_ERROR(read(t, {.fields = {{"x", {"a"}}, {"x", {"b"}}}}), "the field 'x' twice");
  EXPECT_ERROR(read(t, {.columns = {{"a", CsvType::integer}}, .fields = {{"x", {"a", "b"}}}}),
               "columns of the types integer and number");
  EXPECT_ERROR(read(t, {.columns = {{"a", CsvType::text}, {"b", CsvType::text}},
                        .fields = {{"x", {"a", "b"}}}}),
               "a single column of text");
  EXPECT_ERROR(read(t, {.columns = {{"a", CsvType::ignore}}, .fields = {{"x", {"a"}}}}),
               "column 'a' is ignored");
  EXPECT_ERROR(
      read(t,
           {.columns = {{"a", CsvType::ignore}, {"b", CsvType::ignore}, {"c", CsvType::ignore}}}),
      "all columns are ignored");
  EXPECT_ERROR(read(t, {.separator = '"'}), "as the separator");
  EXPECT_ERROR(read(t, {.max_bytes = 4}), "t.csv");
}

// A record without its cells takes the memory of a full one. More such records than full records
// would fit into the file are an error at once.
TEST_F(Csv, short_records_cannot_take_all_memory) {
  constexpr int kColumns = 30'000;
  std::string header = "c0";
  for (int i = 1; i < kColumns; ++i) {
    header += text(",c", i);
  }
  std::string few = header + "\n", many = few;
  for (int i = 0; i < 3; ++i) {
    few += "1\n";
  }
  for (int i = 0; i < 300'000; ++i) {  // would be 36 GB of values
    many += "1\n";
  }
  const CsvDataset set = read(few);
  EXPECT_EQ(set.size(), 3);
  EXPECT_ERROR(set.get(0), "got 1 cells, expected 30000");
  EXPECT_ERROR(read(many), "got 1 cells, expected 30000 as in the header (");
}

// 200,000 names are compared by hashing, and a message lists only some of them.
TEST_F(Csv, many_columns) {
  constexpr int kColumns = 200'000;
  std::string contents = "c0", row = "0";
  for (int i = 1; i < kColumns; ++i) {
    contents += text(",c", i);
    row += text(",", i % 10);
  }
  contents += "\n" + row + "\n";
  EXPECT_EQ(read(contents).get(0)["x"].size(0), kColumns);
  const std::string error = error_of([&] { read(contents, {.targets = {"z"}}); });
  EXPECT_TRUE(test::contains(error, "c19 and 199980 more")) << error.substr(0, 500);
  EXPECT_LT(error.size(), 500U);
}

TEST_F(Csv, class_weights_and_identity) {
  const CsvOptions options{.columns = {{"k", CsvType::category}}, .targets = {"k"}};
  const CsvDataset csv = read("k,v\na,1\nb,2\na,3\nb,4\nb,5\n", options);
  EXPECT_EQ(class_counts(csv), (std::vector<int64_t>{2, 3}));
  const DataIdentity before = identify(csv);
  EXPECT_EQ(difference(identify(read("k,v\na,1\nb,2\na,3\nb,4\nb,5\n", options)), before), "");
  EXPECT_NE(difference(identify(read("k,v\na,1\nb,2\na,3\nb,4\nb,6\n", options)), before), "");
}

}  // namespace
}  // namespace binade::data::csv_dataset_test
