#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/share.h>
#include <binade/train/metrics/exact_sum_internal.h>
#include <binade/train/metrics/metric.h>

#include <algorithm>
#include <cmath>

namespace binade::train {
namespace {

// Sums [..., size] over all but the last dimension, or any x over all dimensions if size is 1. The
// result does not share x's memory.
Tensor sum_rows(const Tensor& x, int64_t size) {
  if (size == 1) {
    return reshape(sum(x), {1});
  }
  return sum(reshape(x, {-1, size}), {0});
}

// The sizes of x for a state of `size` numbers, or 0 if that is not known yet.
int64_t size_for(const std::string& name, const Tensor& x, int64_t size) {
  check(x.defined(), "metric state '", name, "': got an undefined tensor");
  if (size == 1) {
    return 1;
  }
  check(x.dim() >= 1 && x.size(-1) > 0 && (size == 0 || x.size(-1) == size), "metric state '", name,
        "': got a tensor ", x.sizes(), ", expected [..., ", size == 0 ? "n" : std::to_string(size),
        "]");
  return x.size(-1);
}

void check_index(const std::string& name, int64_t index, int64_t size) {
  check(index >= 0 && index < size, "metric state '", name, "': got index ", index,
        ", expected one below ", size);
}

// Collective: the size that all ranks agree on; ranks whose size is not known yet have 0.
int64_t common_size(dist::Communicator& group, const std::string& name, int64_t size) {
  const auto own = static_cast<double>(size);
  const double least = size > 0 ? -own : -0x1p62;
  const std::vector<double> all = dist::reduce_numbers(group, {own, least}, dist::ReduceOp::max);
  check(all[0] == 0 || all[0] == -all[1], "metric state '", name, "': got ", all[0],
        " numbers on one rank and ", -all[1], " on another, expected as many on every rank");
  return static_cast<int64_t>(all[0]);
}

void check_i64(const Tensor& saved, const std::string& what, const char* expected, bool fits) {
  check(fits, what, ": got ", saved.defined() ? text(saved.dtype(), " ", saved.sizes()) : "nothing",
        ", expected ", expected);
}

// A device keeps the results of this many calls before the host reads them at once.
constexpr size_t kUnreadStates = 256;

}  // namespace

// counts ------------------------------------------------------------------------------------------

class MetricCount::State : public MetricState {
 public:
  State(const std::string& name, int64_t size) : MetricState(name), fixed_(size) { reset(); }

  void reset() override {
    counts_.assign(static_cast<size_t>(fixed_), 0);
    pending_ = Tensor();
  }

  void add(int64_t number, int64_t index) {
    check_index(name(), index, size());
    counts_[static_cast<size_t>(index)] += number;
  }

  void add(const Tensor& x) {
    const int64_t size = size_for(name(), x, this->size());
    check(!is_floating(x.dtype()), "metric state '", name(), "': got a tensor of ", x.dtype(),
          ", expected integers or bool");
    counts_.resize(static_cast<size_t>(size));
    if (x.numel() == 0) {
      return;
    }
    const NoGradGuard no_grad;
    const Tensor total = sum_rows(x.detach().to(DType::i64), size);
    if (x.device().is_cpu()) {
      add_host(total);
      return;
    }
    if (pending_.defined() && !(pending_.device() == x.device())) {
      read();
    }
    pending_ = pending_.defined() ? binade::add(pending_, total) : total;
  }

  const std::vector<int64_t>& read() const {
    if (pending_.defined()) {
      add_host(pending_.to(Device{}));
      pending_ = Tensor();
    }
    return counts_;
  }
  int64_t size() const { return static_cast<int64_t>(counts_.size()); }

  void reduce(dist::Communicator& group) override {
    const int64_t size = common_size(group, name(), this->size());
    if (size > 0) {
      read();
      counts_.resize(static_cast<size_t>(size));
      const Tensor all = save();
      group.all_reduce(all);
      load(all);
    }
  }

  Tensor save() const override { return Tensor::from(read(), {size()}); }
  void check_saved(const Tensor& saved, const std::string& what) const override {
    const bool fits = saved.defined() && saved.dtype() == DType::i64 && saved.dim() == 1 &&
                      (fixed_ == 0 || saved.numel() == fixed_);
    check_i64(saved, what, fixed_ == 0 ? "i64 [n]" : text("i64 [", fixed_, "]").c_str(), fits);
  }
  void load(const Tensor& saved) override {
    reset();
    counts_ = saved.to_vector<int64_t>();
  }

