// CPU kernels of three operands: checks, one flat loop if all operands are row-major with the same
// sizes, else a coalesced strided loop. The bodies are in ternary_isa.cpp.
#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/pointwise/ternary.h>
#include <binade/kernels/pointwise/ternary_isa_internal.h>

namespace binade::kernels::cpu {
namespace {

int64_t width(const View& x) { return static_cast<int64_t>(size_of(x.dtype)); }

// True if an operand is read element by element in y's order, or is a single element.
bool flat_beside(const View& y, const View& x) { return x.dim() == 0 || all_flat(y, x); }
int64_t flat_step(const View& x) { return x.dim() == 0 ? 0 : width(x); }

}  // namespace

void where_forward(const WhereForward& arguments) {
  check_arguments(arguments);
  const View &y = arguments.y, &condition = arguments.condition;
  uint64_t bits = bits_of(y.dtype, arguments.value);
  const View number = view_of(&bits, y.dtype, {});
  const View& a = is_absent(arguments.a) ? number : arguments.a;
  const View& b = is_absent(arguments.b) ? number : arguments.b;
  const auto body = [&](const StridedTile& tile) { where_tile_best(width(y), tile); };
  if (all_flat(y, condition) && flat_beside(y, a) && flat_beside(y, b)) {
    return run_flat({{y.data, condition.data, a.data, b.data},
                     {width(y), 1, flat_step(a), flat_step(b)},
                     {},
                     1,
                     0},
                    y.numel, body);
  }
  StridedLoop("where", {&y, &condition, &a, &b}).run(body);
}

void lerp_forward(const LerpForward& a) {
  check_arguments(a);
  if (is_absent(a.weight)) {
    StridedLoop("lerp", {&a.y, &a.a, &a.b}).run([&](const StridedTile& tile) {
      lerp_number_tile_best(a.y.dtype, a.number, tile);
    });
    return;
  }
  StridedLoop("lerp", {&a.y, &a.a, &a.b, &a.weight}).run([&](const StridedTile& tile) {
    lerp_tile_best(a.y.dtype, tile);
  });
}

}  // namespace binade::kernels::cpu
