// Tests the lens in a training loop: what it records, its names, and that it changes nothing.
#include <binade/binade.h>
#include <gtest/gtest.h>
#include <tests/data/fake_dataset.h>
#include <tests/kernels/support/test_device.h>
#include <tests/support/temporary_directory.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

namespace binade::train::lens_test {
namespace {

class SmallModel : public nn::Module {
 public:
  SmallModel() : first({.in = 48, .out = 16}), second({.in = 16, .out = 10}) {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override {
    return second(relu(first(flatten(x.to(first.weight.dtype()), 1))));
  }
  nn::Linear first, second;
};

struct SmallRun {
  explicit SmallRun(double scale = 1024, Precision precision = Precision::mixed(DType::f16),
                    float lr = 0.01f) {
    manual_seed(7);
    model.emplace();
    model->to(kernels::test_device(), precision);
    adam.emplace(model->parameters(), optim::AdamWOptions{.lr = lr, .weight_decay = 0});
    scaler.emplace(optim::LossScalerOptions{.init_scale = scale});
  }
  void backward(int batch) {
    manual_seed(static_cast<uint64_t>(batch));
    const Tensor images = randn({8, 3, 4, 4}).to(kernels::test_device());
    const Tensor labels = zeros({8}, DType::i64).to(kernels::test_device());
    scaler->scale(cross_entropy((*model)(images), labels)).backward();
  }