 private:
  void add_host(const Tensor& total) const {
    const std::vector<int64_t> numbers = total.to_vector<int64_t>();
    std::transform(numbers.begin(), numbers.end(), counts_.begin(), counts_.begin(), std::plus<>());
  }

  const int64_t fixed_;  // the size; 0: the first tensor's
  mutable std::vector<int64_t> counts_;
  mutable Tensor pending_;  // on a device, to be added
};

MetricCount::MetricCount(Metric& metric, const std::string& name, int64_t size)
    : state_(std::make_shared<State>(name, size)) {
  check(size >= 0, "metric state '", name, "': got size ", size, ", expected no negative number");
  metric.add_state(state_);
}
void MetricCount::add(int64_t number, int64_t index) { state_->add(number, index); }
void MetricCount::add(const Tensor& x) { state_->add(x); }
int64_t MetricCount::value(int64_t index) const {
  check_index(state_->name(), index, size());
  return state_->read()[static_cast<size_t>(index)];
}
std::vector<int64_t> MetricCount::values() const { return state_->read(); }
int64_t MetricCount::size() const { return state_->size(); }

// sums --------------------------------------------------------------------------------------------

class MetricSum::State : public MetricState {
 public:
  State(const std::string& name, int64_t size) : MetricState(name), fixed_(size) { reset(); }

  void reset() override {
    sums_.assign(static_cast<size_t>(fixed_), ExactSum());
    unread_.clear();
  }

  void add(double x, int64_t index) {
    check_index(name(), index, size());
    sums_[static_cast<size_t>(index)].add(x);
  }

  void add(const Tensor& x, const Tensor& counted) {
    const int64_t size = size_for(name(), x, this->size());
    check(!counted.defined() || (counted.dtype() == DType::boolean && counted.sizes() == x.sizes()),
          "metric state '", name(), "': got a mask that is not bool ", x.sizes(),
          " as the values are");
    sums_.resize(static_cast<size_t>(size));
    if (x.numel() == 0) {
      return;
    }
    const NoGradGuard no_grad;
    const Tensor values = x.detach().to(DType::f64);
    if (x.device().is_cpu()) {
      add_host(values, counted);
    } else {
      add_device(sum_rows(counted.defined() ? where(counted, values, 0.0) : values, size));
    }
  }

  const std::vector<ExactSum>& read() const {
    if (!unread_.empty()) {
      add_host(stack(unread_).to(Device{}), {});
      unread_.clear();
    }
    return sums_;
  }
  int64_t size() const { return static_cast<int64_t>(sums_.size()); }

  void reduce(dist::Communicator& group) override {
    const int64_t size = common_size(group, name(), this->size());
    if (size > 0) {
      read();
      sums_.resize(static_cast<size_t>(size));
      const Tensor all = save();
      group.all_reduce(all);
      load(all);
    }
  }

  Tensor save() const override {
    std::vector<int64_t> words;
    for (const ExactSum& sum : read()) {
      const auto own = sum.words();
      words.insert(words.end(), own.begin(), own.end());
    }
    return Tensor::from(words, {size(), ExactSum::kWords});
  }
  void check_saved(const Tensor& saved, const std::string& what) const override {
    const bool fits = saved.defined() && saved.dtype() == DType::i64 && saved.dim() == 2 &&
                      saved.size(1) == ExactSum::kWords && (fixed_ == 0 || saved.size(0) == fixed_);
    check_i64(saved, what,
              text("i64 [", fixed_ == 0 ? "n" : std::to_string(fixed_), ", ", ExactSum::kWords, "]")
                  .c_str(),
              fits);
    const std::vector<int64_t> words = saved.to_vector<int64_t>();
    for (size_t at = 0; at < words.size(); at += ExactSum::kWords) {
      check(ExactSum::are_words(std::span(words).subspan(at, ExactSum::kWords)), what,
            ": got numbers that are not those of a sum");
    }
  }
  void load(const Tensor& saved) override {
    reset();
    const std::vector<int64_t> words = saved.to_vector<int64_t>();
    sums_.assign(words.size() / ExactSum::kWords, ExactSum());
    for (size_t i = 0; i < sums_.size(); ++i) {
      sums_[i].set_words(std::span(words).subspan(i * ExactSum::kWords, ExactSum::kWords));
    }
  }

