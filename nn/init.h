// Initial values of weights (Glorot and Bengio 2010; He et al. 2015). Shapes are [out, in, ...]:
// the receptive field is the product of the other dimensions. Draws come from generator().
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string>

namespace binade::nn {

// The function that follows a layer. The gain of an initialisation depends on it.
enum class Nonlinearity : uint8_t { linear, conv2d, sigmoid, tanh, relu, leaky_relu, selu };

}  // namespace binade::nn

namespace binade::nn::init {

using nn::Nonlinearity;
enum class FanMode : uint8_t { fan_in, fan_out };
Nonlinearity parse_nonlinearity(std::string_view name);

// The standard deviation and bound of the distribution that a weight is drawn from. bound is for
// the uniform distributions.
struct Statistics {
  int64_t fan_in, fan_out;
  double gain, mean, std, bound;
};

struct KaimingOptions {
  double a = 0;  // negative slope of leaky_relu
  FanMode mode = FanMode::fan_in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};

double gain(Nonlinearity nonlinearity, double a = 0.01);
Statistics xavier_statistics(const Dims& shape,
                             double gain = 1);  // std = gain sqrt(2 / (in + out))
Statistics kaiming_statistics(const Dims& shape,
                              const KaimingOptions& options = {});  // gain / sqrt(fan)

// These fill w in place; w must have at least two dimensions.
void xavier_uniform(const Tensor& w, double gain = 1);
void xavier_normal(const Tensor& w, double gain = 1);
void kaiming_uniform(const Tensor& w, const KaimingOptions& options = {});
void kaiming_normal(const Tensor& w, const KaimingOptions& options = {});
// Sets w, seen as a matrix [first dimension, product of the others], to gain times a random matrix
// with orthonormal rows or columns, whichever are fewer (Saxe et al., 2014). The matrix is uniform
// over all such matrices. Needs Eigen (core/linalg/linalg.h). f16 and bf16 are computed in f32.
void orthogonal(const Tensor& w, double gain = 1);
void uniform(const Tensor& w, double low, double high);
void normal(const Tensor& w, double mean, double std);
void zeros(const Tensor& w);
void ones(const Tensor& w);
void constant(const Tensor& w, double value);

// The defaults of linear and convolution layers, as in PyTorch: uniform in +-1 / sqrt(fan_in) for
// weights (kaiming_uniform with a = sqrt(5)) and for biases.
void default_weight(const Tensor& w);
void default_bias(const Tensor& b, const Dims& weight_shape);

}  // namespace binade::nn::init
