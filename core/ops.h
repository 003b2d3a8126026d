// The operations on tensors. Each is declared in core/ops/<family>.h, defined in
// core/ops/<family>.cpp, forward and backward together, and has a row in tests/op_table. Shapes
// broadcast as in NumPy. Results have the device of the inputs; floating inputs of one op must have
// one dtype unless a precision policy is in force (core/precision/precision.h). Where a dim is an
// argument, negative values count from the end.
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops/advanced_index.h>
#include <binade/core/ops/attention.h>
#include <binade/core/ops/batch_norm.h>
#include <binade/core/ops/binary.h>
#include <binade/core/ops/cast.h>
#include <binade/core/ops/conv.h>
#include <binade/core/ops/covariance.h>
#include <binade/core/ops/diagonal.h>
#include <binade/core/ops/einsum.h>
#include <binade/core/ops/format.h>
#include <binade/core/ops/image.h>
#include <binade/core/ops/index.h>
#include <binade/core/ops/join.h>
#include <binade/core/ops/layer_norm.h>
#include <binade/core/ops/linear.h>
#include <binade/core/ops/loss.h>
#include <binade/core/ops/margin_loss.h>
#include <binade/core/ops/matmul.h>
#include <binade/core/ops/pointwise_loss.h>
#include <binade/core/ops/random.h>
#include <binade/core/ops/rearrange.h>
#include <binade/core/ops/reduce.h>
#include <binade/core/ops/rnn.h>
#include <binade/core/ops/select.h>
#include <binade/core/ops/shape.h>
#include <binade/core/ops/softmax.h>
#include <binade/core/ops/sort.h>
#include <binade/core/ops/statistics.h>
#include <binade/core/ops/ternary.h>
#include <binade/core/ops/unary.h>
