#include <binade/kernels/base/half.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <set>

#include "fake_cudnn_internal.h"

namespace binade::kernels::cudnn::fake {
namespace {

double load(const void* p, int type, int64_t i) {
  switch (type) {
    case kDouble: return static_cast<const double*>(p)[i];
    case kFloat: return static_cast<double>(static_cast<const float*>(p)[i]);
    case kHalf: return static_cast<double>(static_cast<const half*>(p)[i]);
    case kBfloat16: return static_cast<double>(static_cast<const bfloat16*>(p)[i]);
    default: return static_cast<double>(static_cast<const uint8_t*>(p)[i]);
  }
}
void store(void* p, int type, int64_t i, double value) {
  switch (type) {
    case kDouble: static_cast<double*>(p)[i] = value; break;
    case kFloat: static_cast<float*>(p)[i] = static_cast<float>(value); break;
    case kHalf: static_cast<half*>(p)[i] = half(value); break;
    case kBfloat16: static_cast<bfloat16*>(p)[i] = bfloat16(value); break;
    default: static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(value);
  }
}

// The elements of a tensor, in memory or virtual. Virtual tensors of 2-byte types are rounded.
class Array {
 public:
  Array() = default;
  Array(const Object& tensor, const Memory& memory)
      : type_(tensor.get<int>(kTensorDataType)), sizes(sizes_of(tensor)) {
    strides_ = strides_of(tensor);
    if (flag(tensor, kTensorIsVirtual)) {
      int64_t last = 0;
      for (size_t i = 0; i < sizes.size(); ++i) {
        last += (sizes[i] - 1) * strides_[i];
      }
      virtual_ = std::make_shared<std::vector<double>>(static_cast<size_t>(last + 1));
    } else if (flag(tensor, kTensorIsByValue)) {
      virtual_ = std::make_shared<std::vector<double>>(1, memory.numbers.at(id_of(tensor)));
    } else {
      data_ = memory.pointers.at(id_of(tensor));
    }
  }
  // A dimension of size 1 is broadcast.
  double at(const Sizes& index) const {
    const int64_t i = offset(index);
    return virtual_ ? (*virtual_)[static_cast<size_t>(i)] : load(data_, type_, i);
  }
  void set(const Sizes& index, double value) {
    const int64_t i = offset(index);
    if (!virtual_) {
      return store(data_, type_, i, value);
    }
    uint64_t room = 0;
    const bool rounds = type_ == kHalf || type_ == kBfloat16;
    if (rounds) {
      store(&room, type_, 0, value);
    }
    (*virtual_)[static_cast<size_t>(i)] = rounds ? load(&room, type_, 0) : value;
  }
  void each(const std::function<void(const Sizes&)>& f) const { visit(sizes, f); }
  static void visit(const Sizes& sizes, const std::function<void(const Sizes&)>& f) {
    Sizes index(sizes.size(), 0);
    for (;;) {
      f(index);
      size_t d = sizes.size();
      while (d > 0 && ++index[d - 1] == sizes[d - 1]) {
        index[--d] = 0;
      }
      if (d == 0) {
        return;
      }
    }
  }

 private:
  int64_t offset(const Sizes& index) const {
    int64_t result = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      result += (sizes[i] == 1 ? 0 : index[i]) * strides_[i];
    }
    return result;
  }

  int type_ = kFloat;
  Sizes strides_;
  void* data_ = nullptr;
  std::shared_ptr<std::vector<double>> virtual_;

 public:
  Sizes sizes;
};

class Run {
 public:
  Run(const Memory& memory, bool keeps_nan) : memory_(memory), keeps_nan_(keeps_nan) {}

  Array& array(const Object& tensor) {
    const int64_t id = id_of(tensor);
    const auto found = arrays_.find(id);
    return found != arrays_.end() ? found->second
                                  : arrays_.emplace(id, Array(tensor, memory_)).first->second;
  }

  void operation(const Object& o) {
    switch (o.type) {
      case kConvolutionForward: return convolution_forward(o);
      case kConvolutionBackwardData: return convolution_data(o);
      case kConvolutionBackwardFilter: return convolution_filter(o);
      case kPointwiseOperation: return pointwise(o);
      case kMatmulOperation: return matmul(o);
      case kReductionOperation: return reduction(o);
      case kNormForward: return norm_forward(o);
      case kNormBackward: return norm_backward(o);
      default: return reshape(o);
    }
  }

