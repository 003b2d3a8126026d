// CPU embedding_bag: bags are split over threads; a row is added to all columns at once.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/index/embedding_bag_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels::cpu {
namespace {

template <class T>
class Bags {
 public:
  using C = Compute<T>;
  explicit Bags(const EmbeddingBag& a)
      : a_(a), columns_(a.y.size(1)), step_(a.weight.strides[1]), sums_(size_t(columns_)) {}

  void sum(int64_t bag) {
    const BagEntries entries = entries_of(bag);
    std::fill(sums_.begin(), sums_.end(), C(0));
    const int64_t* index = a_.index.as<const int64_t>();
    const T* factors = a_.factors.as<const T>();
    int64_t count = 0;
    for (int64_t e = entries.begin; e < entries.end; ++e) {
      if (index[e] != a_.exempt) {
        step_ == 1 ? add(row(index[e]), std::integral_constant<int64_t, 1>{}, factors, e)
                   : add(row(index[e]), step_, factors, e);
        ++count;
      }
    }
    const C divisor = a_.mode == BagMode::mean && count > 0 ? static_cast<C>(count) : C(1);
    T* y = a_.y.as<T>() + bag * columns_;
    for (int64_t c = 0; c < columns_; ++c) {
      y[c] = static_cast<T>(sums_[size_t(c)] / divisor);
    }
  }

  void max(int64_t bag) {
    const BagEntries entries = entries_of(bag);
    largest_.assign(size_t(columns_), {});
    const int64_t* index = a_.index.as<const int64_t>();
    for (int64_t e = entries.begin; e < entries.end; ++e) {
      if (index[e] != a_.exempt) {
        const T* x = row(index[e]);
        for (int64_t c = 0; c < columns_; ++c) {
          largest_[size_t(c)].add(static_cast<C>(x[c * step_]), index[e]);
        }
      }
    }
    for (int64_t c = 0; c < columns_; ++c) {
      a_.y.as<T>()[bag * columns_ + c] = static_cast<T>(largest_[size_t(c)].value);
      if (a_.chosen) {
        a_.chosen.as<int64_t>()[bag * columns_ + c] = largest_[size_t(c)].row;
      }
    }
  }

 private:
  BagEntries entries_of(int64_t bag) const {
    const char* op = a_.op;
    return {a_.offsets.as<const int64_t>(), bag, a_.y.size(0), a_.index.numel,
            [op](const char* what, int64_t value, int64_t bound) {
              throw IndexError(text(op, ": got ", what, " ", value, ", expected 0 to ", bound - 1),
                               op, value);
            }};
  }
  const T* row(int64_t k) const { return a_.weight.as<const T>() + k * a_.weight.strides[0]; }
  template <class Step>
  void add(const T* x, Step step, const T* factors, int64_t e) {
    C* sums = sums_.data();
    if (factors) {
      const C factor = static_cast<C>(factors[e]);
      for (int64_t c = 0; c < columns_; ++c) {
        sums[c] += static_cast<C>(x[c * step]) * factor;
      }
    } else {
      for (int64_t c = 0; c < columns_; ++c) {
        sums[c] += static_cast<C>(x[c * step]);
      }
    }
  }

  const EmbeddingBag& a_;
  int64_t columns_, step_;
  std::vector<C> sums_;
  std::vector<BagMaximum<C>> largest_;
};

}  // namespace

void embedding_bag(const EmbeddingBag& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  check_indices(a.index, {a.op, "index", a.weight.size(0)});
  const int64_t work = a.y.size(1) * (a.index.numel / a.y.size(0) + 1);
  dispatch_floating(a.op, a.y.dtype, [&]<class T>(Type<T>) {
    parallel_for(a.y.size(0), kSerialElements / work + 1, [&](int64_t begin, int64_t end) {
      Bags<T> bags(a);
      for (int64_t bag = begin; bag < end; ++bag) {
        a.mode == BagMode::max ? bags.max(bag) : bags.sum(bag);
      }
    });
  });
}

}  // namespace binade::kernels::cpu
