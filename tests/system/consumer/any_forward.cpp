// A user's modules: forward() of any signature, registration, lists and functions, and what happens
// if a registration is forgotten.
#include "expect.h"
using namespace binade;

// Several inputs, one of them optional.
struct Masked : nn::Callable<Masked> {
  using Callable::Callable;
  nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
  Tensor forward(const Tensor& x, const Tensor& mask = {}) {
    return mask.defined() ? masked_fill(fc(x), mask, 0) : fc(x);
  }
};

// A struct as result; a list; a parameter and a buffer of its own.
struct Vae : nn::Callable<Vae> {
  struct Output {
    Tensor image, mean, log_variance;
  };
  nn::List<nn::Linear> encoder{*this, "encoder"};
  nn::Linear mean{*this, "mean", {.in = 8, .out = 2}};
  nn::Linear log_variance{*this, "log_variance", {.in = 8, .out = 2}};
  nn::Linear decoder{*this, "decoder", {.in = 2, .out = 6}};
  nn::Parameter gain{*this, "gain", ones({1})};
  nn::Buffer calls{*this, "calls", zeros({1}, DType::i64)};
  Vae() {
    encoder.emplace({.in = 6, .out = 8});
    encoder.emplace({.in = 8, .out = 8});
  }
  Output forward(Tensor x) {
    for (nn::Linear& layer : encoder) {
      x = relu(layer(x));
    }
    calls += 1;
    const Tensor m = mean(x), v = log_variance(x);
    return {decoder(m + exp(v * 0.5) * randn_like(m)) * gain, m, v};
  }
};

// The old form of registration stays valid.
struct Old : nn::Module {
  nn::Linear fc{{.in = 4, .out = 4}};
  Tensor scale = ones({4});
  Old() {
    register_module("fc", fc);
    register_parameter("scale", scale);
  }
  Tensor forward(const Tensor& x) override { return fc(x) * scale; }
};

// A module that is not registered, called in each of the three ways in which it can be used.
enum class Call { module, forward, parameter };
struct Forgetful : nn::Module {
  explicit Forgetful(Call call) : call(call) {}
  nn::Linear first{*this, "first", {.in = 4, .out = 4}};
  nn::Linear second{{.in = 4, .out = 4}};
  Call call;
  Tensor forward(const Tensor& x) override {
    const Tensor h = first(x);
    return call == Call::module    ? second(h)
           : call == Call::forward ? second.forward(h)
                                   : linear(h, second.weight);
  }
};

// A child with its own parameter, called by forward().
struct Scale : nn::Module {
  nn::Parameter factor{*this, "factor", ones({4})};
  Tensor forward(const Tensor& x) override { return x * factor; }
};
struct Scaled : nn::Module {
  nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
  Scale scale;
  nn::Dropout dropout{{.p = 0.5}};
  Tensor forward(const Tensor& x) override { return dropout.forward(scale.forward(fc(x))); }
};

void signatures() {
  Masked masked;
  const Tensor x = randn({3, 4}), mask = x > 0;
  EXPECT(close(masked(x, mask), masked_fill(masked(x), mask, 0)));
  nn::Module& base = masked;  // one tensor is enough for it
  EXPECT(close(base(x), masked(x)));

  Vae vae;
  const auto [image, mean, log_variance] = vae(randn({5, 6}));
  EXPECT(image.sizes() == Dims({5, 6}) && mean.sizes() == Dims({5, 2}));
  (sum(square(image)) + sum(log_variance)).backward();
  EXPECT(vae.encoder[1].weight.grad().defined() && vae.gain.grad().defined());
  EXPECT(vae.calls.item() == 1);
  EXPECT(vae.state().size() == 12);
  nn::Module& vae_base = vae;
  EXPECT(contains(error_of([&] { vae_base(randn({5, 6})); }), "call it by its own type"));
  EXPECT(contains(error_of([&] { vae(randn({5, 7})); }), "(in module encoder.0)"));

  nn::Sequential net;
  net.add<Masked>();
  net.add<nn::Lambda>([](const Tensor& t) { return t * 2; });
  net.to({}, Precision::mixed(DType::f16));
  EXPECT(net(x).dtype() == DType::f16);
  EXPECT(net.named_parameters()[0].first == "0.fc.weight");
}

void registration() {
  Old old;
  Scale scale;
  EXPECT(old.named_parameters().size() == 3);
  EXPECT(contains(error_of([&] { old.register_module("fc", scale); }), "'fc' is used twice"));
  for (const Call call : {Call::module, Call::forward, Call::parameter}) {
    Forgetful net(call);
    const auto texts = warnings_of([&] {
      for (int i = 0; i < 3; ++i) {
        sum(net(randn({2, 4}))).backward();
      }
    });
    EXPECT(texts.size() == 1);
    EXPECT(
        contains(texts[0], "binade::nn::Linear (weight [4, 4], bias [4]) runs in the forward of"));
    EXPECT(contains(texts[0], "neither trained, saved nor moved"));
    EXPECT(contains(texts[0], "call register_module(name, member)"));
    EXPECT(net.parameters().size() == 2);
  }
  Scaled scaled;
  const auto texts = warnings_of([&] { sum(scaled(randn({2, 4}))).backward(); });
  EXPECT(texts.size() == 1 && contains(texts[0], "Scale (factor [4])"));
  scaled.eval();
  const NoGradGuard guard;
  const auto later = warnings_of([&] { scaled(randn({2, 4})); });
  EXPECT(later.size() == 1 && contains(later[0], "Dropout") && contains(later[0], "training mode"));
}

// Models that are right give no warning, also if parts of them run alone or by forward().
void no_false_alarms() {
  struct Whole : nn::Module {
    Scale scale{};
    nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
    nn::Linear tied{*this, "tied", {.in = 4, .out = 4}};
    nn::Dropout dropout{*this, "dropout", {.p = 0.5}};
    Whole() {
      register_module("scale", scale);
      tied.weight = fc.weight;
    }
    Tensor forward(const Tensor& x) override {
      return dropout.forward(tied.forward(scale.forward(fc.forward(x))));
    }
  };
  const auto texts = warnings_of([] {
    Whole whole;
    const Tensor x = randn({2, 4});
    sum(whole.fc(x)).backward();
    sum(whole(x)).backward();
    optim::SGD sgd(whole.parameters(), {.lr = 0.1});
    sum(whole(x)).backward();
    EXPECT(sgd.step() == StepOutcome::applied);
    whole.eval();
    whole(x);
    Forgetful meant(Call::forward);
    meant.second.allow_unregistered();
    sum(meant(x)).backward();
    Forgetful frozen(Call::forward);
    frozen.second.freeze();
    sum(frozen(x)).backward();
    Forgetful elsewhere(Call::forward);
    optim::SGD own(elsewhere.second.parameters(), {.lr = 0.1});
    sum(elsewhere(x)).backward();
    Scale tied_scale;  // its only parameter is one of the other model's
    tied_scale.factor = whole.scale.factor;
    sum(tied_scale(x)).backward();
    sum(whole(x)).backward();
  });
  for (const std::string& text : texts) {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  EXPECT(texts.empty());
}

int main() {
  signatures();
  registration();
  no_false_alarms();
}
