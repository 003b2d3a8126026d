#include <binade/dist/collective/signature.h>

namespace binade::dist {

bool is_valid(const Signature& s) {
  return s.collective <= Collective::connect && static_cast<int>(s.dtype) < kDTypeCount &&
         s.op <= ReduceOp::min;
}

std::string to_string(const Signature& s) {
  const char* name = to_string(s.collective);
  switch (s.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      return text(name, " ", s.dtype, " ", to_string(s.op), " ", s.count,
                  s.variant & 1 ? " f32 carry" : "", s.variant & 2 ? " library" : "");
    case Collective::broadcast:
    case Collective::scatter: return text(name, " ", s.dtype, " ", s.count, " from rank ", s.root);
    case Collective::gather: return text(name, " ", s.dtype, " ", s.count, " to rank ", s.root);
    case Collective::all_gather: return text(name, " ", s.dtype, " ", s.count);
    default: return name;
  }
}

}  // namespace binade::dist