 private:
  using Product = std::function<void(const Sizes& x, const Sizes& w, const Sizes& y)>;

  // Calls f with the indices of every product.
  static void products(const Object& c, const Sizes& xs, const Sizes& ws, const Sizes& ys,
                       const Product& f) {
    const Sizes stride = c.list(kConvolutionStrides), padding = c.list(kConvolutionPrePaddings),
                dilation = c.list(kConvolutionDilations);
    const int64_t outputs = ws[0] / (xs[1] / ws[1]);  // per group
    Array::visit(ys, [&](const Sizes& y) {
      Array::visit({ws[1], ws[2], ws[3]}, [&](const Sizes& w) {
        const int64_t row = y[2] * stride[0] - padding[0] + w[1] * dilation[0];
        const int64_t column = y[3] * stride[1] - padding[1] + w[2] * dilation[1];
        if (row >= 0 && row < xs[2] && column >= 0 && column < xs[3]) {
          f({y[0], y[1] / outputs * ws[1] + w[0], row, column}, {y[1], w[0], w[1], w[2]}, y);
        }
      });
    });
  }

  void accumulate(const Object& c, const Array& x, const Array& w, const Array& y, Array& result,
                  const std::function<void(std::vector<double>&, const Sizes&, const Sizes&,
                                           const Sizes&)>& add) {
    int64_t count = 1;
    for (const int64_t n : result.sizes) {
      count *= n;
    }
    std::vector<double> sums(static_cast<size_t>(count));
    products(c, x.sizes, w.sizes, y.sizes,
             [&](const Sizes& a, const Sizes& b, const Sizes& d) { add(sums, a, b, d); });
    result.each([&](const Sizes& i) { result.set(i, sums[position(result, i)]); });
  }
  static size_t position(const Array& array, const Sizes& index) {
    int64_t i = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      i = i * array.sizes[d] + index[d];
    }
    return static_cast<size_t>(i);
  }

  void convolution_forward(const Object& o) {
    const Array &x = array(o.at(kForwardX)), &w = array(o.at(kForwardW));
    Array& y = array(o.at(kForwardY));
    accumulate(o.at(kForwardConvolution), x, w, y, y,
               [&](auto& sums, const Sizes& a, const Sizes& b, const Sizes& c) {
                 sums[position(y, c)] += x.at(a) * w.at(b);
               });
  }
  void convolution_data(const Object& o) {
    const Array &dy = array(o.at(kDataDy)), &w = array(o.at(kDataW));
    Array& dx = array(o.at(kDataDx));
    accumulate(o.at(kDataConvolution), dx, w, dy, dx,
               [&](auto& sums, const Sizes& a, const Sizes& b, const Sizes& c) {
                 sums[position(dx, a)] += dy.at(c) * w.at(b);
               });
  }
  void convolution_filter(const Object& o) {
    const Array &x = array(o.at(kFilterX)), &dy = array(o.at(kFilterDy));
    Array& dw = array(o.at(kFilterDw));
    accumulate(o.at(kFilterConvolution), x, dw, dy, dw,
               [&](auto& sums, const Sizes& a, const Sizes& b, const Sizes& c) {
                 sums[position(dw, b)] += x.at(a) * dy.at(c);
               });
  }

  double apply(int mode, double x, double b, double t) const {
    switch (mode) {
      case kAdd: return x + b;
      case kMul: return x * b;
      case kDiv: return x / b;
      case kSub: return x - b;
      case kExp: return std::exp(x);
      case kLog: return std::log(x);
      case kReluForward: return keeps_nan_ && std::isnan(x) ? x : std::fmax(x, 0);
      case kGreaterOrEqual: return x >= b ? 1 : 0;
      case kBinarySelect: return t != 0 ? x : b;
      default: return std::numeric_limits<double>::quiet_NaN();
    }
  }
  void pointwise(const Object& o) {
    const Object& p = o.at(kOperationPointwise);
    const int mode = p.get<int>(kPointwiseMode);
    const Array& x = array(o.at(kOperationPointwiseX));
    const Array* b = o.has(kOperationPointwiseB) ? &array(o.at(kOperationPointwiseB)) : nullptr;
    const Array* t = o.has(kOperationPointwiseT) ? &array(o.at(kOperationPointwiseT)) : nullptr;
    Array& y = array(o.at(kOperationPointwiseY));
    y.each([&](const Sizes& i) {
      if (mode == kGenIndex) {
        y.set(i, static_cast<double>(i[static_cast<size_t>(p.get<int64_t>(kPointwiseAxis))]));
      } else {
        y.set(i, apply(mode, x.at(i), b ? b->at(i) : 0, t ? t->at(i) : 0));
      }
    });
  }

