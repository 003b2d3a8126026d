// Conformance of numbers: conversions of half and bfloat16, Philox, functions within their bounds.
#pragma once
#include <binade/kernels/base/philox.h>
#include <tests/cuda/conformance.h>

#include <limits>

namespace binade::conformance {

inline unsigned blocks_for(size_t count) { return static_cast<unsigned>((count + 255) / 256); }

template <class To, class From>
__global__ void convert_kernel(const From* x, To* y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = static_cast<To>(x[i]);
  }
}

// The bits of a value; all NaNs become one.
template <class T>
uint64_t canonical_bits(T value) {
  const auto number = static_cast<double>(value);
  return std::isnan(number) ? ~uint64_t{0} : std::bit_cast<uint64_t>(number);
}

// Converts `x` on the device and on the host: the same bits, NaNs aside.
template <class To, class From>
void conversion(Report& report, const std::string& name, const std::vector<From>& x) {
  const OnDevice<From> dx(x);
  const OnDevice<To> dy(x.size());
  start({"convert_kernel", dim3(blocks_for(x.size())), dim3(256)}, convert_kernel<To, From>,
        dx.data(), dy.data(), static_cast<int64_t>(x.size()));
  const std::vector<To> y = dy.get();
  std::vector<uint64_t> got(x.size()), want(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    got[i] = canonical_bits(y[i]);
    want[i] = canonical_bits(static_cast<To>(x[i]));
  }
  report.same(text(name, " (", x.size(), " values)"), got, want);
}

// All values of T, the midpoints between neighbours and the values next to those, and random bits.
template <class T>
std::vector<float> floats_around(size_t random_count) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<float>(T::from_bits(static_cast<uint16_t>(bits)));
    const auto next = static_cast<float>(T::from_bits(static_cast<uint16_t>(bits + 1)));
    const float midpoint = value + (next - value) / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    x.insert(x.end(), {value, midpoint, std::nextafter(midpoint, infinity),
                       std::nextafter(midpoint, -infinity)});
  }
  for (const float limit :
       {65519.996f, 65520.0f, 3.3961775e38f, 3.4028235e38f, 0x1p-25f, 0x1.000002p-25f, 0x1p-149f}) {
    x.insert(x.end(), {limit, -limit});
  }
  std::mt19937 generator(17);
  for (size_t i = 0; i < random_count; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(generator())));
  }
  return x;
}

template <class T>
void conversions_of(Report& report, const char* type) {
  std::vector<T> all(65536);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = T::from_bits(static_cast<uint16_t>(i));
  }
  conversion<float>(report, text(type, " to float"), all);
  conversion<double>(report, text(type, " to double"), all);
  const std::vector<float> x = floats_around<T>(kHardware ? 4'000'000 : 100'000);
  conversion<T>(report, text("float to ", type), x);
  // Doubles that a rounding to float would turn into a midpoint.
  std::vector<double> wide;
  for (size_t i = 0; i < x.size(); i += kHardware ? 1 : 4) {
    const double value = x[i];
    wide.insert(wide.end(), {value, value * (1 + 0x1p-40), value * (1 - 0x1p-40)});
  }
  conversion<T>(report, text("double to ", type), wide);
}

inline void conversions(Report& report) {
  conversions_of<half>(report, "half");
  conversions_of<bfloat16>(report, "bfloat16");
}

__global__ void philox_kernel(uint64_t key, uint64_t low, uint64_t high, uint32_t* y) {
  const uint64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const philox::Block block = philox::generate(key, low + i, high);
  for (unsigned j = 0; j < 4; ++j) {
    y[4 * i + j] = block[j];
  }
}

