/* The interface of a user's kernels: a shared object that Binade loads and calls in the place of
 * its own kernels. This header is C (and C++, and CUDA) and needs no other header of Binade: it may
 * be copied. docs/providers.md shows a whole example; samples/user_kernel is one.
 *
 *   #include <binade/kernels/base/user_kernel.h>
 *   BINADE_USER_KERNELS(BINADE_ON_CPU)                    // once: the version, and the devices
 *   int binade_softmax_forward(const struct binade_softmax_forward_call* a,
 *                              const struct binade_launch* launch) {...}
 *
 *   BINADE_KERNEL=softmax:./my.so train ...
 *
 * The object exports the functions that it has, under the names below and with C linkage. For those
 * that it does not have Binade's own kernels run: a forward pass without its backward pass is
 * enough to train.
 *
 * Rules of all functions:
 * - Results in the tensors marked [out]; all other memory is for reading. A pointer is of the
 * memory of launch->device: on BINADE_ON_CUDA of the GPU launch->index, where the function starts
 * its work on launch->stream (a cudaStream_t) and does not wait for it; on BINADE_ON_CPU and
 *   BINADE_ON_EMULATED of the host, and the results are there when the function returns.
 * - Return BINADE_DONE; or BINADE_DECLINED, before anything was written, if the function does not
 *   compute such a call (a dtype, a size): Binade's own kernel then runs, and one line says so. Any
 *   other number is a failure: an error that names the file, the function and the number.
 * - A function may be called by several threads at once. It throws no exception.
 * - Tensors are row-major and dense unless the comment speaks of strides. A tensor with data 0 is
 *   absent. No size is 0. Statistics ("compute dtype") are f64 for f64, else f32.
 */
#pragma once
/* NOLINTBEGIN(readability-identifier-naming): the names are C's. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BINADE_USER_KERNEL_ABI 1 /* of this header; an object of another version is refused */

enum binade_dtype {
  BINADE_F64 = 0,
  BINADE_F32 = 1,
  BINADE_F16 = 2,
  BINADE_BF16 = 3,
  BINADE_I64 = 4
};
enum binade_device { BINADE_ON_CPU = 1, BINADE_ON_CUDA = 2, BINADE_ON_EMULATED = 4 };
enum binade_status { BINADE_DONE = 0, BINADE_DECLINED = 1 };

struct binade_tensor {
  void* data;
  int32_t dtype, rank;
  int64_t size[8], stride[8]; /* strides in elements; unused places are 0 */
};

struct binade_launch {
  int32_t device;  /* one of binade_device */
  int32_t index;   /* of the GPU */
  void* stream;    /* cudaStream_t on a GPU */
  int32_t threads; /* that a kernel on the CPU may use */
};

/* What an object is, read before its functions are called. */
struct binade_user_kernels {
  int32_t abi, devices; /* BINADE_USER_KERNEL_ABI; a sum of binade_device */
};

#ifdef __cplusplus
#define BINADE_USER_KERNELS(on)                     \
  extern "C" __attribute__((visibility("default"))) \
  const struct binade_user_kernels binade_user_kernels = {BINADE_USER_KERNEL_ABI, (on)};
#else
#define BINADE_USER_KERNELS(on)          \
  __attribute__((visibility("default"))) \
  const struct binade_user_kernels binade_user_kernels = {BINADE_USER_KERNEL_ABI, (on)};
#endif

/* softmax: y = exp(x) / sum exp(x) over each row, its logarithm if `log`. */
struct binade_softmax_forward_call {
  struct binade_tensor x;
  struct binade_tensor y; /* [out]; x and y: [rows, cols]; y may be x */
  int32_t log;
};
/* dx = y (dy - sum dy y); with `log` dx = dy - exp(y) sum dy. dx may be dy. */
struct binade_softmax_backward_call {
  struct binade_tensor y, dy;
  struct binade_tensor dx; /* [out]; all [rows, cols] */
  int32_t log;
};

/* reduce: y = the reduction of x over its middle size. The sum of i64 wraps; NaN wins. */
enum binade_reduction {
  BINADE_SUM = 0,
  BINADE_MEAN = 1,
  BINADE_MAX = 2,
  BINADE_MIN = 3,
  BINADE_PROD = 4,
  BINADE_NORM1 = 5,
  BINADE_NORM2 = 6,
  BINADE_NORM_INF = 7,
  BINADE_LOGSUMEXP = 8,
  BINADE_VAR = 9, /* divides by max(0, count - correction) */
  BINADE_STD = 10
};
struct binade_reduce_forward_call {
  struct binade_tensor x; /* [outer, count, inner] */
  struct binade_tensor y; /* [out] [outer, inner], dtype of x or its compute dtype */
  int32_t reduction;
  double correction;
};

/* layer_norm and rms_norm: y = (x - mean) rstd weight + bias over each row. rms_norm has mean 0
 * (its tensor is absent) and no bias. Absent weight and bias are 1 and 0. y may be x. */
