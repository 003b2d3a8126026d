// A shared object of the right version without any function.
#include <binade/kernels/base/user_kernel.h>

BINADE_USER_KERNELS(BINADE_ON_CPU)
