// Every allowed order of scaling, unscaling, clipping and accumulating gives the same bits; orders
// that are not allowed do not compile or say why.
#include <binade/optim/accumulation.h>
#include <binade/optim/adamw.h>
#include <binade/optim/clip.h>
#include <binade/optim/loss_scaler.h>
#include <gtest/gtest.h>
#include <tests/optim/parameters.h>

#include <functional>
#include <type_traits>

namespace binade::optim::scaler_order_test {
namespace {

constexpr double kClip = 0.37;  // a factor that is no power of two

// A model with its optimizer and scaler; a seed gives the same one each time.
struct Trained {
  explicit Trained(DType dtype, double scale = 0x1p16, bool two_groups = false) : dtype_(dtype) {
    manual_seed(11);
    parameters.emplace(
        std::vector<ParameterSpec>{
            {"a", {5, 7}, dtype}, {"b", {33}, dtype, true}, {"c", {300}, dtype}},
        is_half(dtype));
    const ParameterList& all = parameters->list;
    const auto is_b = [](const Parameter& p) { return p.name == "b"; };
    const auto is_not_b = [](const Parameter& p) { return p.name != "b"; };
    std::vector<ParamGroup> groups = single_group(all);
    if (two_groups) {
      groups = {{all.filter(is_b)}, {all.filter(is_not_b)}};
    }
    adam.emplace(groups, AdamWOptions{.lr = 0.01f, .weight_decay = 0});
    scaler.emplace(LossScalerOptions{.init_scale = scale});
  }

  // The mean loss of a micro-batch.
  Tensor loss(int batch) const {
    manual_seed(static_cast<uint64_t>(100 + batch));
    Tensor sum_of_all;
    for (const Parameter& parameter : parameters->list) {
      const Tensor x = on_test_device(randn(parameter.value.sizes()));
      const Tensor part = mean(cast(parameter.value, DType::f32) * x) * 4.0;
      sum_of_all = sum_of_all.defined() ? sum_of_all + part : part;
    }
    return sum_of_all;
  }
  void backward(int batch, double weight = 1) { scaler->scale(loss(batch), weight).backward(); }
  StepOutcome step(const StepOptions& options = {}) { return scaler->step(*adam, options); }
  void clip() const { clip_grad_norm(parameters->list, kClip); }
  // Reads the true gradients, which is how gradients are unscaled here.
  void unscale() const {
    for (const Parameter& parameter : parameters->list) {
      (void)parameter.value.grad();
    }
  }

  std::string bits() const {
    std::string all;
    for (const Arena::Segment& segment : parameters->arena->segments()) {
      all += bytes_of(segment.values);
      all += segment.masters.defined() ? bytes_of(segment.masters) : "";
    }
    return all;
  }

  std::optional<TestParameters> parameters;
  std::optional<AdamW> adam;
  std::optional<LossScaler> scaler;

 private:
  DType dtype_;
};

using Step = std::function<void(Trained&, int step)>;

std::string bits_after(Trained trained, const Step& step) {
  const std::string before = trained.bits();
  for (int i = 0; i < 3; ++i) {
    step(trained, i);
  }
  EXPECT_NE(trained.bits(), before);
  EXPECT_EQ(trained.adam->step_count(), 3);
  return trained.bits();
}

TEST(ScalerOrder, AnyOrderOfUnscalingAndClippingGivesTheSameBits) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::string expected = bits_after(Trained(dtype), [](Trained& t, int i) {
      t.backward(i);
      EXPECT_EQ(t.step({.clip_norm = kClip}), StepOutcome::applied);
      EXPECT_GT(t.adam->last_norm(), kClip);  // it clips
    });
    const Step orders[] = {[](Trained& t, int i) {
                             t.backward(i);
                             t.clip();
                             EXPECT_EQ(t.step(), StepOutcome::applied);
                           },
                           [](Trained& t, int i) {
                             t.backward(i);
                             t.unscale();
                             t.unscale();
                             t.clip();
                             EXPECT_EQ(t.step(), StepOutcome::applied);
                           },
                           [](Trained& t, int i) {
                             t.backward(i);
                             t.clip();
                             t.unscale();
                             EXPECT_NEAR(grad_norm(t.parameters->list), kClip, 1e-4);
                             t.unscale();
                             EXPECT_EQ(t.step(), StepOutcome::applied);
                           },
                           [](Trained& t, int i) {
                             t.backward(i);
                             t.unscale();
                             (void)grad_norm(t.parameters->list, kInfinityNorm);
                             EXPECT_EQ(t.step({.clip_norm = kClip}), StepOutcome::applied);
                           }};
    for (const Step& order : orders) {
      EXPECT_EQ(bits_after(Trained(dtype), order), expected) << to_string(dtype);
      EXPECT_EQ(bits_after(Trained(dtype, 0x1p16, true), order), expected) << "two groups";
    }
  }
}

