// MKL calls this function to ask whether the processor is Intel's. Preloaded into PyTorch on
// another processor, it makes MKL use its fastest kernels. bench/peers/setup compiles it into a
// library.
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
