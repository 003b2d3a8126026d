#include <binade/lab/source/translate.h>

namespace binade::lab {

size_t bytes_of(Element element) {
  switch (element) {
    case Element::f64:
    case Element::i64:
    case Element::u64: return 8;
    case Element::f16:
    case Element::bf16: return 2;
    case Element::u8:
    case Element::i8: return 1;
    default: return 4;
  }
}

const char* name_of(Element element) {
  switch (element) {
    case Element::f32: return "float";
    case Element::f64: return "double";
    case Element::f16: return "__half";
    case Element::bf16: return "__nv_bfloat16";
    case Element::i32: return "int";
    case Element::u32: return "unsigned";
    case Element::i64: return "long long";
    case Element::u64: return "size_t";
    case Element::u8: return "unsigned char";
    case Element::i8: break;
  }
  return "signed char";
}

}  // namespace binade::lab
