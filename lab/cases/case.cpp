#include <binade/lab/cases/case_file.h>
#include <binade/lab/cases/case_internal.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace binade::lab {
namespace {

using Maker = Case (*)();
const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> list = {
      {"softmax", softmax_case},
      {"gemm", gemm_case},
      {"layer_norm", layer_norm_case},
      {"reduce", reduce_case},
      {"transpose", transpose_case},
      {"histogram", histogram_case},
      {"scan", scan_case},
      {"elementwise", elementwise_case},
      {"stencil", stencil_case},
      {"attention", attention_case},
  };
  return list;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : separator) + word;
  }
  return all;
}

}  // namespace

const CaseParameter* Case::find(const std::string& wanted) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const CaseParameter& p) { return p.name == wanted; });
  return found == parameters.end() ? nullptr : &*found;
}

int64_t extent_of(const std::string& extent, const Sizes& sizes) {
  int64_t sum = 0, product = 1;
  std::string word;
  const auto finish_factor = [&] {
    const auto found = sizes.find(word);
    int64_t value = found != sizes.end() ? found->second : 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    check(found != sizes.end() || (!word.empty() && error == std::errc() && *end == '\0'),
          "case: got the extent ", extent, ", expected sums of products of sizes and numbers");
    check(!__builtin_mul_overflow(product, value, &product), "case: the extent ", extent,
          " is too large");
    word.clear();
  };
  const auto finish_term = [&] {
    check(!__builtin_add_overflow(sum, product, &sum), "case: the extent ", extent,
          " is too large");
    product = 1;
  };
  for (const char c : extent) {
    if (c == '*' || c == '+') {
      finish_factor();
    } else if (c != ' ') {
      word += c;
    }
    if (c == '+') {
      finish_term();
    }
  }
  finish_factor();
  finish_term();
  return sum;
}

int64_t Case::count(const CaseParameter& array, const Sizes& sizes) const {
  int64_t count = 1;
  for (const std::string& extent : array.extents) {
    const int64_t factor = extent_of(extent, sizes);
    check(factor > 0 && !__builtin_mul_overflow(count, factor, &count), "case ", this->name,
          ": got the extent ", extent, " = ", factor, " of ", array.name,
          ", expected at least 1 and fewer elements than 2^63");
  }
  return count;
}

std::string Case::text_of(const Sizes& sizes) const {
  std::string out;
  for (const std::string& size : size_order) {
    out += text(out.empty() ? "" : "x", sizes.at(size));
  }
  return out;
}

Sizes Case::shape_from(const std::string& shape) const {
  constexpr int64_t kMost = int64_t{1} << 31;
  Sizes sizes;
  const char* at = shape.data();
  const char* const end = at + shape.size();
  for (const std::string& name : size_order) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    const bool last = sizes.size() + 1 == size_order.size();
    const bool ok = error == std::errc() && value >= 1 && value <= kMost &&
                    (last ? next == end : next != end && *next == 'x');
    check(ok, "case ", this->name, ": got the shape ", shape, ", expected ",
          joined(size_order, " x "), ", such as ", text_of(shapes.back()));
    sizes[name] = value;
    at = next + 1;
  }
  constexpr int64_t kMostElements = int64_t{1} << 30;
  int64_t left = kMostElements;
  for (const CaseParameter& p : parameters) {
    const int64_t elements = p.extents.empty() ? 0 : count(p, sizes);
    check(elements <= left, "case ", this->name, ": the shape ", shape,
          " has more elements than the 2^30 that the lab can hold");
    left -= elements;
  }
  return sizes;
}

void fill_array(Array& array, const std::string& set, CaseRandom& random, FillOptions options) {
  const double range = set == "large" ? options.range * options.large : options.range;
  for (size_t i = 0; i < array.size(); ++i) {
    array[i] = set == "equal" ? 2.0 : random.uniform(-range, range);
    const bool first = static_cast<int64_t>(i) % std::max<int64_t>(options.row, 1) == 0;
    if (set == "-inf" && !first && random.below(3) == 0) {
      array[i] = -std::numeric_limits<double>::infinity();
    }
  }
  if (set == "nan" && !array.empty()) {
    array[array.size() / 2] = std::numeric_limits<double>::quiet_NaN();
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) {
    names.push_back(name);
  }
  return names;
}

Case find_case(const std::string& name) {
  if (name.ends_with(".json")) {
    return read_case_file(name);
  }
  for (const auto& [known, maker] : makers()) {
    if (known == name) {
      return maker();
    }
  }
  throw Error(text("kernel: got the case ", name, ", expected ", joined(case_names(), ", "),
                   ", or a file that ends in .json"));
}

}  // namespace binade::lab
