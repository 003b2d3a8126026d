// Convolutions with a weight that the caller keeps packed have the same bits as without, for the
// direct kernel and for Winograd, which read the same packing.
#include <tests/kernels/conv/conv2d_case.h>

namespace binade::kernels::conv2d_packing_test {
namespace {

class OnePacking final : public WeightPacking {
 public:
  explicit OnePacking(size_t most) : most_(most) {}
  const std::byte* get(const PackingFormat& format,
                       const std::function<void(std::byte*)>& fill) override {
    if (format.bytes > most_) {
      return nullptr;
    }
    if (bytes_.empty() || !(format == format_)) {
      ++fills;
      format_ = format;
      bytes_.assign(format.bytes + kPadding, std::byte{0x7f});
      fill(bytes_.data());
    }
    return bytes_.data();
  }
  int fills = 0;

 private:
  size_t most_;
  PackingFormat format_;
  std::vector<std::byte> bytes_;
};

struct Packed {
  int64_t n, c, o, side, kernel, groups = 1;
  DType dtype = DType::f32;
};

// Runs the case with and without the packing and compares the bytes.
void expect_same(const Packed& c, const char* provider, StridedArray& w, OnePacking& packing) {
  set_conv2d_provider(provider);
  StridedArray x(c.dtype, {c.n, c.c, c.side, c.side}, kChannelsLast),
      y(c.dtype, {c.n, c.o, c.side, c.side}, kChannelsLast),
      plain(c.dtype, {c.n, c.o, c.side, c.side}, kChannelsLast), bias(c.dtype, {c.o});
  x.randomize(1, false);
  bias.randomize(3, false);
  const Conv2dGeometry geometry{.padding = {c.kernel / 2, c.kernel / 2}, .groups = c.groups};
  const Epilogue epilogue{.bias = bias.view(), .activation = Activation::relu};
  const View xv = x.view(), wv = w.view();
  for (int call = 0; call < 2; ++call) {
    conv2d_forward({.x = xv,
                    .w = wv,
                    .y = y.view(),
                    .geometry = geometry,
                    .epilogue = epilogue,
                    .packing = &packing});
    conv2d_forward(
        {.x = xv, .w = wv, .y = plain.view(), .geometry = geometry, .epilogue = epilogue});
    EXPECT_EQ(y.bytes(), plain.bytes())
        << provider << " " << c.c << " " << c.o << " " << to_string(c.dtype);
  }
  set_conv2d_provider("auto");
}

class Conv2dPacking : public testing::Test {
 protected:
  void SetUp() override {
    if (!StridedArray(DType::f32, {1}).view().device.is_cpu()) {
      GTEST_SKIP() << "packings are the CPU's";
    }
  }
};

TEST_F(Conv2dPacking, DirectKernelHasTheSameBits) {
  for (const Packed& c :
       {Packed{2, 5, 32, 9, 3}, Packed{1, 8, 48, 7, 1}, Packed{3, 6, 64, 5, 5},
        Packed{2, 8, 64, 6, 3, 2}, Packed{2, 8, 32, 6, 3, 1, DType::bf16},
        Packed{2, 8, 32, 6, 3, 1, DType::f64}, Packed{2, 8, 10, 6, 3, 1, DType::f16}}) {
    for (const std::vector<int>& order : {kChannelsLast, kPlain}) {
      StridedArray w(c.dtype, {c.o, c.c / c.groups, c.kernel, c.kernel}, order);
      w.randomize(2, false);
      OnePacking packing(w.bytes().size());
      expect_same(c, "own:direct", w, packing);
      EXPECT_EQ(packing.fills, c.dtype == DType::f16    ? 0
                               : c.dtype == DType::bf16 ? packing.fills
                                                        : 1);
    }
  }
}

// Covers blocks of tiles, and panels of a weight that is larger than the tiles.
TEST_F(Conv2dPacking, WinogradHasTheSameBits) {
  for (const Packed& c : {Packed{4, 20, 48, 16, 3}, Packed{1, 150, 80, 8, 3},
                          Packed{1, 64, 64, 12, 3}, Packed{2, 33, 16, 9, 3}}) {
    StridedArray w(c.dtype, {c.o, c.c, 3, 3}, kChannelsLast);
    w.randomize(2, false);
    OnePacking packing(w.bytes().size());
    expect_same(c, "own:winograd", w, packing);
    expect_same(c, "own:direct", w, packing);
    EXPECT_EQ(packing.fills, 1) << "the two read the same packing";
  }
}

TEST_F(Conv2dPacking, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::conv2d_packing_test
