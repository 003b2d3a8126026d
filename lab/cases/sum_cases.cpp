// Cases that add elements up: reduce, scan and histogram.
#include <binade/lab/cases/case_internal.h>

#include <cmath>

namespace binade::lab {
namespace {

const std::vector<Sizes> kLengths = {
    {{"n", 1}}, {{"n", 33}}, {{"n", 1000}}, {{"n", 4096}}, {{"n", 20011}}};

std::vector<CaseParameter> one_array(const char* extent_of_y) {
  return {{.name = "x", .role = Role::input, .extents = {"n"}},
          {.name = "y", .role = Role::output, .extents = {extent_of_y}},
          {.name = "n", .role = Role::size}};
}

// The prefix sums of x, and prefix sums of |x| for the bounds.
Expected prefix_sums(const Numbers& numbers) {
  const Array& x = numbers.in("x");
  Expected sums{Array(x.size()), Array(x.size())};
  double sum = 0, sizes = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sum += x[i];
    sizes += std::abs(x[i]);
    sums.values[i] = sum;
    sums.bounds[i] = sizes * (static_cast<double>(i) + 4) * numbers.unit;
  }
  return sums;
}

void fill_terms(Numbers& numbers, const std::string& set) {
  CaseRandom random(numbers.seed);
  fill_array(numbers.arrays.at("x"), set, random, {.range = 2, .large = 1e3});
}

}  // namespace

Case reduce_case() {
  Case c;
  c.name = "reduce";
  c.summary = "y[0] = x[0] + ... + x[n - 1]";
  c.parameters = one_array("1");
  c.size_order = {"n"};
  c.shapes = kLengths;
  c.inputs = {{"normal"}, {"large", false}, {"-inf"}, {"equal"}, {"nan"}};
  c.lesson = "lesson 4, \"reductions, races and determinism\"";
  c.fill = fill_terms;
  c.reference = [](const Numbers& numbers) -> std::map<std::string, Expected> {
    const Expected sums = prefix_sums(numbers);
    return {{"y", {{sums.values.back()}, {sums.bounds.back()}}}};
  };
  c.flops = [](const Sizes& s) { return static_cast<double>(s.at("n")); };
  return c;
}

Case scan_case() {
  Case c;
  c.name = "scan";
  c.summary = "y[i] = x[0] + ... + x[i]";
  c.parameters = one_array("n");
  c.size_order = {"n"};
  c.shapes = kLengths;
  c.inputs = {{"normal"}, {"large", false}, {"equal"}, {"nan"}};
  c.lesson = "lesson 4, \"reductions, races and determinism\"";
  c.fill = fill_terms;
  c.reference = [](const Numbers& numbers) -> std::map<std::string, Expected> {
    return {{"y", prefix_sums(numbers)}};
  };
  c.flops = [](const Sizes& s) { return static_cast<double>(s.at("n")); };
  return c;
}

Case histogram_case() {
  Case c;
  c.name = "histogram";
  c.summary = "y[v] = how many x[i] are v; every x[i] is from 0 to bins - 1";
  c.parameters = {{.name = "x", .role = Role::input, .domain = Domain::whole, .extents = {"n"}},
                  {.name = "y", .role = Role::output, .domain = Domain::whole, .extents = {"bins"}},
                  {.name = "n", .role = Role::size},
                  {.name = "bins", .role = Role::size}};
  c.size_order = {"n", "bins"};
  c.shapes = {{{"n", 1}, {"bins", 1}},
              {{"n", 33}, {"bins", 7}},
              {{"n", 1000}, {"bins", 64}},
              {{"n", 20011}, {"bins", 256}}};
  c.inputs = {{"normal"}, {"large"}, {"equal"}};
  c.lesson = "lesson 4, \"reductions, races and determinism\"";
  c.fill = [](Numbers& numbers, const std::string& set) {
    CaseRandom random(numbers.seed);
    const int64_t bins = numbers.size("bins");
    for (double& value : numbers.arrays.at("x")) {
      const int64_t last = bins - 1;  // "large": half of the elements are in the last bin
      value = static_cast<double>(set == "equal"                           ? bins / 2
                                  : set == "large" && random.below(2) == 0 ? last
                                                                           : random.below(bins));
    }
  };
  c.reference = [](const Numbers& numbers) -> std::map<std::string, Expected> {
    const auto bins = static_cast<size_t>(numbers.size("bins"));
    Expected y{Array(bins), Array(bins)};
    for (const double value : numbers.in("x")) {
      y.values[static_cast<size_t>(value)] += 1;
    }
    return {{"y", std::move(y)}};
  };
  c.flops = [](const Sizes& s) { return static_cast<double>(s.at("n")); };
  return c;
}

}  // namespace binade::lab