  std::optional<SmallModel> model;
  std::optional<optim::AdamW> adam;
  std::optional<optim::LossScaler> scaler;
};

const LensRecord& record(const Lens& lens, LensKind kind, const std::string& tensor) {
  const auto& all = lens.records();
  const auto found = std::find_if(all.begin(), all.end(), [&](const LensRecord& r) {
    return r.kind == kind && r.tensor == tensor;
  });
  if (found == all.end()) {
    std::string names;
    for (const LensRecord& r : all) {
      names += text(" ", to_string(r.kind), ":", r.tensor);
    }
    fail("no record ", to_string(kind), " ", tensor, "; there are", names);
  }
  return *found;
}

void expect_same(const ExponentCounts& got, const ExponentCounts& expected,
                 const std::string& what) {
  EXPECT_EQ(got.numel(), expected.numel()) << what;
  EXPECT_EQ(got.zeros(), expected.zeros()) << what;
  EXPECT_EQ(got.largest(), expected.largest()) << what;
  EXPECT_EQ(got.smallest(), expected.smallest()) << what;
  EXPECT_EQ(got.in_f16().flushed, expected.in_f16().flushed) << what;
  EXPECT_EQ(got.changed_in_bf16(), expected.changed_in_bf16()) << what;
  for (int e = ExponentCounts::kLeast - 1; e <= ExponentCounts::kMost; ++e) {
    EXPECT_EQ(got.at(e), expected.at(e)) << what << " exponent " << e;
  }
}

TEST(Lens, SeesAllKindsOfTensorsPerLayer) {
  SmallRun run;
  Lens lens(run.model->parameters(), *run.adam, {.every = 2});
  lens.begin(0);
  run.backward(1);
  const Parameter weight = run.model->parameters()[0];
  ASSERT_EQ(weight.name, "first.weight");
  const ExponentCounts gradient(count_exponents(weight.leaf().buffer), 1024);
  const Tensor master = weight.value.detach();
  lens.before_update();
  (void)run.scaler->step(*run.adam).value();
  lens.end();
  const LensRecord& seen = record(lens, LensKind::weight_gradient, "first.weight");
  EXPECT_EQ(seen.layer, "first");
  EXPECT_EQ(seen.scale, 1024);
  expect_same(seen.counts, gradient, "gradient");
  EXPECT_EQ(record(lens, LensKind::weight, "first.weight").counts.numel(), 48 * 16);
  EXPECT_GT(record(lens, LensKind::weight, "first.weight").counts.changed_in_bf16(), 0);
  const LensRecord& update = record(lens, LensKind::update, "second.weight");
  EXPECT_NEAR(update.counts.largest(), 0.01, 1e-4);  // Adam's first step
  EXPECT_EQ(record(lens, LensKind::activation, "relu").counts.numel(), 8 * 16);
  EXPECT_EQ(record(lens, LensKind::activation_gradient, "relu").counts.numel(), 8 * 16);
  EXPECT_EQ(record(lens, LensKind::activation_gradient, "relu").scale, 1024);
  int of_second = 0;
  for (const LensRecord& r : lens.records()) {
    of_second += r.kind == LensKind::activation && r.layer == "second";
    EXPECT_NE(r.tensor.find(r.layer), std::string::npos);
  }
  EXPECT_GE(of_second, 1);
  // The lens does not observe the next step.
  lens.begin(1);
  run.backward(2);
  lens.before_update();
  (void)run.scaler->step(*run.adam).value();
  lens.end();
  EXPECT_EQ(lens.records().front().step, 0);
}

TEST(Lens, TrueValuesDoNotDependOnTheScale) {
  const auto look = [](optim::LossScaler scaler) {
    SmallRun run(1, Precision::full());
    run.scaler = std::move(scaler);
    Lens lens(run.model->parameters(), *run.adam);
    lens.begin(0);
    run.backward(1);
    run.backward(2);  // micro-batches count as one tensor
    lens.before_update();
    (void)run.scaler->step(*run.adam).value();
    lens.end();
    return lens.records();
  };
  const auto plain = look(optim::LossScaler({.init_scale = 1}));
  const auto scaled = look(optim::LossScaler({.init_scale = 0x1p16}));
  const auto odd = look(optim::LossScaler::fixed(1000));  // no power of two: divided, rounded once
  ASSERT_EQ(plain.size(), scaled.size());
  ASSERT_EQ(plain.size(), odd.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    expect_same(scaled[i].counts, plain[i].counts, plain[i].tensor);
    EXPECT_EQ(scaled[i].lost.in_f16, plain[i].lost.in_f16);
    EXPECT_EQ(odd[i].counts.numel(), plain[i].counts.numel());
    EXPECT_NEAR(odd[i].counts.largest(), plain[i].counts.largest(),
                1e-3 * plain[i].counts.largest());
  }
}

// The effects of storing the values in 16 bits, found by casting each.
struct Effects {
  HalfCounts f16;
  int64_t zeros = 0, changed_in_bf16 = 0;
};
Effects by_casts(const Tensor& values) {
  const Tensor host = values.to(Device{});
  Effects fates;
  for (int64_t i = 0; i < host.numel(); ++i) {
    const double x = host.at(i), cast = std::abs(static_cast<double>(half(x)));
    fates.zeros += x == 0;
    fates.f16.overflow += std::isinf(cast);
    fates.f16.flushed += x != 0 && cast == 0;
    fates.f16.subnormal += cast != 0 && cast < 0x1p-14;
    fates.changed_in_bf16 += static_cast<double>(bfloat16(x)) != x;
  }
  return fates;
}

TEST(Lens, SharesAreThoseOfACastOfEveryElement) {
  // With f32 gradients and masters, nothing has been rounded to 16 bits yet.
  SmallRun run(0x1p10, Precision::autocast(DType::f16));
  Lens lens(run.model->parameters(), *run.adam);
  lens.begin(0);
  run.backward(1);
  std::map<std::string, Effects> gradients, weights;
  for (const Parameter& parameter : run.model->parameters()) {
    gradients[parameter.name] = by_casts(parameter.value.grad());
    weights[parameter.name] = by_casts(parameter.value.detach());
  }
  lens.before_update();
  (void)run.scaler->step(*run.adam).value();
  lens.end();
  int64_t flushed = 0, subnormal = 0, seen = 0;
  for (const LensRecord& r : lens.records()) {
    if (r.kind == LensKind::weight_gradient || r.kind == LensKind::weight) {
      const Effects& expected = (r.kind == LensKind::weight ? weights : gradients).at(r.tensor);
      EXPECT_EQ(r.counts.zeros(), expected.zeros) << r.tensor;
      EXPECT_EQ(r.counts.in_f16().overflow, expected.f16.overflow) << r.tensor;
      EXPECT_EQ(r.counts.in_f16().flushed, expected.f16.flushed) << r.tensor;
      EXPECT_EQ(r.counts.in_f16().subnormal, expected.f16.subnormal) << r.tensor;
      EXPECT_EQ(r.counts.changed_in_bf16(), expected.changed_in_bf16) << r.tensor;
      flushed += expected.f16.flushed;
      subnormal += expected.f16.subnormal;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 8);
  EXPECT_GT(flushed + subnormal, 0);  // there were values to count
}

TEST(Lens, LeavesOutCopies) {
  SmallRun run(1024, Precision::autocast(DType::f16));
  Lens lens(run.model->parameters(), *run.adam);
  lens.begin(0);
  run.backward(1);
  lens.before_update();
  (void)run.scaler->step(*run.adam).value();
  lens.end();
  (void)record(lens, LensKind::activation, "first/linear");
  for (const LensRecord& r : lens.records()) {
    EXPECT_EQ(r.tensor.find("cast"), std::string::npos) << r.tensor;
    EXPECT_EQ(r.tensor.find("to_device"), std::string::npos) << r.tensor;
  }
}

TEST(Lens, CountsUpdatesThatNeedAMaster) {
  SmallRun run(1024, Precision::mixed(DType::f16), 1e-6f);
  Lens lens(run.model->parameters(), *run.adam, {.kinds = {LensKind::update}});
  lens.begin(0);
  run.backward(1);
  lens.before_update();
  (void)run.scaler->step(*run.adam).value();
  lens.end();
  const LensRecord& update = record(lens, LensKind::update, "first.weight");
  EXPECT_GT(update.lost.changed, 700);
  EXPECT_GT(update.lost.in_f16, update.lost.changed * 9 / 10);  // steps of 1e-6 for weights of 0.1
  EXPECT_LE(update.lost.in_f16, update.lost.in_bf16);
  EXPECT_EQ(lens.records().size(), 4u);
}

TEST(Lens, ChoosesLayersAndWritesLines) {
  const binade::testing::TemporaryDirectory directory;
  const std::string file = directory.path() + "/lens.jsonl";
  SmallRun run;
  Lens lens(run.model->parameters(), *run.adam, {.every = 1, .layers = "sec*", .file = file});
  for (int step = 0; step < 2; ++step) {
    lens.begin(step);
    run.backward(step);
    lens.before_update();
    (void)run.scaler->step(*run.adam).value();
    lens.end();
    for (const LensRecord& r : lens.records()) {
      EXPECT_EQ(r.layer, "second");
    }
  }
  const LensReport report = read_lens(file);
  EXPECT_EQ(report.rows.size(), lens.records().size());
  EXPECT_EQ(report.steps, 2);
  EXPECT_EQ(report.largest_gradient, lens.gradients().largest());
  EXPECT_EQ(report.static_scale, static_scale(lens.gradients().largest()));
  const HalfCounts unscaled = lens.gradients().in_f16();
  EXPECT_EQ(report.scales[0].flushed, static_cast<double>(unscaled.flushed));
  EXPECT_EQ(report.scales[0].subnormal, static_cast<double>(unscaled.subnormal));
  const HalfCounts high = lens.gradients().in_f16(20);
  EXPECT_EQ(report.scales.back().overflow, static_cast<double>(high.overflow));
  for (const std::string& page : {to_text(report), to_html(report)}) {
    for (const char* part : {"second.weight", "static loss scale", "32768"}) {
      EXPECT_NE(page.find(part), std::string::npos) << part;
    }
    EXPECT_EQ(page.find("first.weight"), std::string::npos);
  }
  EXPECT_NE(to_text(report).find("\nweight_gradient\n"), std::string::npos);
  EXPECT_NE(to_html(report).find(">weight gradients<"), std::string::npos);
  EXPECT_EQ(to_html(report).find("://"), std::string::npos);  // the page needs no other file
  // Over time there is one moment per tensor and step; pages show one run or two.
  ASSERT_EQ(report.moments.size(), 2 * report.rows.size());
  EXPECT_EQ(report.moments.front().step, 0);
  EXPECT_EQ(report.moments.back().step, 1);
  double elements = 0;
  for (const LensMoment& moment : report.moments) {
    elements += moment.row == 0 ? moment.elements : 0;
  }
  EXPECT_EQ(elements, report.rows[0].elements);
  EXPECT_NE(to_html(report).find("\"steps\":[0,1]"), std::string::npos);
  const std::string both = to_html(std::vector<NamedLens>{{"one<", report}, {"two", report}});
  for (const char* part : {"one&lt;", "{\"name\":\"one\\u003c\"", "{\"name\":\"two\""}) {
    EXPECT_NE(both.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(both.find("://"), std::string::npos);
  keep_lens_lines(file, 1);
  EXPECT_EQ(read_lens(file).last_step, 0);
  write_file_durably(file, "{\"step\": 1}\n");
  EXPECT_THROW(read_lens(file), Error);
  EXPECT_THROW(read_lens(directory.path() + "/none"), Error);
  EXPECT_THROW(Lens(run.model->parameters(), *run.adam, {.every = 0}), Error);
}

// The elements of a cell go from the step through the file to the page.
TEST(Lens, NamesTheWorstElementsOfEachExponent) {
  const binade::testing::TemporaryDirectory directory;
  const std::string file = directory.path() + "/lens.jsonl";
  for (const size_t most : {size_t{0}, size_t{3}}) {
    SmallRun run;
    Lens lens(run.model->parameters(), *run.adam, {.every = 1, .file = file, .worst = most});
    lens.begin(0);
    run.backward(0);
    const Parameter weight = run.model->parameters()[0];
    WorstElements gradients(most);
    gradients.add(weight.leaf().buffer, 1024);
    lens.before_update();
    (void)run.scaler->step(*run.adam).value();
    lens.end();
    const LensRecord& seen = record(lens, LensKind::weight_gradient, "first.weight");
    ASSERT_EQ(seen.worst.size(), gradients.all().size());
    ASSERT_EQ(seen.worst.empty(), most == 0);
    const LensReport report = read_lens(file);
    const auto row = std::find_if(report.rows.begin(), report.rows.end(), [](const LensRow& r) {
      return r.tensor == "first.weight" && r.kind == "weight_gradient";
    });
    ASSERT_NE(row, report.rows.end());
    const LensMoment& moment =
        *std::find_if(report.moments.begin(), report.moments.end(), [&](const LensMoment& m) {
          return m.row == static_cast<size_t>(row - report.rows.begin());
        });
    size_t next = 0;
    for (const auto& [exponent, elements] : gradients.all()) {
      EXPECT_LE(elements.size(), most);
      for (const WorstElement& e : elements) {
        ASSERT_LT(next, moment.worst.size());
        const LensWorst& read = moment.worst[next++];
        EXPECT_EQ(read.exponent, exponent);
        EXPECT_EQ(read.place, (std::vector<int64_t>{e.place[0], e.place[1]}));
        EXPECT_EQ(static_cast<float>(read.value), e.value);
        EXPECT_EQ(static_cast<float>(read.in_f16), e.in_f16);
        EXPECT_EQ(static_cast<float>(read.in_bf16), e.in_bf16);
      }
    }
    EXPECT_EQ(next, moment.worst.size());
    const std::string html = to_html(report);
    EXPECT_EQ(html.find("\"worst\":[[") != std::string::npos, most > 0);
    EXPECT_EQ(html.find("too large for the elements"), std::string::npos);
  }
}

TEST(Lens, FollowsNoLinkBelowTheRun) {
  const binade::testing::TemporaryDirectory directory;
  const auto files = file_system_below(directory.path());
  const std::string file = directory / "lens.jsonl", precious = directory / "precious";
  SmallRun run;
  Lens lens(run.model->parameters(), *run.adam, {.every = 1, .file = file, .files = files.get()});
  write_file_durably(precious, "p");
  std::filesystem::remove(file);
  std::filesystem::create_symlink(precious, file);
  lens.begin(0);
  run.backward(0);
  lens.before_update();
  EXPECT_THROW(lens.end(), FileError);
  EXPECT_THROW(read_lens(file, *files), FileError);
  EXPECT_EQ(read_file(precious).size(), 1u);
}

// Returns the weights after a run of the Trainer.
std::vector<double> train(const TrainerOptions& options, int64_t epochs) {
  SmallRun run(0x1p22);  // the first steps overflow
  TrainerOptions own = options;
  own.epochs = epochs;
  own.progress = false;
  Trainer trainer({.model = *run.model, .optimizer = *run.adam, .scaler = &*run.scaler},
                  std::move(own));
  const data::test::FakeDataset pictures(20);
  data::Loader loader(pictures,
                      {.batch = 4, .workers = 0, .seed = 3, .device = kernels::test_device()});
  trainer.fit(loader);
  std::vector<double> values;
  for (const auto& [name, tensor] : run.model->state()) {
    const Tensor host = tensor.to(Device{});
    for (int64_t i = 0; i < host.numel(); ++i) {
      values.push_back(host.at(i));
    }
  }
  return values;
}

TEST(Lens, OfTheTrainerChangesNothingAndResumes) {
  const binade::testing::TemporaryDirectory directory;
  for (int64_t accumulate : {1, 2}) {
    const std::vector<double> expected = train({.accumulate = accumulate}, 4);
    const std::string run = directory.path() + text("/", accumulate);
    std::filesystem::create_directory(run);
    TrainerOptions options{.accumulate = accumulate, .run = run, .lens = 3};
    (void)train(options, 2);
    options.resume = true;
    EXPECT_EQ(train(options, 4), expected);
    const LensReport report = read_lens(run + "/lens.jsonl");
    const int64_t steps = 4 * (accumulate == 1 ? 5 : 3);
    EXPECT_EQ(report.steps, (steps + 2) / 3);
    EXPECT_EQ(report.last_step, (steps - 1) / 3 * 3);
    EXPECT_TRUE(std::filesystem::exists(run + "/lens.html"));
  }
  EXPECT_THROW(train({.lens = 3}, 1), Error);  // without a directory
}

}  // namespace
}  // namespace binade::train::lens_test
