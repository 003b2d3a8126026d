// One hop of a reduction on the CPU: one flat loop.
#include <binade/kernels/copy/combine.h>
#include <binade/kernels/copy/combine_isa_internal.h>

namespace binade::kernels {

void cpu::combine(const Combine& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const DType dtype = a.x.dtype;
  const bool has_received = static_cast<bool>(a.received);
  const CombineTile what{a.op,      dtype,    has_received ? a.received.dtype : dtype,
                         a.y.dtype, a.before, a.after};
  const auto width = [](const View& view) { return static_cast<int64_t>(size_of(view.dtype)); };
  run_flat({{a.y.data, a.x.data, a.received.data, nullptr},
            {width(a.y), width(a.x), has_received ? width(a.received) : 0, 0},
            {},
            1,
            0},
           a.x.numel, [&](const StridedTile& tile) { combine_tile_best(what, tile); });
}

}  // namespace binade::kernels
