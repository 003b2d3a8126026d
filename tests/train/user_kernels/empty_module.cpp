// A shared object with the right version but without functions.
#include <binade/kernels/base/user_kernel.h>

BINADE_USER_KERNELS(BINADE_ON_CPU)
