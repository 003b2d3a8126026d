// Printing in three steps: the shown elements are copied to a small tensor on the host, formatted,
// and joined to rows whose columns are aligned.
#include <binade/core/device/host_sync.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/print.h>
#include <binade/kernels/copy/copy.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <ostream>

namespace binade {
namespace {

constexpr int64_t kMostShown = 10'000;

// The elements of each dimension that are shown: all, or `edge` at both ends.
struct Shown {
  Dims sizes;    // of the shown elements
  int64_t edge;  // of dimensions that are not shown in full

  Shown(const Dims& full, int64_t edge) : sizes(full), edge(edge) {
    for (int d = 0; d < full.size(); ++d) {
      sizes[d] = std::min(full[d], 2 * edge);
    }
  }
};

Shown choose_shown(const Tensor& x, const PrintOptions& options) {
  if (x.numel() <= options.threshold) {
    return {x.sizes(), INT64_MAX / 2};
  }
  int64_t edge = std::min(options.edge_items, kMostShown);
  while (edge > 1) {
    double count = 1;
    for (int64_t size : Shown(x.sizes(), edge).sizes) {
      count *= static_cast<double>(size);
    }
    if (count <= static_cast<double>(kMostShown)) {
      break;
    }
    --edge;
  }
  return {x.sizes(), edge};
}

// Copies the shown elements to the host: for each dimension the first or the last ones, so one box
// of x per combination.
Tensor read_shown(const Tensor& x, const Shown& shown) {
  const Tensor y = empty(shown.sizes, x.dtype(), x.device());
  for (int choice = 0; choice < 1 << x.dim() && y.numel() > 0; ++choice) {
    Dims sizes = shown.sizes;
    int64_t from = 0, to = 0;
    bool exists = true;
    for (int d = 0; d < x.dim(); ++d) {
      const bool cut = x.sizes()[d] > shown.sizes[d], last = choice >> d & 1;
      exists = exists && (cut || !last);
      sizes[d] = cut ? shown.edge : sizes[d];
      from += cut && last ? (x.sizes()[d] - shown.edge) * x.strides()[d] : 0;
      to += cut && last ? shown.edge * y.strides()[d] : 0;
    }
    if (exists) {
      kernels::copy(
          {.x = make_view(x, sizes, x.strides(), from), .y = make_view(y, sizes, y.strides(), to)});
    }
  }
  return to_device(y, Device{});
}

template <class... Format>
std::string digits(Format... format) {
  char buffer[400];  // the largest double has 309 digits before the point
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, format...).ptr};
}

// Formats finite numbers alike, so that columns compare.
class FloatFormat {
 public:
  FloatFormat(const std::vector<double>& values, int precision) : precision_(precision) {
    double most = 0, least = INFINITY;
    for (double value : values) {
      const double size = std::fabs(value);
      if (std::isfinite(value)) {
        whole_ = whole_ && value == std::nearbyint(value);
        most = std::max(most, size);
        least = size > 0 ? std::min(least, size) : least;
      }
    }
    scientific_ = most > 0 && (most >= 1e8 || (!whole_ && (least < 1e-4 || most / least > 1000)));
  }
  std::string operator()(double value) const {
    if (!std::isfinite(value)) {
      return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    }
    if (scientific_) {
      return digits(value, std::chars_format::scientific, precision_);
    }
    return whole_ ? digits(value, std::chars_format::fixed, 0) + "."
                  : digits(value, std::chars_format::fixed, precision_);
  }

 private:
  int precision_;
  bool whole_ = true, scientific_ = false;
};

// The elements of a host tensor as texts of equal width.
std::vector<std::string> formatted(const Tensor& x, const PrintOptions& options) {
  std::vector<std::string> texts;
  if (x.dtype() == DType::boolean) {
    for (const bool value : x.to_vector<bool>()) {
      texts.emplace_back(value ? "true" : "false");
    }
  } else if (is_floating(x.dtype())) {
    const std::vector<double> values = x.to_vector<double>();
    const FloatFormat format(values, options.precision);
    std::transform(values.begin(), values.end(), std::back_inserter(texts), format);
  } else {
    for (const int64_t value : x.to_vector<int64_t>()) {
      texts.push_back(digits(value));
    }
  }
  size_t width = 0;
  for (const std::string& text : texts) {
    width = std::max(width, text.size());
  }
  for (std::string& text : texts) {
    text.insert(0, width - text.size(), ' ');
  }
  return texts;
}

// Joins the texts of elements to nested rows.
class Rows {
 public:
  Rows(const Dims& full, const Shown& shown, std::vector<std::string> texts, int line_width)
      : full_(full), shown_(shown), texts_(std::move(texts)), line_width_(line_width) {}

  std::string text() {
    if (full_.empty()) {
      return texts_[0];
    }
    if (texts_.empty()) {
      return "[]";
    }
    append(0);
    return std::move(out_);
  }

 private:
  bool cut(int d) const { return full_[d] > shown_.sizes[d]; }

  void append(int d) {
    out_ += '[';
    const bool last = d == full_.size() - 1;
    const std::string newline =
        std::string(last ? 1 : static_cast<size_t>(full_.size() - d) - 1, '\n') +
        std::string(static_cast<size_t>(d) + 1, ' ');
    for (int64_t i = 0; i < shown_.sizes[d]; ++i) {
      if (i > 0) {
        last ? separate(newline) : void(out_ += "," + newline);
      }
      if (cut(d) && i == shown_.edge) {
        out_ += "...";
        last ? separate(newline) : void(out_ += "," + newline);
      }
      last ? void(out_ += texts_[next_++]) : append(d + 1);
    }
    out_ += ']';
  }
  // Begins a new line if the next element would end beyond the width.
  void separate(const std::string& newline) {
    const size_t start = out_.rfind('\n') + 1;  // 0 if there is none
    const bool fits =
        out_.size() - start + texts_[0].size() + 3 <= static_cast<size_t>(line_width_);
    out_ += fits ? ", " : "," + newline;
  }

  const Dims& full_;
  const Shown& shown_;
  std::vector<std::string> texts_;
  int line_width_;
  std::string out_;
  size_t next_ = 0;
};

}  // namespace

std::string to_string(const Tensor& x, const PrintOptions& options, SourceLine where) {
  if (!x.defined()) {
    return "undefined tensor";
  }
  check(options.precision >= 0 && options.precision <= 17 && options.edge_items >= 1,
        "to_string: got precision ", options.precision, " and edge_items ", options.edge_items,
        ", expected a precision of 0 to 17 and at least 1 edge item");
  const detail::HostSyncCall reads("to_string", where);
  const Shown shown = choose_shown(x, options);
  const Tensor elements = read_shown(x.detach(), shown);
  Rows rows(x.sizes(), shown, formatted(elements, options), options.line_width);
  std::string out = text(rows.text(), " ", x.dtype(), " ", x.sizes());
  if (!x.device().is_cpu()) {
    out += text(" ", x.device());
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace binade