TEST(ScalerOrder, TheScaleDoesNotShowInTheUpdate) {
  const auto run = [](double scale, bool by_value) {
    return bits_after(Trained(DType::f32, scale), [by_value](Trained& t, int i) {
      t.backward(i);
      if (by_value) {
        clip_grad_value(t.parameters->list, 0.05);
      }
      t.clip();
      EXPECT_EQ(t.step(), StepOutcome::applied);
    });
  };
  for (bool by_value : {false, true}) {
    const std::string expected = run(1, by_value);
    for (double scale : {0x1p-24, 0x1p-3, 0x1p16, 0x1p24}) {
      EXPECT_EQ(run(scale, by_value), expected) << scale;
    }
    // The same without a scaler.
    const auto plain = bits_after(Trained(DType::f32), [by_value](Trained& t, int i) {
      t.loss(i).backward();
      if (by_value) {
        clip_grad_value(t.parameters->list, 0.05);
      }
      t.clip();
      EXPECT_EQ(t.adam->step(), StepOutcome::applied);
    });
    EXPECT_EQ(plain, expected);
  }
}

TEST(ScalerOrder, AWindowDividesOnceHoweverItIsSpelled) {
  for (DType dtype : {DType::f32, DType::f16}) {
    const std::string expected = bits_after(Trained(dtype), [](Trained& t, int i) {
      AccumulationWindow window(2, 16);
      t.backward(2 * i, window.add(16));
      EXPECT_EQ(t.step({.accumulating = !window.full()}), StepOutcome::accumulating);
      t.backward(2 * i + 1, window.add(16));
      EXPECT_EQ(t.step({.divisor = window.divisor(), .clip_norm = kClip}), StepOutcome::applied);
    });
    const Step orders[] = {[](Trained& t, int i) {  // the other one first
                             t.backward(2 * i + 1);
                             t.backward(2 * i);
                             EXPECT_EQ(t.step({.divisor = 2, .clip_norm = kClip}),
                                       StepOutcome::applied);
                           },
                           [](Trained& t, int i) {  // divided by the weights, clipped by hand
                             t.backward(2 * i, 0.5);
                             t.unscale();
                             t.backward(2 * i + 1, 0.5);
                             t.clip();
                             EXPECT_EQ(t.step(), StepOutcome::applied);
                           }};
    for (const Step& order : orders) {
      EXPECT_EQ(bits_after(Trained(dtype), order), expected) << to_string(dtype);
    }
  }
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_refused(const std::function<void(Trained&)>& f, const std::string& reason) {
  Trained t(DType::f32);
  const std::string before = t.bits();
  const std::string message = refusal([&] { f(t); });
  EXPECT_NE(message.find(reason), std::string::npos) << message;
  EXPECT_EQ(t.bits(), before);
  t.adam->zero_grad();  // and all is well again
  t.backward(0);
  EXPECT_EQ(t.step({.divisor = 2, .clip_norm = kClip}), StepOutcome::applied);
}

TEST(ScalerOrder, RefusesWhatWouldClipTheWrongThing) {
  for (bool by_value : {false, true}) {
    const auto clip = [by_value](const Trained& t, double limit) {
      by_value ? clip_grad_value(t.parameters->list, limit)
               : (void)clip_grad_norm(t.parameters->list, limit);
    };
    for (double limit : {1e-3, 1e3}) {  // whether or not it changes anything
      expect_refused(
          [&](Trained& t) {
            t.backward(0);
            clip(t, limit);
            t.backward(1);
          },
          "clip after the last micro-batch");
      expect_refused(
          [&](Trained& t) {
            t.backward(0);
            clip(t, limit);
            (void)t.step({.divisor = 2});
          },
          "the limit held for the sum of the window, not for its mean");
    }
  }
  expect_refused(
      [](Trained& t) {
        t.backward(0);
        t.clip();
        (void)t.step({.clip_norm = kClip});
      },
      "use one of them");
}

TEST(ScalerOrder, RefusesMicroBatchesOfDifferentScale) {
  expect_refused(
      [](Trained& t) {
        t.backward(0);
        LossScaler other({.init_scale = 8});
        other.scale(t.loss(1)).backward();
      },
      "got a loss scale of 8, but a gradient is held at scale 65536");
  expect_refused(
      [](Trained& t) {
        t.backward(0);
        t.loss(1).backward();
      },
      "got a loss scale of 1, but a gradient is held at scale 65536");
}

// A scaled loss cannot be mistaken for a loss.
template <class T>
concept Addable = requires(T a, const Tensor& t) {
  a + t;
};
static_assert(!std::is_convertible_v<ScaledLoss, Tensor>);
static_assert(!Addable<ScaledLoss> && Addable<Tensor>);

}  // namespace
}  // namespace binade::optim::scaler_order_test
