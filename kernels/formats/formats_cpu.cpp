// The format lab on the CPU. Elements, blocks and sums are independent of each other, so the split
// over threads changes no bit.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/formats/format_sums_isa_internal.h>
#include <binade/kernels/formats/format_values.h>
#include <binade/kernels/formats/formats.h>

#include <algorithm>

namespace binade::kernels {

void cpu::round_to_format(const RoundToFormat& a) {
  check_arguments(a);
  const double scale = scale_or_one(a.scale.as<float>());
  const FormatRandom random{a.seed, a.offset, a.advance.as<int64_t>()};
  dispatch_floating("round_to_format", a.x.dtype, [&]<class T>(Type<T>) {
    const T* x = a.x.as<T>();
    T* y = a.y.as<T>();
    parallel_for(a.x.numel, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = static_cast<T>(round_scaled(static_cast<double>(x[i]), scale, a.grid, a.rounding,
                                           random.at(a.rounding, static_cast<uint64_t>(i))));
      }
    });
  });
}

void cpu::round_blocks(const RoundBlocks& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const FormatBlock rule{
      a.grid, a.scales, a.rule, a.rounding, {a.seed, a.offset, a.advance.as<int64_t>()}};
  const double second = scale_or_one(a.scale.as<float>());
  const int64_t blocks = (a.length + a.block - 1) / a.block, per_outer = blocks * a.inner;
  const int64_t items = a.x.numel / (a.length * a.inner) * per_outer;
  dispatch_floating("round_blocks", a.x.dtype, [&]<class T>(Type<T>) {
    parallel_for(items, std::max<int64_t>(1, 4096 / a.block), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t outer = item / per_outer, block = item % per_outer / a.inner;
        const int64_t start = block * a.block;
        rule.run(a.x.as<T>(), a.y.as<T>(), (outer * a.length + start) * a.inner + item % a.inner,
                 std::min(a.block, a.length - start), a.inner, second);
      }
    });
  });
}

namespace {

// The rows of a or the columns of b of an AccumulateMatmul: `count` sequences of k factors.
template <class T>
struct Factors {
  const T* first;
  int64_t count, step, along;  // step: to the next sequence; along: to its next factor

  double at(int64_t sequence, int64_t i) const {
    return static_cast<double>(first[sequence * step + i * along]);
  }
};

constexpr int64_t kTaskRows = 16;       // of sums, of kFormatLanes each
constexpr int64_t kTaskSums = 1 << 15;  // additions that are worth a thread

int64_t tasks_at_once(int64_t additions) {
  return std::max<int64_t>(1, kTaskSums / std::max<int64_t>(1, additions));
}

// The factors in double, [ceil(count / width), k, width]; what is too much is 0.
template <class T>
void to_double(const Factors<T>& factors, int64_t k, int64_t width, double* out) {
  const int64_t panels = ceil_div(factors.count, width);
  parallel_for(panels, tasks_at_once(width * k), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      double* to = out + panel * width * k;
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = panel * width; j < (panel + 1) * width; ++j) {
          *to++ = j < factors.count ? factors.at(j, i) : 0;
        }
      }
    }
  });
}

// sums: what all tasks share. The rows of sums are those of y, or its columns if these are fewer.
template <class T>
void sum_in_lanes(const AccumulateMatmul& a, FormatSums sums) {
  const int64_t m = a.a.size(0), n = a.b.size(1), k = sums.k;
  const Factors<T> left{a.a.as<T>(), m, k, 1}, right{a.b.as<T>(), n, 1, n};
  const bool turned = n * ceil_div(m, kFormatLanes) < m * ceil_div(n, kFormatLanes);
  const Factors<T>&rows = turned ? right : left, &columns = turned ? left : right;
  sums.row_step = turned ? 1 : n;
  sums.column_step = turned ? n : 1;
  const int64_t panels = ceil_div(columns.count, kFormatLanes);
  const int64_t blocks = ceil_div(rows.count, kTaskRows), panel_size = kFormatLanes * k;
  const Workspace memory(static_cast<size_t>(panels * panel_size + rows.count * k) *
                         sizeof(double));
  auto *column_memory = memory.as<double>(), *row_memory = column_memory + panels * panel_size;
  to_double(columns, k, kFormatLanes, column_memory);
  to_double(rows, k, 1, row_memory);
  T* y = a.y.as<T>();
  parallel_for(
      panels * blocks, tasks_at_once(kTaskRows * panel_size), [&](int64_t from, int64_t to) {
        double out[kTaskRows * kFormatLanes];
        for (int64_t task = from; task < to; ++task) {
          const int64_t column = task / blocks * kFormatLanes, row = task % blocks * kTaskRows;
          FormatSums own = sums;
          own.columns = column_memory + column * k;
          own.rows = row_memory + row * k;
          own.row_count = std::min(kTaskRows, rows.count - row);
          own.sums = out;
          own.element = row * sums.row_step + column * sums.column_step;
          sum_in_format_best(own);
          const int64_t count = std::min<int64_t>(kFormatLanes, columns.count - column);
          for (int64_t r = 0; r < own.row_count; ++r) {
            for (int64_t c = 0; c < count; ++c) {
              y[own.element + r * sums.row_step + c * sums.column_step] =
                  static_cast<T>(out[r * kFormatLanes + c]);
            }
          }
        }
      });
}

// One sum after the other: of formats that sum_in_format() does not know, and of results that do
// not fill its lanes.
template <class T>
void sum_alone(const AccumulateMatmul& a, const FormatSum& rule) {
  const int64_t k = a.a.size(1), n = a.b.size(1);
  const T *left = a.a.as<T>(), *right = a.b.as<T>();
  T* y = a.y.as<T>();
  parallel_for(a.y.numel, tasks_at_once(8 * k), [&](int64_t begin, int64_t end) {
    for (int64_t element = begin; element < end; ++element) {
      const int64_t row = element / n * k, column = element % n;
      y[element] = static_cast<T>(rule.run(element, k, [&](int64_t i) {
        return static_cast<double>(left[row + i]) * static_cast<double>(right[i * n + column]);
      }));
    }
  });
}

}  // namespace

void cpu::accumulate_matmul(const AccumulateMatmul& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const FormatRandom random{a.seed, a.offset, a.advance.as<int64_t>()};
  const bool in_lanes = FormatSums::fits(a.grid) && a.y.numel >= kFormatLanes / 2;
  dispatch_floating("accumulate_matmul", a.a.dtype, [&]<class T>(Type<T>) {
    if (!in_lanes) {
      sum_alone<T>(a, {a.grid, a.rounding, a.order, a.chunk, random});
      return;
    }
    sum_in_lanes<T>(a, {.grid = a.grid,
                        .rounding = a.rounding,
                        .order = a.order,
                        .chunk = a.chunk,
                        .k = a.a.size(1),
                        .seed = a.seed,
                        .first = random.first()});
  });
}

}  // namespace binade::kernels
