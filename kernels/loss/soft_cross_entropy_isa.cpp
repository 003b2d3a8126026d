#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/loss/soft_cross_entropy_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// w_c q_c: the targets with smoothing and class weights.
template <class T>
struct Shares {
  using C = Compute<T>;
  const T* target;
  const C* weight;
  C keep, uniform;

  template <bool kPart>
  BINADE_INLINE Vector<C> at(int64_t i, int64_t n) const {
    const Vector<C> q = load_some<kPart>(target + i, n) * keep + uniform;
    return weight ? q * load_some<kPart>(weight + i, n) : q;
  }
};

template <class T>
void run_row(const SoftCrossEntropyRows& a, int64_t row) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.logits) + row * a.stride;
  const Shares<T> shares{static_cast<const T*>(a.target) + row * a.target_stride,
                         static_cast<const C*>(a.weight), static_cast<C>(1 - a.label_smoothing),
                         static_cast<C>(a.label_smoothing / static_cast<double>(a.classes))};
  Vector<C> best = broadcast(-kInfinity<C>);
  for_vectors<C>(a.classes, [&](auto part, int64_t i, int64_t n) {
    best = max<C>(best, load_some<part()>(x + i, n, -kInfinity<C>));
  });
  const C largest = reduce_max<C>(best);
  C* e = static_cast<C*>(a.scratch);
  C tail_weight = 0;  // added by lanes beyond the row
  double exponential_sum = 0, weight_sum = 0, distance_sum = 0;
  for_blocks(a.classes, [&](int64_t begin, int64_t size) {
    Vector<C> exponentials{}, weights{}, distances{};
    for_vectors<C>(size, [&](auto part, int64_t at, int64_t n) {
      const int64_t i = begin + at;
      const Vector<C> z = load_some<part()>(x + i, n, largest) - largest;
      const Vector<C> q = shares.template at<part()>(i, n);
      const Vector<C> power = exp(load_some<part()>(x + i, n, -kInfinity<C>) - largest);
      exponentials += power;
      weights += q;
      distances -= q * z;  // z is 0 beyond the row
      if (e) {
        store_some<part()>(e + i, power, n);
      }
      if (part() && !a.weight) {
        tail_weight = shares.uniform * static_cast<C>(kLanes<C> - n);
      }
    });
    exponential_sum += static_cast<double>(reduce_add<C>(exponentials));
    weight_sum += static_cast<double>(reduce_add<C>(weights));
    distance_sum += static_cast<double>(reduce_add<C>(distances));
  });
  const C sum = static_cast<C>(exponential_sum), weight = static_cast<C>(weight_sum) - tail_weight;
  if (a.row_loss) {
    static_cast<C*>(a.row_loss)[row] = static_cast<C>(distance_sum) + log(sum) * weight;
    return;
  }
  T* dx = static_cast<T*>(a.dlogits) + row * a.dlogits_stride;
  const C scale = static_cast<const C*>(a.row_scale)[row], factor = weight / sum;
  for_vectors<C>(a.classes, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> d = load_some<part()>(e + i, n) * factor - shares.template at<part()>(i, n);
    store_some<part()>(dx + i, d * scale, n);
  });
}

}  // namespace

void soft_cross_entropy_rows(const SoftCrossEntropyRows& a) {
  dispatch_floating("cross_entropy", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t row = 0; row < a.rows; ++row) {
      run_row<T>(a, row);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
