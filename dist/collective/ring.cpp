// One pipeline of items does everything: item i is piece i % pieces of step i / pieces. In step s
// rank r sends segment r - 1 - s and receives segment r - 2 - s. Steps below n - 1 reduce, the n -
// 1 steps after them gather. Item i is sent once item i - pieces, the same piece one step before,
// has been combined, so up to `pieces` items can be in flight.
#include <binade/core/device/device_memory.h>
#include <binade/dist/collective/ring.h>
#include <binade/kernels/copy/combine.h>

#include <algorithm>

namespace binade::dist {
namespace {

constexpr int64_t kUnderWay = 4;  // items in flight at a time

struct Range {
  int64_t begin, count;  // elements
};

void check_place(const char* what, const Transport& transport, const View& x) {
  const Device device = transport.device();
  check(x.contiguous && (device.is_cpu() ? x.device.is_cpu() : x.device == device), what,
        ": got a view on ", x.device, x.contiguous ? "" : " (not contiguous)",
        ", expected contiguous memory of ", device);
}

// Waits on the host for all work given to the current stream and the transport.
void complete(Transport& transport) {
  if (!transport.device().is_cpu()) {
    transport.group_start();
    transport.wait(transport.group_end());
  }
}

kernels::CombineOp combine_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::max: return kernels::CombineOp::max;
    case ReduceOp::min: return kernels::CombineOp::min;
    default: return kernels::CombineOp::sum;
  }
}

class Ring {
 public:
  // x has all segments. Results go to y: all segments if `whole`, else this rank's.
  Ring(Transport& transport, const View& x, const View& y, bool whole, ReduceOp op,
       const RingOptions& options)
      : t_(transport),
        n_(transport.size()),
        x_(x),
        y_(y),
        whole_(whole),
        op_(op),
        wire_(is_half(x.dtype) && options.f32_carry ? DType::f32 : x.dtype),
        bounds_(options.bounds) {
    check_place("ring", transport, x);
    check_place("ring", transport, y);
    int64_t longest = 0;
    for (int64_t segment = 0; segment < n_; ++segment) {
      longest = std::max(longest, bound(segment + 1) - bound(segment));
    }
    const int64_t piece =
        std::max<int64_t>(1, options.piece_bytes / static_cast<int64_t>(size_of(wire_)));
    pieces_ = std::max<int64_t>(1, (longest + piece - 1) / piece);
    under_way_ = std::min(pieces_, kUnderWay);
    if (op == ReduceOp::avg) {
      (is_half(x.dtype) ? before_ : after_) = n_;
    }
    slot_ = longest / pieces_ + 1;
  }

  void reduce_scatter() { run(0, n_ - 1); }
  void all_gather() { run(n_ - 1, 2 * (n_ - 1)); }
  void all_reduce() { run(0, 2 * (n_ - 1)); }

 private:
  void run(int64_t first_step, int64_t last_step) {
    if (first_step < n_ - 1) {
      // With two ranks that send their values unchanged there are no partial results to store.
      const bool partial = n_ > 2 || makes_first();
      const int64_t width = static_cast<int64_t>(size_of(wire_)), received = slot_ * under_way_;
      received_ =
          t_.workspace(static_cast<size_t>((received + (partial ? slot_ * pieces_ : 0)) * width));
      partial_ = received_ + received * width;
    }
    const int64_t first = first_step * pieces_, last = last_step * pieces_;
    uint64_t tickets[kUnderWay];
    for (int64_t i = first; i < std::min(first + under_way_, last); ++i) {
      tickets[i % under_way_] = post(i);
    }
    for (int64_t i = first; i < last; ++i) {
      t_.order(tickets[i % under_way_]);
      combine(i);
      if (i + under_way_ < last) {
        tickets[i % under_way_] = post(i + under_way_);
      }
    }
    complete(t_);
  }

  // True if the first step does not send the values unchanged.
  bool makes_first() const { return before_ != 1 || wire_ != x_.dtype; }

  uint64_t post(int64_t i) {
    const int64_t step = i / pieces_, k = i % pieces_;
    const int n = static_cast<int>(n_), next = (t_.rank() + 1) % n,
              before = (t_.rank() + n - 1) % n;
    const View out = sent(step, k), in = arriving(step, k, i % under_way_);
    t_.group_start();
    t_.send(next, out.data, bytes(out));
    t_.receive(before, in.data, bytes(in));
    return t_.group_end();
  }

  // The data that item (step, k) sends. The first step of a reduction may have to compute it.
  View sent(int64_t step, int64_t k) {
    const Range range = piece(t_.rank() - 1 - step, k);
    if (step >= n_ - 1) {
      return result(range);
    }
    const View own = view(x_.data, x_.dtype, range.begin, range.count);
    if (step == 0 && !makes_first()) {
      return own;
    }
    const View partial = view(partial_, wire_, k * slot_, range.count);
    if (step == 0) {
      kernels::combine(
          {.op = combine_op(op_), .received = kNoView, .x = own, .y = partial, .before = before_});
    }
    return partial;
  }

  View arriving(int64_t step, int64_t k, int64_t slot) const {
    const Range range = piece(t_.rank() - 2 - step, k);
    return step < n_ - 1 ? view(received_, wire_, slot * slot_, range.count) : result(range);
  }

  void combine(int64_t i) {
    const int64_t step = i / pieces_, k = i % pieces_;
    if (step >= n_ - 1) {
      return;
    }
    const bool complete = step == n_ - 2;
    const Range range = piece(t_.rank() - 2 - step, k);
    kernels::combine({.op = combine_op(op_),
                      .received = arriving(step, k, i % under_way_),
                      .x = view(x_.data, x_.dtype, range.begin, range.count),
                      .y = complete ? result(range) : view(partial_, wire_, k * slot_, range.count),
                      .before = before_,
                      .after = complete ? after_ : 1});
  }

