// Products of fragments (kernels/host/wmma.h).
#pragma once

namespace binade::kernels::host {

enum class WmmaTypes { f16_f32, f16_f16, bf16_f32, tf32_f32, s8_s32 };
struct WmmaCase {
  WmmaTypes types;
  int m, n, k;
  bool a_rows, b_rows, d_rows;  // layouts: row-major
};
// d = a b + c, with values that every type holds. The matrices are m x k, k x n and m x n,
// row-major and without padding; the kernel gets them in the layouts of the case, with leading
// dimensions that are larger. False if the case does not exist.
bool run_wmma(const WmmaCase& c, const float* a, const float* b, const float* sum, float* d);
float run_fill_and_scale(float value, float factor);  // one element of 16 x 16
void run_half_of_a_warp();
// One element of a product of s8: c + 16 a b.
int run_large_sum(int c, signed char a, signed char b, bool saturates);

}  // namespace binade::kernels::host