  void matmul(const Object& o) {
    const Array &a = array(o.at(kMatmulA)), &b = array(o.at(kMatmulB));
    Array& c = array(o.at(kMatmulC));
    const size_t n = a.sizes.size();
    c.each([&](const Sizes& i) {
      double sum = 0;
      Sizes left = i, right = i;
      for (int64_t k = 0; k < a.sizes[n - 1]; ++k) {
        left[n - 1] = k;
        right[n - 2] = k;
        sum += a.at(left) * b.at(right);
      }
      c.set(i, sum);
    });
  }

  void reduction(const Object& o) {
    const bool max = o.at(kReductionDescriptor).get<int>(kReductionOperator) == kReduceMax;
    const Array& x = array(o.at(kReductionX));
    Array& y = array(o.at(kReductionY));
    const double first = max ? -std::numeric_limits<double>::infinity() : 0;
    std::map<Sizes, double> results;
    x.each([&](const Sizes& i) {
      Sizes at = i;
      for (size_t d = 0; d < at.size(); ++d) {
        at[d] = y.sizes[d] == 1 ? 0 : at[d];
      }
      double& result = results.emplace(at, first).first->second;
      result = max ? std::max(result, x.at(i)) : result + x.at(i);
    });
    for (const auto& [at, value] : results) {
      y.set(at, value);
    }
  }

  // Copies the elements of x in the order of y; graphs use it only for transposes.
  void reshape(const Object& o) {
    const Array& x = array(o.at(kReshapeX));
    Array& y = array(o.at(kReshapeY));
    y.each([&](const Sizes& i) {
      Sizes at = i;
      std::swap(at[at.size() - 1], at[at.size() - 2]);
      y.set(i, x.at(at));
    });
  }

  // The index of the statistics that belong to an element.
  static Sizes group(const Array& statistics, const Sizes& at) {
    Sizes result = at;
    for (size_t d = 0; d < at.size(); ++d) {
      result[d] = statistics.sizes[d] == 1 ? 0 : at[d];
    }
    return result;
  }

  // Updates running statistics from the channels' means and sums of squares over `count` elements.
  void running(const Object& o, const std::map<Sizes, double>& means,
               const std::map<Sizes, double>& squares, double count) {
    const char* name = std::getenv("BINADE_FAKE_CUDNN_VARIANCE");
    const std::string made_of = name && name[0] ? name : "unbiased";
    const double factor = array(o.at(kNormForwardFactor)).at({0, 0, 0, 0});
    const double divisor = made_of == "unbiased" ? count - 1 : made_of == "biased" ? count : 1;
    const Array &mean = array(o.at(kNormForwardRunningMean)),
                &variance = array(o.at(kNormForwardRunningVar));
    for (const auto& [at, value] : means) {
      array(o.at(kNormForwardNextMean)).set(at, (1 - factor) * mean.at(at) + factor * value);
      array(o.at(kNormForwardNextVar))
          .set(at, (1 - factor) * variance.at(at) + factor * squares.at(at) / divisor);
    }
  }