inline void random_numbers(Report& report) {
  for (const uint64_t key : {uint64_t{0}, uint64_t{0x123456789abcdef0}, ~uint64_t{0}}) {
    const uint64_t low = key ? uint64_t{0xfffffff0} : 0, high = key >> 3;
    const OnDevice<uint32_t> y(4 * 512);
    start({"philox_kernel", dim3(4), dim3(128)}, philox_kernel, key, low, high, y.data());
    std::vector<uint32_t> want;
    for (uint64_t i = 0; i < 512; ++i) {
      const philox::Block block = philox::generate(key, low + i, high);
      want.insert(want.end(), block.begin(), block.end());
    }
    report.same(text("Philox key ", key), y.get(), want);
  }
}

enum class Function {
  fast_exp,
  fast_log,
  fast_divide,
  exp,
  log,
  tanh,
  erf,
  sqrt,
  rsqrt,
  divide,
  fma,
};
__global__ void function_kernel(Function function, const float* x, const float* z, float* y,
                                int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) {
    return;
  }
  const float a = x[i], b = z[i];
  switch (function) {
    case Function::fast_exp: y[i] = kernels::dev::fast_exp(a); break;
    case Function::fast_log: y[i] = kernels::dev::fast_log(b); break;
    case Function::fast_divide: y[i] = kernels::dev::fast_divide(a, b); break;
    case Function::exp: y[i] = std::exp(a); break;
    case Function::log: y[i] = std::log(b); break;
    case Function::tanh: y[i] = std::tanh(a); break;
    case Function::erf: y[i] = std::erf(a); break;
    case Function::sqrt: y[i] = std::sqrt(b); break;
    case Function::rsqrt: y[i] = rsqrtf(b); break;
    case Function::divide: y[i] = a / b; break;
    case Function::fma: y[i] = std::fma(a, b, -a); break;
  }
}

// A unit in the last place of a float near `value`.
inline double ulp_of(double value) {
  const int exponent = std::ilogb(std::max(std::abs(value), 0x1p-126));
  return std::ldexp(1.0, exponent - 23);
}

// The bounds, in units in the last place unless said, are those of the CUDA programming guide.
struct FunctionCase {
  const char* name;
  Function function;
  double (*exact)(double a, double b);
  double (*bound)(double a, double b, double exact);  // absolute
};

inline const FunctionCase kFunctionCases[] = {
    {"fast_exp", Function::fast_exp, [](double a, double) { return std::exp(a); },
     [](double a, double, double y) {
       return (2 + std::floor(std::abs(1.173 * a)) + 0.5) * ulp_of(y);
     }},
    {"fast_log", Function::fast_log, [](double, double b) { return std::log(b); },
     [](double, double b, double y) {
       return b >= 0.5 && b <= 2 ? std::exp2(-21.41) + ulp_of(y) / 2 : 3.5 * ulp_of(y);
     }},
    {"fast_divide", Function::fast_divide, [](double a, double b) { return a / b; },
     [](double, double, double y) { return 2.5 * ulp_of(y); }},
    {"exp", Function::exp, [](double a, double) { return std::exp(a); },
     [](double, double, double y) { return 2.5 * ulp_of(y); }},
    {"log", Function::log, [](double, double b) { return std::log(b); },
     [](double, double, double y) { return 1.5 * ulp_of(y); }},
    {"tanh", Function::tanh, [](double a, double) { return std::tanh(a); },
     [](double, double, double y) { return 2.5 * ulp_of(y); }},
    {"erf", Function::erf, [](double a, double) { return std::erf(a); },
     [](double, double, double y) { return 2.5 * ulp_of(y); }},
    {"rsqrt", Function::rsqrt, [](double, double b) { return 1 / std::sqrt(b); },
     [](double, double, double y) { return 2.5 * ulp_of(y); }},
};
inline const FunctionCase kExactCases[] = {
    {"square root, rounded once", Function::sqrt, [](double, double b) { return std::sqrt(b); },
     nullptr},
    {"division, rounded once", Function::divide, [](double a, double b) { return a / b; }, nullptr},
};

