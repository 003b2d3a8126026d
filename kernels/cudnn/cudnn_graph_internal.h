// Graphs of cuDNN operations: a problem is described once, a plan that executes it is found and
// kept (at most plan_limit() of a device, kernels/base/provider.h), and run() executes it on the
// current stream with workspace from Binade's allocator.
//
// run() takes the first engine offered by the library that repeats bit for bit, does not reduce the
// precision of inputs or sums (f32 never runs as TF32), uses neither FFT nor Winograd transforms,
// keeps NaN where the graph has a relu, and needs at most kMostWorkspace bytes. Nothing is timed
// here. A plan depends on everything in the problem except the data.
#pragma once
#include <binade/kernels/base/view.h>
#include <binade/kernels/cudnn/cudnn_api_internal.h>

#include <vector>

namespace binade::kernels::cudnn {

inline constexpr int64_t kMostWorkspace = int64_t{512} << 20;
inline constexpr uintptr_t kTensorBytes = 16;  // alignment of tensors in memory

DataType data_type(DType dtype);

// An object of the library, destroyed with this one. Functions throw Refusal if the library
// returns an error.
class Object {
 public:
  Object() = default;
  explicit Object(DescriptorType type);
  ~Object();
  Object(Object&& other) noexcept;
  Object& operator=(Object&& other) noexcept;
  Descriptor get() const { return descriptor_; }
  void set(Attribute attribute, AttributeType type, int64_t count, const void* values);
  template <class T>
  void set(Attribute attribute, AttributeType type, const T& value) {
    set(attribute, type, 1, &value);
  }
  void set(Attribute attribute, const Dims& values);
  void set(Attribute attribute, Descriptor value);
  // Copies at most `room` values; returns the number of values available.
  int64_t get(Attribute attribute, AttributeType type, int64_t room, void* values) const;
  void finalize();

 private:
  Descriptor descriptor_ = nullptr;
};

// Thrown if the library cannot do what was asked; the text says why.
struct Refusal {
  std::string reason;
};

// A tensor in memory that a graph reads or writes.
struct Operand {
  DataType type;
  Dims sizes, strides;
  void* data;             // device memory; for numbers by value, host memory
  bool by_value = false;  // read when run() is called
};

// Describes a view as an operand, with other sizes and strides for the same elements.
Operand operand(const View& view, const Dims& sizes, const Dims& strides);
inline Operand operand(const View& view) { return operand(view, view.sizes, view.strides); }
// A number passed by value, with sizes [1, 1, ...]; it must live until run() has returned.
Operand number(const float& value, int dims);

// The operations of a graph. Operands are named by their index in the problem; results between
// operations are virtual tensors, which have no memory.
class Graph {
 public:
  Graph(const std::vector<Operand>& operands, DataType compute);

  Descriptor memory(size_t operand) const { return tensors_[operand].get(); }
  // A virtual tensor, row-major in the compute dtype unless strides and dtype are given.
  Descriptor between(const Dims& sizes);
  Descriptor between(const Dims& sizes, const Dims& strides, DataType type);

  struct Convolution {
    const int64_t* stride;
    const int64_t* padding;
    const int64_t* dilation;
  };
  // Forward: y from x and w. Backward: dx from dy and w; dw from x and dy.
  void convolution_forward(const Convolution& c, Descriptor x, Descriptor w, Descriptor y);
  void convolution_backward_data(const Convolution& c, Descriptor dy, Descriptor w, Descriptor dx);
  void convolution_backward_filter(const Convolution& c, Descriptor x, Descriptor dy,
                                   Descriptor dw);
  // y = mode(x, b), or mode(x) for modes of one operand; t is the condition of kBinarySelect.
  void pointwise(Pointwise mode, Descriptor x, Descriptor b, Descriptor y, Descriptor t = nullptr);
  void index_along(int64_t axis, Descriptor x, Descriptor y);
  void matmul(Descriptor a, Descriptor b, Descriptor c);
  void reduce(ReductionOperator what, Descriptor x, Descriptor y);
  void reshape(Descriptor x, Descriptor y);
  // Adds an operation whose only attributes are its mode and tensors.
  Object& add(DescriptorType type);

  std::vector<Descriptor> operations();  // finalized

 private:
  Object describe(const Convolution& c) const;
  Object& add(DescriptorType type, Object&& description, Attribute where);
  Object& convolution(const Convolution& c, DescriptorType type, Attribute where);

  DataType compute_;
  int64_t next_id_;
  std::vector<Object> tensors_, virtual_, descriptions_, operations_;
};

struct Problem {
  const char* name;  // name of the kernel call, for errors
  Device device;
  DType dtype;  // dtype of the arguments
  std::vector<Operand> operands;
  std::vector<int64_t> options;  // everything else that build() reads
  void (*build)(Graph& graph, const Problem& problem);
  bool keeps_nan = false;  // the engine must propagate NaN strictly
};

// Starts the problem on the current stream. Returns false and does nothing if the library does not
// start or has no plan for it, or an operand in memory does not begin at a multiple of kTensorBytes
// or has 2^31 elements or more; `why` then says why. REQUIRES: missing() is empty. Throws Error if
// the execution of a plan fails. May be called by several threads, and while a stream is captured.
bool run(const Problem& problem, std::string& why);

int64_t plans_made();   // by this process; a problem that is known makes none
int64_t plans_alive();  // kept for problems, also refused ones, or by captured graphs

}  // namespace binade::kernels::cudnn
