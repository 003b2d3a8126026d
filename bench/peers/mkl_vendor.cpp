// Preloaded into PyTorch on a processor that is not Intel's, it makes MKL use its fastest kernels:
// MKL calls this function of its own to ask whether the processor is Intel's. bench/peers/setup
// compiles it into a library.
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
