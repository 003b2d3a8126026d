#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/metrics/class_tensors_internal.h>
#include <binade/train/metrics/expand_mask_internal.h>

#include <algorithm>

namespace binade::train {
namespace {

std::string kind(const Tensor& x) { return text(x.dtype(), " ", x.sizes()); }

// The sizes without the dimension of the classes.
Dims positions_of(const Tensor& scores) {
  Dims sizes{scores.size(0)};
  for (int i = 2; i < scores.dim(); ++i) {
    sizes.push_back(scores.size(i));
  }
  return sizes;
}

// True if the sizes are equal but for dimensions of size 1 at the end.
bool same_but_ones(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() > b.size() ? a : b;
  const Dims& shorter = a.size() > b.size() ? b : a;
  for (int i = 0; i < longer.size(); ++i) {
    if (longer[i] != (i < shorter.size() ? shorter[i] : 1)) {
      return false;
    }
  }
  return true;
}

// One score or one class per position.
Tensor fit_same(const std::string& metric, const char* what, const Tensor& x, const Tensor& output,
                const char* of) {
  check(same_but_ones(x.sizes(), output.sizes()), metric, ": got ", what, " ", kind(x),
        " for output ", kind(output), ", expected the sizes of the output, ", of);
  return reshape(x, output.sizes());
}

class Builder {
 public:
  Builder(const std::string& metric, const ClassMetricOptions& options, const Tensor& mask)
      : metric_(metric), options_(options), mask_(mask) {}

  ClassTensors build(const Tensor& output, const Tensor& target) {
    if (options_.threshold) {
      above_threshold(output, target);
    } else if (is_floating(output.dtype())) {
      best_scores(output, target);
    } else {
      given_classes(output, target);
    }
    return finish();
  }

 private:
  void above_threshold(const Tensor& output, const Tensor& target) {
    check(is_floating(output.dtype()), metric_, ": got output ", kind(output),
          " with a threshold, expected floating scores");
    const Tensor own = fit_same(metric_, "target", target, output, "one 0 or 1 for each score");
    all_.classes = 2;
    all_.is_binary = true;
    all_.predicted = gt(output, *options_.threshold).to(DType::i64);
    all_.nan = isnan(output);
    fit_mask(target, output);
    if (!is_floating(own.dtype())) {
      set_target(own);
      return;
    }
    // 0 and 1; another number, which to() would cut, becomes a class out of range.
    const Tensor whole = logical_or(eq(own, 0.0), eq(own, 1.0));
    all_.nan = logical_or(all_.nan, isnan(own));
    all_.target = where(whole, own, 2.0).to(DType::i64);
  }

  void best_scores(const Tensor& output, const Tensor& target) {
    all_.scores = scores_by_class(
        metric_, output, options_.class_dim,
        "; for one score per position set the option threshold: 0 for logits, 0.5 for "
        "probabilities");
    all_.classes = all_.scores.size(1);
    check(options_.classes == 0 || options_.classes == all_.classes, metric_, ": got output ",
          kind(output), ", expected scores of ", options_.classes, " classes");
    all_.predicted = argmax(all_.scores, 1);
    all_.nan = any(isnan(all_.scores), {1});
    if (mask_.defined()) {
      const bool soft = is_floating(target.dtype());
      mask_ = expand_mask(metric_, mask_, soft ? positions_of(all_.scores) : target.sizes());
      mask_ = fit_positions(metric_, "mask", mask_, all_.scores);
    }
    if (!is_floating(target.dtype())) {
      set_target(fit_positions(metric_, "target", target, all_.scores));
      return;
    }
    check(target.sizes() == output.sizes(), metric_, ": got target ", kind(target), " for output ",
          kind(output), ", expected integer classes ", positions_of(all_.scores),
          " or probabilities of the output's sizes; convert classes with .to(DType::i64)");
    const Tensor shares = movedim(target, options_.class_dim, 1);
    // Several labels at once, or none, would count as the first of them.
    const Tensor total = sum(shares.to(compute_dtype(shares.dtype())), {1});
    const Tensor is_one =
        logical_and(le(abs(total - 1.0), 0.01), logical_not(any(lt(shares, 0.0), {1})));
    has_shares_ = true;
    all_.target = masked_fill(argmax(shares, 1), logical_not(logical_or(is_one, isnan(total))), -1);
    all_.nan = logical_or(all_.nan, any(isnan(shares), {1}));
  }