struct binade_layer_norm_forward_call {
  struct binade_tensor x, weight, bias; /* [rows, cols]; [cols], compute dtype */
  struct binade_tensor y;               /* [out] [rows, cols] */
  struct binade_tensor mean, rstd;      /* [out] [rows], compute dtype */
  double eps;
};
/* With u = (x - mean) rstd, g = dy weight: dx = rstd (g - mean(g) - u mean(g u)), without mean(g)
 * in rms_norm; dweight = sum dy u and dbias = sum dy over rows. An absent output is not wanted. */
struct binade_layer_norm_backward_call {
  struct binade_tensor x, dy, weight, mean, rstd;
  struct binade_tensor dx;             /* [out] [rows, cols]; may be dy */
  struct binade_tensor dweight, dbias; /* [out] [cols], compute dtype */
};

/* batch_norm in training and group_norm. x, y: [n, channels, pixels], with strides. mean and rstd
 * are of a channel [channels], or of a group [n, groups]; the rest as in layer_norm. */
struct binade_channel_norm_forward_call {
  struct binade_tensor x, weight, bias; /* weight, bias: [channels], compute dtype */
  struct binade_tensor y;               /* [out] */
  struct binade_tensor mean, rstd;      /* [out], compute dtype */
  struct binade_tensor variance;        /* [out] biased; batch_norm, may be absent */
  struct binade_tensor mean_rest;       /* [out] mean minus the stored mean; may be absent */
  double eps;
};
struct binade_channel_norm_backward_call {
  struct binade_tensor x, dy, weight, mean, rstd;
  struct binade_tensor dx;             /* [out]; may be dy */
  struct binade_tensor dweight, dbias; /* [out] [channels], compute dtype */
};

/* attention: out = softmax(q k^T scale + mask) v; lse = the logarithm of each query's softmax
 * denominator (of the scaled scores), +inf and out = 0 for a query that sees no key. All with
 * strides. causal: query i sees keys 0 to i. No dropout and no mask: those calls are Binade's. */
struct binade_attention_forward_call {
  struct binade_tensor q, k, v; /* [batch, heads, queries or keys, size] */
  struct binade_tensor out;     /* [out] [batch, heads, queries, value size] */
  struct binade_tensor lse;     /* [out] [batch, heads, queries], compute dtype */
  double scale;
  int32_t causal;
};
struct binade_attention_backward_call {
  struct binade_tensor q, k, v, out, lse, dout;
  struct binade_tensor dq, dk, dv; /* [out]; absent if not wanted */
  double scale;
  int32_t causal;
};

/* gemm: y = a b. With strides (a transpose has swapped ones; a stride of 0 repeats a batch). Bias,
 * activation and addition to y are done by Binade afterwards. */
struct binade_gemm_call {
  struct binade_tensor a; /* [batch, m, k] */
  struct binade_tensor b; /* [batch, k, n] */
  struct binade_tensor y; /* [out] [batch, m, n] */
};

/* conv2d, with strides (channels-last has stride 1 in the channels). Pairs are vertical,
 * horizontal. Bias and relu are done by Binade afterwards. */
struct binade_conv2d_call {
  struct binade_tensor x; /* [n, channels, height, width]; [out] in backward_data */
  struct binade_tensor w; /* [outputs, channels / groups, r, s]; [out] in backward_weight */
  struct binade_tensor y; /* [n, outputs, p, q]; [out] in forward, else the gradient dy */
  int64_t stride[2], padding[2], dilation[2], groups;
};

/* clang-format off */
int binade_softmax_forward(const struct binade_softmax_forward_call*, const struct binade_launch*);
int binade_softmax_backward(const struct binade_softmax_backward_call*, const struct binade_launch*);
int binade_reduce_forward(const struct binade_reduce_forward_call*, const struct binade_launch*);
int binade_layer_norm_forward(const struct binade_layer_norm_forward_call*, const struct binade_launch*);
int binade_layer_norm_backward(const struct binade_layer_norm_backward_call*, const struct binade_launch*);
int binade_rms_norm_forward(const struct binade_layer_norm_forward_call*, const struct binade_launch*);
int binade_rms_norm_backward(const struct binade_layer_norm_backward_call*, const struct binade_launch*);
int binade_batch_norm_forward(const struct binade_channel_norm_forward_call*, const struct binade_launch*);
int binade_batch_norm_backward(const struct binade_channel_norm_backward_call*, const struct binade_launch*);
int binade_group_norm_forward(const struct binade_channel_norm_forward_call*, const struct binade_launch*);
int binade_group_norm_backward(const struct binade_channel_norm_backward_call*, const struct binade_launch*);
int binade_attention_forward(const struct binade_attention_forward_call*, const struct binade_launch*);
int binade_attention_backward(const struct binade_attention_backward_call*, const struct binade_launch*);
int binade_gemm(const struct binade_gemm_call*, const struct binade_launch*);
int binade_conv2d_forward(const struct binade_conv2d_call*, const struct binade_launch*);
int binade_conv2d_backward_data(const struct binade_conv2d_call*, const struct binade_launch*);
int binade_conv2d_backward_weight(const struct binade_conv2d_call*, const struct binade_launch*);
/* clang-format on */

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */
