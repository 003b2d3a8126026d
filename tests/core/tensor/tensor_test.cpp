// Tests what every program does with tensors: printing, indexing, copying, changes in place.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/print.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>

#include <tests/core/autograd/autograd_testing.h>

namespace binade::tensor_test {
namespace {

// Printing -----------------------------------------------------------------------------------

TEST(Print, FloatsAreAligned) {
  EXPECT_EQ(to_string(Tensor::from({{0.5f, -1.25f}, {NAN, 2.0f}})),
            "[[ 0.5000, -1.2500],\n [    nan,  2.0000]] f32 [2, 2]");
  EXPECT_EQ(to_string(Tensor::from({1.0f, -20.0f, INFINITY})), "[  1., -20.,  inf] f32 [3]");
  EXPECT_EQ(to_string(Tensor::from({half(0.25f), half(-INFINITY)})), "[0.2500,   -inf] f16 [2]");
  EXPECT_EQ(to_string(Tensor::from({1e-5f, 1.0f})), "[1.0000e-05, 1.0000e+00] f32 [2]");
  EXPECT_EQ(to_string(Tensor::from({2e9, 0.0})), "[2.0000e+09, 0.0000e+00] f64 [2]");
  EXPECT_EQ(to_string(Tensor::from({0.1, 200.0})), "[1.0000e-01, 2.0000e+02] f64 [2]");
  EXPECT_EQ(to_string(Tensor::from({-0.0, 0.0})), "[-0.,  0.] f64 [2]");
  EXPECT_EQ(to_string(Tensor::from({1.5, 2.0}), {.precision = 1}), "[1.5, 2.0] f64 [2]");
  EXPECT_EQ(to_string(Tensor::from({NAN, NAN})), "[nan, nan] f32 [2]");
}

TEST(Print, OtherDtypesAndShapes) {
  EXPECT_EQ(to_string(Tensor::from({INT64_MAX, int64_t(-1)})),
            "[9223372036854775807,                  -1] i64 [2]");
  EXPECT_EQ(to_string(Tensor::from({true, false})), "[ true, false] bool [2]");
  EXPECT_EQ(to_string(Tensor::from({uint8_t(7), uint8_t(255)})), "[  7, 255] u8 [2]");
  EXPECT_EQ(to_string(Tensor::from({3.5f}, {})), "3.5000 f32 []");
  EXPECT_EQ(to_string(empty({0})), "[] f32 [0]");
  EXPECT_EQ(to_string(empty({3, 0, 2}, DType::i64)), "[] i64 [3, 0, 2]");
  EXPECT_EQ(to_string(Tensor()), "undefined tensor");
  const Tensor x = arange(8).reshape({2, 2, 2});
  EXPECT_EQ(to_string(x), "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]] i64 [2, 2, 2]");
  EXPECT_EQ(to_string(transpose(x, 0, 2)),
            "[[[0, 4],\n  [2, 6]],\n\n [[1, 5],\n  [3, 7]]] i64 [2, 2, 2]");
  EXPECT_EQ(to_string(expand(x[0][1], {2, 2})), "[[2, 3],\n [2, 3]] i64 [2, 2]");
  std::ostringstream out;
  out << Tensor::from({1, 2}) << "\n";
  EXPECT_EQ(out.str(), "[1, 2] i32 [2]\n");
}

TEST(Print, SizesDtypeAndDevice) {
  std::ostringstream out;
  const Tensor x = zeros({2, 0, 3}, DType::bf16);
  out << x.sizes() << " " << x.dtype() << " " << x.device() << " " << Dims{};
  EXPECT_EQ(out.str(), "[2, 0, 3] bf16 cpu []");
}

TEST(Print, LongTensorsAreSummarised) {
  EXPECT_EQ(to_string(arange(1001)), "[   0,    1,    2, ...,  998,  999, 1000] i64 [1001]");
  EXPECT_EQ(to_string(arange(1000)).find('.'), std::string::npos);
  EXPECT_EQ(to_string(arange(40).reshape({8, 5}), {.threshold = 30, .edge_items = 2}),
            "[[ 0,  1, ...,  3,  4],\n [ 5,  6, ...,  8,  9],\n ...,\n [30, 31, ..., 33, 34],\n"
            " [35, 36, ..., 38, 39]] i64 [8, 5]");
  EXPECT_EQ(to_string(arange(10).reshape({5, 2}), {.threshold = 5, .edge_items = 1}),
            "[[0, 1],\n ...,\n [8, 9]] i64 [5, 2]");
  EXPECT_EQ(to_string(arange(12).reshape({3, 1, 4}), {.threshold = 5, .edge_items = 1}),
            "[[[ 0, ...,  3]],\n\n ...,\n\n [[ 8, ..., 11]]] i64 [3, 1, 4]");
  // Only the printed elements determine the format.
  Tensor x = zeros({2000});
  x[1000].fill_(0.123);
  EXPECT_EQ(to_string(x), "[0., 0., 0., ..., 0., 0., 0.] f32 [2000]");
}

TEST(Print, LongRowsContinue) {
  EXPECT_EQ(to_string(arange(12), {.line_width = 19}),
            "[ 0,  1,  2,  3,\n  4,  5,  6,  7,\n"
            "  8,  9, 10, 11] i64 [12]");
  EXPECT_HAS(error_of([] { to_string(ones({2}), {.precision = -1}); }), "to_string: got precision");
  EXPECT_HAS(error_of([] { to_string(ones({2}), {.edge_items = 0}); }), "at least 1 edge item");
}

// 10^8 elements without memory: a view of one element. Printing all would take minutes.
TEST(Print, ManyElementsAreInstant) {
  const auto start = std::chrono::steady_clock::now();
  const std::string row = to_string(expand(ones({1}), {100'000'000}));
  EXPECT_EQ(row, "[1., 1., 1., ..., 1., 1., 1.] f32 [100000000]");
  const std::string cube = to_string(expand(ones({1}), {10, 10, 10, 10, 10, 10, 10, 10}));
  EXPECT_LT(cube.size(), 100'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

// Indexing and copies ------------------------------------------------------------------------

TEST(Index, SelectsThePartsOfTheFirstDimension) {
  const Tensor x = arange(12).reshape({3, 4});
  EXPECT_EQ(values(x[1]), (std::vector<double>{4, 5, 6, 7}));
  EXPECT_EQ(values(x[-1]), (std::vector<double>{8, 9, 10, 11}));
  EXPECT_EQ(x[2][-4].item(), 8);
  x[0].fill_(7);
  EXPECT_EQ(x.at(3), 7) << "a view";
  EXPECT_HAS(error_of([&] { x[3]; }), "x[3]: got index 3 for x of shape [3, 4], expected -3 to 2");
  EXPECT_HAS(error_of([&] { x[-4]; }), "got index -4");
  EXPECT_HAS(error_of([&] { x[0][0][0]; }), "x[0]: got a scalar");
  EXPECT_HAS(error_of([&] { Tensor()[0]; }), "x[0]: got an undefined tensor");
  EXPECT_HAS(error_of([&] { zeros({0, 3})[0]; }), "which has no elements to index");
  manual_seed(3);
  gradcheck([](const std::vector<Tensor>& in) { return in[0][-2] * in[0][0]; },
            {randn({3, 4}, DType::f64).require_grad()});
}

TEST(Index, SliceBoundsAreThoseOfPyTorch) {
  const Tensor x = arange(6);
  const auto range = [&](int64_t start, int64_t end, int64_t step = 1) {
    return slice(x, -1, start, end, step).to_vector<int64_t>();
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(range(-2, 6), (List{4, 5}));
  EXPECT_EQ(range(-100, -4), (List{0, 1}));
  EXPECT_EQ(range(-5, -1, 2), (List{1, 3}));
  EXPECT_EQ(range(4, 2), List{});
  EXPECT_EQ(range(3, INT64_MAX), (List{3, 4, 5}));
  EXPECT_EQ(range(INT64_MIN, INT64_MAX), (List{0, 1, 2, 3, 4, 5}));
}

TEST(Clone, OwnsItsMemory) {
  const Tensor x = transpose(arange(6).reshape({2, 3}), 0, 1);
  const Tensor y = x.clone();
  EXPECT_EQ(y.strides(), x.strides());
  x.fill_(0);
  EXPECT_EQ(values(y), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(clone(expand(ones({3}), {2, 3})).is_contiguous());
  const Tensor w = leaf({1, 2}, {2});
  const Tensor copy = w.clone();
  EXPECT_TRUE(copy.requires_grad());
  copy.backward(Tensor::from({3.0, -5.0}));
  EXPECT_EQ(values(w.grad()), (std::vector<double>{3, -5}));
}

TEST(Empty, SizesWithoutACountAreErrors) {
  constexpr int64_t kLarge = int64_t(1) << 40;
  EXPECT_HAS(error_of([] {
               empty({kLarge, kLarge});
             }),
             "empty: got sizes [1099511627776, 1099511627776], expected at most 2^59 elements");
  EXPECT_HAS(error_of([] { empty({kLarge, kLarge, 0}); }), "expected at most 2^59 elements");
  EXPECT_HAS(error_of([] {
               empty({2, -1});
             }),
             "empty: got sizes [2, -1], expected no negative size");
  EXPECT_EQ(empty({3, 0}).numel(), 0);
}

// In-place arithmetic ------------------------------------------------------------------------

TEST(InPlace, WritesTheMemoryThatOthersShare) {
  Tensor x = Tensor::from({{1.0f, 2.0f}, {3.0f, 4.0f}});
  const Tensor alias = x, row = x[1];
  const uint32_t version = x.version();
  x += x;
  x -= 1;
  x *= Tensor::from({10.0f, 1.0f});
  x /= 2;
  EXPECT_EQ(values(alias), (std::vector<double>{5, 1.5, 25, 3.5}));
  EXPECT_EQ(values(row), (std::vector<double>{25, 3.5}));
  EXPECT_EQ(x.version(), version + 4);
  (x += 1) *= 2;
  EXPECT_EQ(x.at(0), 12);
}

TEST(InPlace, WritesPartsAndConstHandles) {
  Tensor x = zeros({3, 2}, DType::f64);
  x[1] += 5;
  x[-1] -= Tensor::from({1.0, 2.0});
  transpose(x, 0, 1)[0] *= 3;
  EXPECT_EQ(values(x), (std::vector<double>{0, 0, 15, 5, -3, -2}));
  const Tensor fixed = x;
  fixed /= 2.0;
  EXPECT_EQ(x.at(2), 7.5);
}

TEST(InPlace, OverlappingOperandsAreReadFirst) {
  Tensor x = Tensor::from({{1.0, 2.0}, {3.0, 4.0}});
  x += transpose(x, 0, 1);
  EXPECT_EQ(values(x), (std::vector<double>{2, 5, 5, 8}));
  Tensor y = Tensor::from({1.0, 2.0, 3.0, 4.0});
  slice(y, 0, 1, 4) += slice(y, 0, 0, 3);
  EXPECT_EQ(values(y), (std::vector<double>{1, 3, 5, 7}));
  y -= y[0];
  EXPECT_EQ(values(y), (std::vector<double>{0, 2, 4, 6}));
}

TEST(InPlace, TheResultKeepsSizesAndDtype) {
  Tensor x = ones({2, 3});
  EXPECT_HAS(error_of([&] {
               x += ones({4, 2, 3});
             }),
             "+=: got a result f32 [4, 2, 3] for a tensor f32 [2, 3]");
  EXPECT_HAS(error_of([&] { x *= ones({2}); }), "mul: got");
  EXPECT_HAS(error_of([&] { x -= ones({2, 3}, DType::f64); }), "sub: got");
  EXPECT_HAS(error_of([&] { x += Tensor(); }), "+=: got an undefined tensor");
  EXPECT_HAS(error_of([&] { Tensor() += 1; }), "+=: got an undefined tensor");
  EXPECT_HAS(error_of([&] { square(x) += 1; }), "+=: got a temporary on the left that no other");
  EXPECT_EQ(x.version(), 0u);
  EXPECT_HAS(error_of([] { expand(ones({1}), {3}) += 1; }),
             "+=: got an expanded tensor of shape [3], whose elements share memory");
  Tensor ids = arange(3);
  ids += arange(3);
  EXPECT_EQ(values(ids), (std::vector<double>{0, 2, 4}));
  EXPECT_NE(error_of([&] { ids /= ids; }), "none");
  EXPECT_NE(error_of([&] { ids += 0.5; }), "none");
  EXPECT_EQ(values(ids), (std::vector<double>{0, 2, 4})) << "nothing half done";
}

TEST(InPlace, AssignmentWritesAPart) {
  Tensor x = zeros({2, 3}), y = x;
  const uint32_t version = x.version();
  x[0] = ones({3});
  x[1][2] = 7;
  x[-1][0] = full({}, 0.5, DType::f64);  // cast
  EXPECT_EQ(values(y), (std::vector<double>{1, 1, 1, 0.5, 0, 7}));
  EXPECT_GT(x.version(), version);
  slice(x, 1, 0, 2) = full({2, 1}, 3);
  EXPECT_EQ(values(y), (std::vector<double>{3, 3, 1, 3, 3, 7}));
  y = zeros({1});  // assigning to a variable
  EXPECT_EQ(x.numel(), 6);
  std::vector<Tensor> list(2);
  list[0] = x;
  EXPECT_EQ(list[0].handle().get(), x.handle().get());

  const Tensor w = leaf({3, 4}, {2});
  EXPECT_HAS(error_of([&] { square(x) = ones({2, 3}); }), "x[i] = y: got a temporary on the left");
  EXPECT_HAS(error_of([&] { x[0] = ones({4}); }), "copy_: got shapes [3] and [4]");
  EXPECT_HAS(error_of([&] { x[0] = w[0]; }), "x[i] = y: got a y whose gradient is recorded");
  EXPECT_HAS(error_of([&] { w[0] = 1; }), "x[i] = y: got a tensor whose gradient is recorded");
  expand(x, {2, 2, 3})[0][1] = 1;
  EXPECT_EQ(values(y), (std::vector<double>{0}));
  EXPECT_EQ(values(x), (std::vector<double>{3, 3, 1, 1, 1, 1}));
  EXPECT_HAS(error_of([&] { expand(y, {3}) = 1; }), "whose elements share memory");
  EXPECT_HAS(error_of([&] { Tensor() = 1; }), "x[i] = y: got an undefined tensor");
  const NoGradGuard guard;
  w[1] = w[0];
  EXPECT_EQ(values(w), (std::vector<double>{3, 3}));
}

TEST(InPlace, SavedTensorsNoticeTheChange) {
  Tensor x = Tensor::from({1.0, 2.0});
  const Tensor w = leaf({3, 4}, {2});
  const Tensor y = sum(w * x);
  x += 1;
  EXPECT_HAS(error_of([&] { y.backward(); }), "in place");
}

TEST(InPlace, RecordedValuesAreReplacedWithTheirHistory) {
  const Tensor w = leaf({1, 2}, {2}), v = leaf({3, 5}, {2});
  Tensor x = w * 2;
  const Tensor before = x;
  x += v;
  x *= 3;
  x -= v * w;
  x /= Tensor::from({2.0, 4.0});
  EXPECT_EQ(values(x), (std::vector<double>{(15. - 3) / 2, (27. - 10) / 4}));
  EXPECT_EQ(values(before), (std::vector<double>{2, 4})) << "other handles keep the old value";
  x.backward(Tensor::from({1.0, -2.0}));
  EXPECT_EQ(values(w.grad()), (std::vector<double>{(6. - 3) / 2, -2 * (6. - 5) / 4}));
  EXPECT_EQ(values(v.grad()), (std::vector<double>{(3. - 1) / 2, -2 * (3. - 2) / 4}));
}

TEST(InPlace, ASumOfLossesGetsAHistory) {
  const Tensor w = leaf({1, 2}, {2});
  Tensor total = zeros({}, DType::f64);
  for (int i = 1; i <= 3; ++i) {
    total += sum(w * static_cast<double>(i));
  }
  total.backward();
  EXPECT_EQ(values(w.grad()), (std::vector<double>{6, 6}));
}

TEST(InPlace, AChangeThatTheGraphWouldLoseIsAnError) {
  Tensor w = leaf({1, 2}, {2});
  EXPECT_HAS(error_of([&] { w += 1; }),
             "+=: got a tensor whose gradient is recorded; change it "
             "under a NoGradGuard");
  EXPECT_HAS(error_of([&] { w -= w * 2; }), "under a NoGradGuard");
  Tensor y = w * 2;
  EXPECT_HAS(error_of([&] { y[0] += 1; }), "+=: got a temporary or a const handle and a gradient");
  Tensor part = y[0];
  EXPECT_HAS(error_of([&] { part *= 2; }), "*=: got a part of a larger tensor and a gradient");
  Tensor plain = zeros({3, 2}, DType::f64), row = plain[0];
  EXPECT_HAS(error_of([&] { row -= w; }), "-=: got a part of a larger tensor");
  EXPECT_HAS(error_of([&] { plain[1] += w; }), "+=: got a temporary");
  {
    const NoGradGuard guard;
    EXPECT_HAS(error_of([&] { y += 1; }), "call detach() first");
    w -= Tensor::from({0.5, 0.25});
    plain[1] += w;
    plain[2] += y;
  }
  EXPECT_EQ(values(w), (std::vector<double>{0.5, 1.75}));
  EXPECT_TRUE(w.requires_grad() && w.history()->leaf);
  EXPECT_EQ(values(plain), (std::vector<double>{0, 0, 0.5, 1.75, 2, 4}));
}

TEST(UndefinedTensor, EveryUseIsAnErrorThatNamesIt) {
  const Tensor none;
  const std::pair<const char*, std::function<void()>> uses[] = {
      {"sizes", [&] { (void)none.sizes(); }},
      {"strides", [&] { (void)none.strides(); }},
      {"dim", [&] { (void)none.dim(); }},
      {"size", [&] { (void)none.size(-1); }},
      {"numel", [&] { (void)none.numel(); }},
      {"dtype", [&] { (void)none.dtype(); }},
      {"device", [&] { (void)none.device(); }},
      {"is_contiguous", [&] { (void)none.is_contiguous(); }},
      {"is_channels_last", [&] { (void)none.is_channels_last(); }},
      {"data", [&] { (void)none.data<float>(); }},
      {"data", [&] { (void)none.data<const float>(); }},
      {"item", [&] { (void)none.item(); }},
      {"at", [&] { (void)none.at(0); }},
      {"to_vector", [&] { (void)none.to_vector<double>(); }},
      {"x[2]", [&] { (void)none[2]; }},
      {"require_grad", [&] { Tensor(none).require_grad(); }},
      {"grad", [&] { (void)none.grad(); }},
      {"zero_grad", [&] { none.zero_grad(); }},
      {"backward", [&] { none.backward(); }},
      {"backward", [&] { none.backward(ones({})); }},
      {"fill_", [&] { none.fill_(1); }},
      {"copy_", [&] { none.copy_(ones({})); }},
      {"+=", [&] { none += 1; }},
      {"*=", [&] { none *= ones({}); }},
      {"-=", [&] { Tensor(none) -= ones({}); }},
      {"/=", [&] { Tensor().operator/=(2.0); }},
      {"cast", [&] { (void)none.to(DType::f16); }},
      {"to", [&] { (void)none.to(Device{}); }},
      {"reshape", [&] { (void)none.reshape({1}); }},
      {"transpose", [&] { (void)none.transpose(0, 1); }},
      {"clone", [&] { (void)none.clone(); }},
      {"contiguous", [&] { (void)none.contiguous(); }},
      {"channels_last", [&] { (void)none.channels_last(); }},
      {"version", [&] { (void)none.version(); }},
      {"bump_version", [&] { none.bump_version(); }},
      {"empty_like", [&] { (void)empty_like(none); }},
  };
  for (const auto& [name, use] : uses) {
    const std::string message = error_of(use);
    EXPECT_HAS(message, "undefined tensor") << name;
    EXPECT_TRUE(message.starts_with(name) || message.find(name) != std::string::npos)
        << name << ": " << message;
  }
  EXPECT_FALSE(none.defined() || none.requires_grad() || none.sole_owner());
  EXPECT_EQ(to_string(none), "undefined tensor");
}

}  // namespace
}  // namespace binade::tensor_test