  void given_classes(const Tensor& output, const Tensor& target) {
    check(output.dtype() != DType::boolean && !is_floating(target.dtype()), metric_,
          ": got output ", kind(output), " and target ", kind(target),
          ", expected scores, or classes as integers in both");
    all_.classes = options_.classes;
    all_.predicted = output.to(DType::i64);
    all_.nan = isnan(output);
    const Tensor own = fit_same(metric_, "target", target, output, "one class for each");
    fit_mask(target, output);
    set_target(own);
  }

  void fit_mask(const Tensor& target, const Tensor& output) {
    if (mask_.defined()) {
      mask_ = reshape(expand_mask(metric_, mask_, target.sizes()), output.sizes());
    }
  }

  void set_target(const Tensor& target) {
    all_.target = target.to(DType::i64);
    const Tensor used = ne(all_.target, static_cast<double>(options_.ignore_index));
    mask_ = mask_.defined() ? logical_and(mask_, used) : used;
  }

  Tensor outside(const Tensor& classes) const {
    const Tensor low = lt(classes, 0.0);
    return all_.classes == 0 ? low
                             : logical_or(low, ge(classes, static_cast<double>(all_.classes)));
  }

  ClassTensors finish() {
    if (!mask_.defined()) {
      mask_ = ones_like(all_.nan);
    }
    all_.nan = logical_and(all_.nan, mask_);
    const Tensor clean = logical_and(mask_, logical_not(all_.nan));
    const Tensor bad_target = logical_and(outside(all_.target), clean);
    const Tensor bad_output = logical_and(outside(all_.predicted), clean);
    all_.bad = logical_or(bad_target, bad_output);
    all_.counted = logical_and(clean, logical_not(all_.bad));
    if (all_.bad.device().is_cpu()) {
      check_now("target", bad_target, all_.target);
      check_now("output", bad_output, all_.predicted);
    }
    return std::move(all_);
  }

  void check_now(const char* what, const Tensor& bad, const Tensor& classes) const {
    if (bad.numel() == 0 || any(bad).item() == 0) {
      return;
    }
    const int64_t first = argmax(bad.to(DType::i32)).to_vector<int64_t>()[0];
    const auto number = static_cast<int64_t>(classes.at(first));
    if (all_.is_binary) {
      fail(metric_, ": got a ", what, " that is neither 0 nor 1 (element ", first,
           "), expected 0 or 1 for each score, as the option threshold is set");
    }
    check(
        !has_shares_ || number >= 0, metric_,
        ": got a target whose probabilities do not sum to 1 (element ", first,
        "), expected probabilities, of which the largest is the class; for several labels at once "
        "set the option threshold: 0 for logits, 0.5 for probabilities");
    fail(metric_, ": got class ", number, " in the ", what, " (element ", first, "), expected ",
         all_.classes > 0 ? text("0 to ", all_.classes - 1) : std::string("no negative number"),
         " or the ignore_index ", options_.ignore_index);
  }

  const std::string& metric_;
  const ClassMetricOptions& options_;
  Tensor mask_;              // bool [P...]; undefined: all count
  bool has_shares_ = false;  // the target has probabilities
  ClassTensors all_;
};

}  // namespace

ClassTensors class_tensors(const std::string& metric, const ClassMetricOptions& options,
                           const Tensor& output, const Tensor& target, const Tensor& mask) {
  return Builder(metric, options, mask).build(output, target);
}

std::string out_of_range(const std::string& metric, int64_t number) {
  return text(metric, ": got ", number,
              " classes that are out of range, expected classes from 0 "
              "below the number of scores, or the ignore_index");
}

Tensor number_of(const Tensor& which) { return reshape(sum(which), {1}); }

Tensor scores_by_class(const std::string& metric, const Tensor& output, int class_dim,
                       const char* for_one_score) {
  check(is_floating(output.dtype()), metric, ": got output ", kind(output),
        ", expected floating scores");
  const int dims = output.dim();
  check(dims >= 2 && class_dim >= -dims && class_dim < dims && class_dim != 0, metric,
        ": got output ", kind(output),
        ", expected scores [N, C, ...] with the classes in dimension ", class_dim, for_one_score);
  Tensor scores = movedim(output, class_dim, 1);
  check(scores.size(1) >= 2, metric, ": got output ", kind(output),
        ", expected scores of at least two classes in dimension ", class_dim, for_one_score);
  return scores;
}

Tensor fit_positions(const std::string& metric, const char* what, const Tensor& x,
                     const Tensor& scores) {
  const Dims positions = positions_of(scores);
  const bool flat = scores.dim() == 2 && x.numel() == scores.size(0);
  check(flat || x.sizes() == positions, metric, ": got ", what, " ", kind(x), " for scores ",
        kind(scores), " of ", scores.size(1), " classes, expected ", positions);
  return reshape(x, positions);
}

}  // namespace binade::train
