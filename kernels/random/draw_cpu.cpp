// CPU draws of integers. A Philox counter makes four numbers, which one iteration uses.
#include <binade/kernels/base/fault.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/philox.h>
#include <binade/kernels/random/draw_internal.h>
#include <binade/kernels/random/random_internal.h>

namespace binade::kernels::cpu {
namespace {

constexpr int64_t kGrain = 4096;  // counters

// Calls body(counter of the sequence, first element, end) for groups of `per_counter` elements.
template <int kPerCounter, class Body>
void for_counters(int64_t numel, uint64_t position, const Body& body) {
  parallel_for((numel + kPerCounter - 1) / kPerCounter, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kPerCounter, rest = numel - first;
      body(position / 4 + static_cast<uint64_t>(i), first,
           first + (rest < kPerCounter ? rest : kPerCounter));
    }
  });
}

}  // namespace

void random_integers(const RandomIntegers& a) {
  check_arguments(a);
  int64_t* y = a.y.as<int64_t>();
  for_counters<2>(a.y.numel, position_of(a.offset, a.advance),
                  [&](uint64_t counter, int64_t first, int64_t end) {
                    const philox::Block bits = philox::generate(a.seed, counter);
                    for (int64_t i = first; i < end; ++i) {
                      const auto at = static_cast<size_t>(2 * (i - first));
                      y[i] = integer_value(bits[at], bits[at + 1], a.low, a.range);
                    }
                  });
}

void bernoulli(const Bernoulli& a) {
  check_arguments(a);
  dispatch_floating("bernoulli", a.y.dtype, [&]<class T>(Type<T>) {
    const T* p = a.p.as<const T>();
    T* y = a.y.as<T>();
    for (int64_t i = 0; i < a.p.numel; ++i) {
      const auto value = static_cast<double>(p[i]);
      if (!(value >= 0 && value <= 1)) {
        throw ValueError(
            text("bernoulli: got p ", value, " at element ", i, ", expected 0 to 1, a probability"),
            "bernoulli", value);
      }
    }
    for_counters<4>(a.y.numel, position_of(a.offset, a.advance),
                    [&](uint64_t counter, int64_t first, int64_t end) {
                      const philox::Block bits = philox::generate(a.seed, counter);
                      for (int64_t i = first; i < end; ++i) {
                        const uint32_t number = bits[static_cast<size_t>(i - first)];
                        y[i] = T(is_success(number, static_cast<double>(p[i])) ? 1.0f : 0.0f);
                      }
                    });
  });
}

void choose_weighted(const ChooseWeighted& a) {
  check_arguments(a);
  const int64_t classes = a.weights.size(1), draws = a.at.size(1);
  parallel_for(a.y.numel, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / draws * classes;
      a.y.as<int64_t>()[i] =
          chosen_class(a.weights.as<const double>() + row, a.sums.as<const double>() + row, classes,
                       a.at.as<const double>()[i]);
    }
  });
}

}  // namespace binade::kernels::cpu