 private:
  void add_host(const Tensor& values, const Tensor& counted) const {
    const Tensor x = contiguous(values), mask = counted.defined() ? contiguous(counted) : Tensor();
    const double* const data = x.data<double>();
    const bool* const counts = mask.defined() ? mask.data<bool>() : nullptr;
    const size_t size = sums_.size();
    size_t column = 0;
    for (int64_t i = 0; i < x.numel(); ++i, column = column + 1 == size ? 0 : column + 1) {
      if (!counts || counts[i]) {
        sums_[column].add(data[i]);
      }
    }
  }

  void add_device(Tensor total) {
    if (!unread_.empty() && !(unread_[0].device() == total.device())) {
      read();
    }
    unread_.push_back(std::move(total));
    if (unread_.size() == kUnreadStates) {
      read();
    }
  }

  const int64_t fixed_;
  mutable std::vector<ExactSum> sums_;
  mutable std::vector<Tensor> unread_;  // f64 [size] each, on one device
};

MetricSum::MetricSum(Metric& metric, const std::string& name, int64_t size)
    : state_(std::make_shared<State>(name, size)) {
  check(size >= 0, "metric state '", name, "': got size ", size, ", expected no negative number");
  metric.add_state(state_);
}
void MetricSum::add(double x, int64_t index) { state_->add(x, index); }
void MetricSum::add(const Tensor& x, const Tensor& counted) { state_->add(x, counted); }
double MetricSum::value(int64_t index) const {
  check_index(state_->name(), index, size());
  return state_->read()[static_cast<size_t>(index)].value();
}
std::vector<double> MetricSum::values() const {
  std::vector<double> values;
  for (const ExactSum& sum : state_->read()) {
    values.push_back(sum.value());
  }
  return values;
}
std::vector<double> MetricSum::parts(int64_t index) const {
  check_index(state_->name(), index, size());
  ExactSum rest = state_->read()[static_cast<size_t>(index)];
  std::vector<double> parts = {rest.value()};
  while (std::isfinite(parts.back()) && parts.back() != 0) {
    rest.add(-parts.back());
    parts.push_back(rest.value());
  }
  return parts;
}
int64_t MetricSum::size() const { return state_->size(); }

// rows --------------------------------------------------------------------------------------------

class MetricRows::State : public MetricState {
 public:
  explicit State(const std::string& name) : MetricState(name) {}

  void reset() override { parts_.clear(); }

  void add(const Tensor& rows) {
    check(rows.defined() && rows.dim() >= 1, "metric state '", name(), "': got ",
          rows.defined() ? "a scalar" : "an undefined tensor", ", expected rows [n, ...]");
    check_same(rows);
    const NoGradGuard no_grad;
    if (rows.numel() > 0) {
      parts_.push_back(clone(rows.detach()));
    }
  }

  Tensor read() const {
    const NoGradGuard no_grad;
    std::vector<Tensor> host;
    for (const Tensor& part : parts_) {
      host.push_back(part.to(Device{}));
    }
    return host.empty() ? zeros({0}) : host.size() == 1 ? host[0] : cat(host, 0);
  }

  void reduce(dist::Communicator& group) override {
    const Tensor own = read();
    parts_.clear();
    for (int rank = 0; rank < group.size(); ++rank) {
      const NamedTensors rows = dist::broadcast_tensors(group, {{name(), own}}, rank);
      add(rows[0].second);
    }
  }

  Tensor save() const override { return read(); }
  void check_saved(const Tensor& saved, const std::string& what) const override {
    check_i64(saved, what, "rows [n, ...]", saved.defined() && saved.dim() >= 1);
  }
  void load(const Tensor& saved) override {
    reset();
    add(saved);
  }

 private:
  void check_same(const Tensor& rows) const {
    if (parts_.empty() || rows.numel() == 0) {
      return;
    }
    const Tensor& first = parts_[0];
    bool same = rows.dtype() == first.dtype() && rows.dim() == first.dim();
    for (int i = 1; same && i < rows.dim(); ++i) {
      same = rows.size(i) == first.size(i);
    }
    check(same, "metric state '", name(), "': got rows ", rows.dtype(), " ", rows.sizes(),
          " after rows ", first.dtype(), " ", first.sizes(),
          ", expected the same dtype and sizes but for the first");
  }

  std::vector<Tensor> parts_;
};

MetricRows::MetricRows(Metric& metric, const std::string& name)
    : state_(std::make_shared<State>(name)) {
  metric.add_state(state_);
}
void MetricRows::add(const Tensor& rows) { state_->add(rows); }
Tensor MetricRows::read() const { return state_->read(); }

}  // namespace binade::train
