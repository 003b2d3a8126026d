// Loading a part of a state or one with other names, the report, metadata, and a head that is
// swapped. The argument is a folder for files.
#include <algorithm>

#include "expect.h"
using namespace binade;

struct Backbone : nn::Module {
  using Module::Module;
  nn::Linear a{*this, "a", {.in = 4, .out = 4}};
  nn::Linear b{*this, "b", {.in = 4, .out = 4}};
  Tensor forward(const Tensor& x) override { return b(relu(a(x))); }
};
struct Net : nn::Module {
  explicit Net(int64_t classes) : head(*this, "head", {.in = 4, .out = classes}) {}
  Backbone body{*this, "body"};
  nn::Linear head;
  Tensor forward(const Tensor& x) override { return head(body(x)); }
};
using Names = std::vector<std::string>;

void swapped_head(const std::string& folder) {
  Net old(10), fresh(3);
  const std::string path = folder + "/old.safetensors";
  train::save_model(path, old, {{"classes", "10"}, {"mean", "0.5"}});
  EXPECT(train::load_metadata(path) == train::Metadata({{"classes", "10"}, {"mean", "0.5"}}));
  const std::string error = error_of([&] { train::load_model(path, fresh); });
  EXPECT(contains(error, "head.weight") && contains(error, "[10, 4]") && contains(error, "[3, 4]"));
  EXPECT(!equal(fresh.body.a.weight, old.body.a.weight));  // nothing was loaded

  const Tensor head = fresh.head.weight.clone();
  const nn::LoadReport report = train::load_model(path, fresh, {.skip = {"head"}});
  EXPECT(report.loaded == Names({"body.a.weight", "body.a.bias", "body.b.weight", "body.b.bias"}));
  EXPECT(report.missing == Names({"head.weight", "head.bias"}));
  Names unused = report.unexpected;  // in the order of the file
  std::sort(unused.begin(), unused.end());
  EXPECT(unused == Names({"head.bias", "head.weight"}));
  EXPECT(equal(fresh.body.b.weight, old.body.b.weight) && equal(fresh.head.weight, head));
  EXPECT(contains(error_of([&] { train::load_model(path, fresh, {.skip = {"haed"}}); }), "'haed'"));

  // Only the head is trained.
  fresh.freeze("body");
  optim::SGD sgd(fresh.parameters(), {.lr = 1});
  cross_entropy(fresh(randn({5, 4})), randint(0, 3, {5})).backward();
  EXPECT(sgd.step() == StepOutcome::applied);
  EXPECT(equal(fresh.body.b.weight, old.body.b.weight) && !equal(fresh.head.weight, head));
}

void renamed() {
  Backbone saved;
  Net net(2);
  nn::LoadReport report =
      net.load_state(saved.state(), {.skip = {"head.*"}, .rename = {{"", "body"}}});
  EXPECT(report.loaded.size() == 4 && report.missing.size() == 2 && report.unexpected.empty());
  EXPECT(equal(net.body.a.weight, saved.a.weight));
  NamedTensors wrapped;
  for (const auto& [name, value] : net.state()) {
    wrapped.emplace_back("module." + name, value * 2);
  }
  report = net.load_state(wrapped, {.rename = {{"module", ""}}});
  EXPECT(report.loaded.size() == 6 && close(net.body.a.weight, saved.a.weight * 2));
  EXPECT(contains(error_of([&] {
                    net.load_state(wrapped, {.rename = {{"modul", ""}}});
                  }),
                  "'modul'"));
  report = net.load_state(saved.state(), {.strict = false});
  EXPECT(report.loaded.empty() && report.missing.size() == 6 && report.unexpected.size() == 4);
}

int main(int, char** arguments) {
  manual_seed(9);
  swapped_head(arguments[1]);
  renamed();
}