  void norm_forward(const Object& o) {
    const Array &x = array(o.at(kNormForwardX)), &scale = array(o.at(kNormForwardScale));
    const double eps = array(o.at(kNormForwardEpsilon)).at({0, 0, 0, 0});
    Array &rstd = array(o.at(kNormForwardRstd)), &y = array(o.at(kNormForwardY));
    Array* mean = o.has(kNormForwardMean) ? &array(o.at(kNormForwardMean)) : nullptr;
    const Array* bias = o.has(kNormForwardBias) ? &array(o.at(kNormForwardBias)) : nullptr;
    std::map<Sizes, double> count, means, squares;
    x.each([&](const Sizes& i) { ++count[group(rstd, i)], means[group(rstd, i)] += x.at(i); });
    for (auto& [at, value] : means) {
      value = mean ? value / count[at] : 0;
    }
    x.each([&](const Sizes& i) {
      const double u = x.at(i) - means[group(rstd, i)];
      squares[group(rstd, i)] += u * u;
    });
    if (o.has(kNormForwardFactor)) {
      running(o, means, squares, count.begin()->second);
    }
    for (auto& [at, value] : squares) {
      value = 1 / std::sqrt(value / count[at] + eps);
      rstd.set(at, value);
      if (mean) {
        mean->set(at, means[at]);
      }
    }
    y.each([&](const Sizes& i) {
      const Sizes at = group(rstd, i);
      y.set(i, (x.at(i) - means[at]) * squares[at] * scale.at(i) + (bias ? bias->at(i) : 0));
    });
  }

  void norm_backward(const Object& o) {
    const Array &x = array(o.at(kNormBackwardX)), &dy = array(o.at(kNormBackwardDy));
    const Array &scale = array(o.at(kNormBackwardScale)), &rstd = array(o.at(kNormBackwardRstd));
    const Array* mean = o.has(kNormBackwardMean) ? &array(o.at(kNormBackwardMean)) : nullptr;
    Array &dx = array(o.at(kNormBackwardDx)), &dscale = array(o.at(kNormBackwardDscale));
    Array* dbias = o.has(kNormBackwardDbias) ? &array(o.at(kNormBackwardDbias)) : nullptr;
    std::map<Sizes, double> count, sums, products, scales, biases;
    const auto u = [&](const Sizes& i) {
      return (x.at(i) - (mean ? mean->at(i) : 0)) * rstd.at(i);
    };
    x.each([&](const Sizes& i) {
      const Sizes at = group(rstd, i), channel = group(scale, i);
      const double g = dy.at(i) * scale.at(i);
      ++count[at], sums[at] += mean ? g : 0, products[at] += g * u(i);
      scales[channel] += dy.at(i) * u(i), biases[channel] += dy.at(i);
    });
    std::map<Sizes, double> values;  // dx may be dy
    x.each([&](const Sizes& i) {
      const Sizes at = group(rstd, i);
      values[i] = rstd.at(i) *
                  (dy.at(i) * scale.at(i) - sums[at] / count[at] - u(i) * products[at] / count[at]);
    });
    for (const auto& [at, value] : values) {
      dx.set(at, value);
    }
    for (const auto& [at, value] : scales) {
      dscale.set(at, value);
      if (dbias) {
        dbias->set(at, biases[at]);
      }
    }
  }

  const Memory& memory_;
  const bool keeps_nan_;
  std::map<int64_t, Array> arrays_;
};

}  // namespace

void compute(const Object& graph, const Memory& memory, bool keeps_nan) {
  Run run(memory, keeps_nan);
  std::vector<const Object*> waiting;
  for (const auto& operation : graph.values.at(kGraphOperations).objects) {
    waiting.push_back(operation.get());
  }
  std::set<int64_t> later;  // virtual tensors that are not computed yet
  const auto missing = [&](const Object* tensor) { return later.count(id_of(*tensor)) != 0; };
  for (const Object* operation : waiting) {
    for (const Object* tensor : outputs_of(*operation)) {
      later.insert(id_of(*tensor));
    }
  }
  while (!waiting.empty()) {
    std::vector<const Object*> left;
    for (const Object* operation : waiting) {
      const std::vector<const Object*> inputs = inputs_of(*operation);
      if (std::ranges::any_of(inputs, missing)) {
        left.push_back(operation);
        continue;
      }
      run.operation(*operation);
      for (const Object* tensor : outputs_of(*operation)) {
        later.erase(id_of(*tensor));
      }
    }
    if (left.size() == waiting.size()) {
      return;  // a cycle
    }
    waiting = std::move(left);
  }
}

}  // namespace binade::kernels::cudnn::fake
