// Tests cases: shapes, extents, and references that agree with hand-computed results.
#include <binade/lab/cases/case.h>
#include <gtest/gtest.h>

#include <cmath>

namespace binade::lab::case_test {
namespace {

TEST(Cases, AllHaveShapesInputsAndAReference) {
  for (const std::string& name : case_names()) {
    const Case of = find_case(name);
    EXPECT_EQ(of.name, name);
    ASSERT_FALSE(of.shapes.empty()) << name;
    for (const InputSet& set : of.inputs) {
      for (const Sizes& sizes : {of.shapes[0], of.shapes[1]}) {
        Numbers numbers{.sizes = sizes};
        for (const CaseParameter& p : of.parameters) {
          if (p.role == Role::scalar) {
            numbers.scalars[p.name] = p.value;
          } else if (p.role == Role::input) {
            numbers.arrays[p.name].resize(static_cast<size_t>(of.count(p, sizes)));
          }
        }
        of.fill(numbers, set.name);
        for (const auto& [output, expected] : of.reference(numbers)) {
          const CaseParameter* array = of.find(output);
          ASSERT_NE(array, nullptr) << name;
          EXPECT_EQ(static_cast<int64_t>(expected.values.size()), of.count(*array, sizes)) << name;
          EXPECT_EQ(expected.values.size(), expected.bounds.size()) << name;
          EXPECT_GE(of.flops(sizes), 0) << name;
        }
      }
    }
  }
}

TEST(Cases, Shapes) {
  const Case gemm = find_case("gemm");
  const Sizes sizes = gemm.shape_from("3x4x5");
  EXPECT_EQ(sizes.at("m"), 3);
  EXPECT_EQ(sizes.at("k"), 5);
  EXPECT_EQ(gemm.text_of(sizes), "3x4x5");
  for (const char* wrong : {"", "3", "3x4", "3x4x5x6", "3x4x", "0x1x1", "ax4x5", "3x4x5 ",
                            "99999999999x1x1", "100000x100000x1"}) {
    EXPECT_THROW(gemm.shape_from(wrong), Error) << wrong;
  }
  EXPECT_THROW(find_case("no such case"), Error);
  EXPECT_THROW(find_case("/no/such/file.json"), Error);
}

TEST(Cases, Extents) {
  const Sizes sizes = {{"rows", 3}, {"cols", 5}};
  EXPECT_EQ(extent_of("rows", sizes), 3);
  EXPECT_EQ(extent_of("7", sizes), 7);
  EXPECT_EQ(extent_of("2*rows*cols + 1", sizes), 31);
  for (const char* wrong : {"", "+", "depth", "rows*", "3rows"}) {
    EXPECT_THROW(extent_of(wrong, sizes), Error) << wrong;
  }
}

TEST(Cases, References) {
  Numbers numbers{.sizes = {{"rows", 1}, {"cols", 3}}};
  numbers.arrays["x"] = {0, std::log(2.0), std::log(5.0)};
  const Expected softmax = find_case("softmax").reference(numbers).at("y");
  EXPECT_NEAR(softmax.values[0], 1.0 / 8, 1e-15);
  EXPECT_NEAR(softmax.values[2], 5.0 / 8, 1e-15);
  EXPECT_LT(softmax.bounds[0], 1e-5);

  Numbers product{.sizes = {{"m", 1}, {"n", 2}, {"k", 2}}};
  product.arrays["a"] = {2, 3};
  product.arrays["b"] = {5, 7, 11, 13};
  EXPECT_EQ(find_case("gemm").reference(product).at("y").values, (Array{43, 53}));
}

}  // namespace
}  // namespace binade::lab::case_test