  Range piece(int64_t segment, int64_t k) const {
    segment = (segment % n_ + n_) % n_;
    const int64_t begin = bound(segment), end = bound(segment + 1);
    const int64_t first = (end - begin) * k / pieces_, last = (end - begin) * (k + 1) / pieces_;
    return {begin + first, last - first};
  }

  int64_t bound(int64_t segment) const {  // where it begins
    return bounds_.empty() ? x_.numel * segment / n_ : bounds_[static_cast<size_t>(segment)];
  }

  View result(const Range& range) const {
    const int64_t origin = whole_ ? 0 : bound(t_.rank());
    return view(y_.data, y_.dtype, range.begin - origin, range.count);
  }

  View view(std::byte* data, DType dtype, int64_t begin, int64_t count) const {
    View out =
        view_of(data ? data + begin * static_cast<int64_t>(size_of(dtype)) : data, dtype, {count});
    out.device = x_.device;
    return out;
  }
  static size_t bytes(const View& view) {
    return static_cast<size_t>(view.numel) * size_of(view.dtype);
  }

  Transport& t_;
  const int64_t n_;
  const View &x_, &y_;
  const bool whole_;
  const ReduceOp op_;
  const DType wire_;  // of partial results
  const std::span<const int64_t> bounds_;
  int64_t pieces_, under_way_, slot_;
  double before_ = 1, after_ = 1;
  std::byte *partial_ = nullptr, *received_ = nullptr;
};

void copy_bytes(const View& x, std::byte* to) {
  if (x.numel > 0 && x.data != to) {
    device_copy(to, x.device, x.data, x.device, static_cast<size_t>(x.numel) * size_of(x.dtype));
  }
}

void check_equal(const char* what, const View& whole, const View& part, int ranks) {
  check(whole.dtype == part.dtype && whole.numel == part.numel * ranks, what, ": got ", whole.dtype,
        " of ", whole.numel, " elements for all ranks and ", part.dtype, " of ", part.numel,
        " for one, expected ", ranks, " times the elements of one");
}

void check_bounds(const char* what, const View& x, int ranks, std::span<const int64_t> bounds) {
  check(bounds.size() == static_cast<size_t>(ranks) + 1 && bounds.front() == 0 &&
            bounds.back() == x.numel && std::is_sorted(bounds.begin(), bounds.end()),
        what, ": got ", bounds.size(), " bounds",
        bounds.empty() ? "" : text(" up to ", bounds.back()), ", expected ", ranks + 1,
        " that rise from 0 to the ", x.numel, " elements");
}

}  // namespace

void ring_all_reduce(Transport& transport, const View& x, ReduceOp op, const RingOptions& options) {
  if (transport.size() > 1) {
    Ring(transport, x, x, true, op, options).all_reduce();
  }
}

void ring_reduce_scatter(Transport& transport, const View& x, const View& y, ReduceOp op,
                         const RingOptions& options) {
  check_equal("reduce_scatter", x, y, transport.size());
  if (transport.size() > 1) {
    Ring(transport, x, y, false, op, options).reduce_scatter();
  } else {
    copy_bytes(x, y.data);
    complete(transport);
  }
}

void ring_all_gather(Transport& transport, const View& x, const View& y,
                     const RingOptions& options) {
  check_equal("all_gather", y, x, transport.size());
  copy_bytes(x, y.data + transport.rank() * x.numel * static_cast<int64_t>(size_of(x.dtype)));
  if (transport.size() > 1) {
    Ring(transport, y, y, true, ReduceOp::sum, options).all_gather();
  } else {
    complete(transport);
  }
}

void ring_reduce_scatter_ranges(Transport& transport, const View& x, ReduceOp op,
                                const RingOptions& options) {
  check_bounds("reduce_scatter", x, transport.size(), options.bounds);
  if (transport.size() > 1) {
    Ring(transport, x, x, true, op, options).reduce_scatter();
  }
}

void ring_all_gather_ranges(Transport& transport, const View& x, const RingOptions& options) {
  check_bounds("all_gather", x, transport.size(), options.bounds);
  if (transport.size() > 1) {
    Ring(transport, x, x, true, ReduceOp::sum, options).all_gather();
  }
}

void ring_broadcast(Transport& transport, const View& x, int root, const RingOptions& options) {
  const int n = transport.size();
  check(root >= 0 && root < n, "broadcast: got root ", root, ", expected a rank of 0 .. ", n - 1);
  check_place("broadcast", transport, x);
  const int place = (transport.rank() - root + n) % n;  // distance from the root
  const auto size = static_cast<size_t>(x.numel) * size_of(x.dtype);
  const auto piece = static_cast<size_t>(options.piece_bytes);
  // Receives piece i while it passes on piece i - 1.
  const size_t pieces = (size + piece - 1) / piece;
  for (size_t i = 0; n > 1 && i <= pieces; ++i) {
    const auto range = [&](size_t k) { return std::min(piece, size - k * piece); };
    transport.group_start();
    if (place > 0 && i < pieces) {
      transport.receive((transport.rank() + n - 1) % n, x.data + i * piece, range(i));
    }
    if (place < n - 1 && i > 0) {
      transport.send((transport.rank() + 1) % n, x.data + (i - 1) * piece, range(i - 1));
    }
    transport.order(transport.group_end());
  }
  complete(transport);
}

}  // namespace binade::dist
