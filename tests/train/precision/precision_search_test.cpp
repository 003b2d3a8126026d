// Tests the precision search: the modules that it finds keep the loss, fewer or other modules do
// not, and its rules describe the model that was measured.
#include <binade/binade.h>
#include <binade/train/model_file.h>
#include <binade/train/precision/precision_search.h>
#include <gtest/gtest.h>
#include <tests/support/temporary_directory.h>

#include <cmath>

namespace binade::train::precision_search_test {
namespace {

constexpr int64_t kFeatures = 24, kLabels = 6, kRowsOfSearch = 16;

struct SearchMlp : nn::Module {
  nn::Linear fc1{*this, "fc1", {.in = kFeatures, .out = 40}};
  nn::Linear fc2{*this, "fc2", {.in = 40, .out = 40}};
  nn::Linear fc3{*this, "fc3", {.in = 40, .out = 40}};
  nn::Linear head{*this, "head", {.in = 40, .out = kLabels}};
  Tensor forward(const Tensor& x) override { return head(tanh(fc3(tanh(fc2(tanh(fc1(x))))))); }
};

struct SearchNormNet : nn::Module {
  nn::Linear fc1{*this, "fc1", {.in = kFeatures, .out = 32}};
  nn::LayerNorm norm1{*this, "norm1", {.normalized_shape = {32}}};
  nn::Linear fc2{*this, "fc2", {.in = 32, .out = 32}};
  nn::LayerNorm norm2{*this, "norm2", {.normalized_shape = {32}}};
  nn::Linear head{*this, "head", {.in = 32, .out = kLabels}};
  Tensor forward(const Tensor& x) override { return head(gelu(norm2(fc2(gelu(norm1(fc1(x))))))); }
};

// The difference of two large numbers: the module's rounding error exceeds the result.
struct SearchGap : nn::Module {
  using Module::Module;
  nn::Linear body{*this, "body", {.in = 32, .out = 32}};
  Tensor forward(const Tensor& x) override { return (body(x) + 300.0) - 300.0; }
};

struct SearchGapNet : nn::Module {
  nn::Linear fc1{*this, "fc1", {.in = kFeatures, .out = 32}};
  SearchGap gap{*this, "gap"};
  nn::Linear fc2{*this, "fc2", {.in = 32, .out = 32}};
  nn::Linear head{*this, "head", {.in = 32, .out = kLabels}};
  Tensor forward(const Tensor& x) override { return head(tanh(fc2(tanh(gap(tanh(fc1(x))))))); }
};

template <class Net>
struct Search {
  Search() : step(classification_step) {
    manual_seed(9);
    net = std::make_unique<Net>();
    net->to(Device{}, Precision::mixed(DType::f16));
    for (int i = 0; i < 6; ++i) {
      data::Batch batch;
      batch.set("images", randn({kRowsOfSearch, kFeatures}));
      batch.set("labels", randint(0, kLabels, {kRowsOfSearch}));
      batch.size = kRowsOfSearch;
      batches.push_back({batch, 1, generator()});
    }
  }
  StepToDiagnose what() const {
    return {.model = *net,
            .step = step,
            .parameters = net->parameters(),
            .batches = batches,
            .scale = 1024};
  }
  // Searches for a share of the difference that the model has without rules.
  FoundPrecision find(double share) const {
    const double none = find_f32(what(), {.loss_difference = 1e6}).none.measured;
    return find_f32(what(), {.loss_difference = share * none});
  }
  TrainingStep step;
  std::unique_ptr<Net> net;
  std::vector<StepBatch> batches;
};

TEST(PrecisionSearch, FindsTheModuleThatErrs) {
  const Search<SearchGapNet> search;
  const FoundPrecision found = search.find(0.1);
  EXPECT_TRUE(found.reached) << to_text(found);
  EXPECT_EQ(found.chosen.modules, std::vector<std::string>{"gap"}) << to_text(found);
  EXPECT_TRUE(found.is_fewest);
  EXPECT_LE(found.chosen.measured, found.wanted);
  EXPECT_EQ(found.budgets[0].modules[0], "gap");
  ASSERT_EQ(found.random.size(), 5u);
  int others = 0;
  for (const TriedModules& random : found.random) {
    EXPECT_EQ(random.modules.size(), found.chosen.modules.size());
    // If the result of gap.body is f32, the rest of gap is f32, too.
    if (random.modules[0] != "gap.body") {
      ++others;
      EXPECT_GT(random.measured, 5 * found.wanted) << to_text(found);
    }
  }
  EXPECT_GE(others, 2);
}

TEST(PrecisionSearch, ChosenModulesKeepTheLossAndFewerDoNot) {
  const Search<SearchMlp> mlp;
  const Search<SearchNormNet> norms;
  for (const double share : {0.7, 0.4}) {
    for (const FoundPrecision& found : {mlp.find(share), norms.find(share)}) {
      EXPECT_GE(found.none.measured, found.wanted);
      if (found.reached) {
        EXPECT_FALSE(found.chosen.modules.empty());
        EXPECT_LE(found.chosen.measured, found.wanted);
      }
    }
  }
}

TEST(PrecisionSearch, NoModuleWhereNoneIsNeeded) {
  const Search<SearchMlp> search;
  const FoundPrecision found = find_f32(search.what(), {.loss_difference = 1});
  EXPECT_TRUE(found.reached);
  EXPECT_TRUE(found.chosen.modules.empty());
  EXPECT_TRUE(found.is_fewest);
  EXPECT_EQ(found.precision, Precision::mixed(DType::f16));
  EXPECT_NE(to_text(found).find("0 modules in f32 keep it"), std::string::npos);
}

// The rules, read from their file, give a model with the measured loss.
TEST(PrecisionSearch, RulesAreThoseOfTheMeasurement) {
  const Search<SearchGapNet> search;
  const std::string before = state_hash(search.net->exact_state());
  const FoundPrecision found = search.find(0.1);
  EXPECT_EQ(state_hash(search.net->exact_state()), before);
  EXPECT_EQ(search.net->precision(), Precision::mixed(DType::f16));

  const testing::TemporaryDirectory directory;
  write_file_durably(directory / "rules.json", to_rules(found));
  const Precision read = read_precision(directory / "rules.json", Precision::mixed(DType::f16));
  EXPECT_EQ(read, found.precision);
  SearchGapNet other;
  other.to(Device{}, read);
  other.load_state(search.net->exact_state());
  EXPECT_EQ(other.gap.body.weight.dtype(), DType::f32);
  EXPECT_EQ(other.fc1.weight.dtype(), DType::f16);
  double squares = 0;
  for (const StepBatch& micro : search.batches) {
    StepToDiagnose one = search.what();
    one.batches = {micro};
    const NoGradGuard guard;
    const double loss = classification_step(other, micro.batch).loss.item();
    const GradGuard record;
    squares += std::pow(loss - shadow(one).exact, 2);
  }
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(search.batches.size())),
              found.chosen.measured, 1e-12);
}

TEST(PrecisionSearch, Mistakes) {
  const Search<SearchMlp> search;
  const auto expect_error = [](const auto& call, const std::string& words) {
    try {
      call();
      FAIL() << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  expect_error([&] { find_f32(search.what(), {.loss_difference = 0}); }, "a loss difference of 0");
  search.net->to_full_precision();
  expect_error([&] { find_f32(search.what(), {.loss_difference = 1}); }, "full precision");
}

}  // namespace
}  // namespace binade::train::precision_search_test