inline void functions(Report& report) {
  const size_t n = kHardware ? 2'000'000 : 20'000;
  std::mt19937 generator(23);
  std::uniform_real_distribution<float> sum(-20, 20), exponent(-20, 20);
  std::vector<float> a(n), b(n);
  for (size_t i = 0; i < n; ++i) {
    a[i] = sum(generator);
    b[i] = i % 4 == 0 ? 0.5f + std::abs(sum(generator)) / 13 : std::exp2(exponent(generator));
  }
  const OnDevice<float> da(a), db(b);
  const auto run = [&](Function function) {
    const OnDevice<float> dy(n);
    start({"function_kernel", dim3(blocks_for(n)), dim3(256)}, function_kernel, function, da.data(),
          db.data(), dy.data(), static_cast<int>(n));
    return dy.get();
  };
  for (const FunctionCase& c : kFunctionCases) {
    const std::vector<float> y = run(c.function);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
      const double exact = c.exact(a[i], b[i]);
      const double share = std::abs(y[i] - exact) / c.bound(a[i], b[i], exact);
      if (!(share <= worst)) {
        worst = share;
        at = i;
      }
    }
    report.result(text(c.name, " within its bound"), worst <= 1,
                  text("at most ", worst, " of the bound, at ", a[at], " and ", b[at]));
  }
  // Rounded once from the exact result, so equal to the result in double rounded to float.
  for (const FunctionCase& c : kExactCases) {
    std::vector<float> want(n);
    for (size_t i = 0; i < n; ++i) {
      want[i] = static_cast<float>(c.exact(a[i], b[i]));
    }
    report.same(c.name, run(c.function), want);
  }
  std::vector<float> want(n);
  for (size_t i = 0; i < n; ++i) {
    want[i] = std::fma(a[i], b[i], -a[i]);
  }
  report.same("fma, rounded once", run(Function::fma), want);
}

// Integer intrinsics and subnormal floats.
__global__ void bits_kernel(const unsigned* x, uint64_t* y, float* tiny) {
  const unsigned i = threadIdx.x, value = x[i];
  y[5 * i] = static_cast<uint64_t>(__popc(value));
  y[5 * i + 1] = static_cast<uint64_t>(__ffs(static_cast<int>(value)));
  y[5 * i + 2] = static_cast<uint64_t>(__clz(static_cast<int>(value)));
  y[5 * i + 3] = __umulhi(value, 0x9E3779B9u);
  y[5 * i + 4] = __umul64hi(static_cast<uint64_t>(value) << 31, 0x9E3779B97F4A7C15u);
  tiny[i] = static_cast<float>(i) * 0x1p-149f + 0x1p-140f;
}

inline void bit_functions(Report& report) {
  std::vector<unsigned> x(64);
  std::mt19937 generator(29);
  for (size_t i = 0; i < 64; ++i) {
    x[i] = i == 0 ? 0 : static_cast<unsigned>(generator()) >> i % 32;
  }
  std::vector<uint64_t> want;
  std::vector<float> tiny;
  for (unsigned i = 0; i < 64; ++i) {
    const uint64_t wide = uint64_t{x[i]} << 31;
    want.insert(
        want.end(),
        {static_cast<uint64_t>(std::popcount(x[i])),
         x[i] ? static_cast<uint64_t>(std::countr_zero(x[i]) + 1) : 0,
         static_cast<uint64_t>(std::countl_zero(x[i])), uint64_t{x[i]} * 0x9E3779B9u >> 32,
         static_cast<uint64_t>(static_cast<unsigned __int128>(wide) * 0x9E3779B97F4A7C15u >> 64)});
    tiny.push_back(std::ldexp(static_cast<float>(i + 512), -149));
  }
  const OnDevice<unsigned> dx(x);
  const OnDevice<uint64_t> dy(5 * 64);
  const OnDevice<float> dt(64);
  start({"bits_kernel", dim3(1), dim3(64)}, bits_kernel, dx.data(), dy.data(), dt.data());
  report.same("integer intrinsics", dy.get(), want);
  report.same("subnormal floats are kept", dt.get(), tiny);
}

}  // namespace binade::conformance
