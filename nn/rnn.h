// Recurrent networks: RNN, GRU, LSTM of several layers and both directions.
#pragma once
#include <binade/core/ops/rnn.h>
#include <binade/nn/init.h>
#include <binade/nn/module.h>

#include <vector>

namespace binade::nn {

struct RNNOptions {
  int64_t input;
  int64_t hidden;
  int64_t layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // between layers, in training
  bool bidirectional = false;
  int64_t projection = 0;  // LSTM: smaller size of hidden states (PyTorch's proj_size)
};

// Undefined start states are zeros.
struct RecurrentState {
  // [layers * directions, batch, hidden], h has `projection` columns if there is a projection; c is
  // for LSTM only
  Tensor h = {}, c = {};
};
struct RecurrentResult {
  Tensor output;  // [steps, batch, directions * columns of h], or batch first
  RecurrentState state;
};

// Parameters: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with a projection also
// weight_hr_l0; then _l0_reverse, then _l1 ...
class Recurrent : public Module {
 public:
  using Options = RNNOptions;
  Tensor forward(const Tensor& x) override { return run_layers(x, {}, {}).output; }
  // x [steps, batch, input], or [batch, steps, input] with batch_first. `lengths`, i64 [batch] on
  // the CPU, has the lengths of the sequences of a padded batch (RecurrentOptions::lengths).
  RecurrentResult run(const Tensor& x, const RecurrentState& start = {},
                      const Tensor& lengths = {});

  std::vector<RecurrentWeights> weights;  // [layers * directions]

 protected:
  enum class Cell : uint8_t { tanh, relu, gru, lstm };
  Recurrent(const char* name, Cell cell, const RNNOptions& options);

 private:
  RecurrentResult run_layers(const Tensor& x, const RecurrentState& start, const Tensor& lengths);
  RecurrentOutput run_layer(const Tensor& x, const RecurrentState& start, const Tensor& lengths,
                            int64_t index) const;

  const char* name_;
  Cell cell_;
  RNNOptions options_;
};

// h = tanh(...) or relu(...) of inputs and states.
class RNN : public Recurrent {
 public:
  // nonlinearity: tanh or relu.
  explicit RNN(const RNNOptions& options, Nonlinearity nonlinearity = Nonlinearity::tanh);
  RNN(Module& parent, std::string_view name, const RNNOptions& options,
      Nonlinearity nonlinearity = Nonlinearity::tanh)
      : RNN(options, nonlinearity) {
    join(parent, name);
  }
};
class GRU : public Recurrent {
 public:
  explicit GRU(const RNNOptions& options) : Recurrent("GRU", Cell::gru, options) {}
  GRU(Module& parent, std::string_view name, const RNNOptions& options) : GRU(options) {
    join(parent, name);
  }
};
class LSTM : public Recurrent {
 public:
  explicit LSTM(const RNNOptions& options) : Recurrent("LSTM", Cell::lstm, options) {}
  LSTM(Module& parent, std::string_view name, const RNNOptions& options) : LSTM(options) {
    join(parent, name);
  }
};

struct RNNCellOptions {
  int64_t input;
  int64_t hidden;
  bool bias = true;
};

// One step of a recurrent layer: x [batch, input], states [batch, hidden]; an undefined state is
// zeros. Parameters: weight_ih, weight_hh, bias_ih, bias_hh.
class RecurrentCell : public Module {
 public:
  using Options = RNNCellOptions;
  RecurrentWeights weights;

 protected:
  RecurrentCell(const char* name, int64_t gates, const RNNCellOptions& options);
  // x and a state as the ops for sequences take them, checked.
  Tensor one_step(const Tensor& x) const;
  Tensor start(const Tensor& state, const Tensor& x) const;

 private:
  const char* name_;
  RNNCellOptions options_;
};

class RNNCell : public RecurrentCell {
 public:
  explicit RNNCell(const RNNCellOptions& options, Nonlinearity nonlinearity = Nonlinearity::tanh);
  RNNCell(Module& parent, std::string_view name, const RNNCellOptions& options,
          Nonlinearity nonlinearity = Nonlinearity::tanh)
      : RNNCell(options, nonlinearity) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return run(x, {}); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& h);  // the new h

 private:
  Tensor run(const Tensor& x, const Tensor& h) const;
  Nonlinearity nonlinearity_;
};

class GRUCell : public RecurrentCell {
 public:
  explicit GRUCell(const RNNCellOptions& options) : RecurrentCell("GRUCell", 3, options) {}
  GRUCell(Module& parent, std::string_view name, const RNNCellOptions& options) : GRUCell(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override { return run(x, {}); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& h);  // the new h

 private:
  Tensor run(const Tensor& x, const Tensor& h) const;
};

class LSTMCell : public RecurrentCell {
 public:
  explicit LSTMCell(const RNNCellOptions& options) : RecurrentCell("LSTMCell", 4, options) {}
  LSTMCell(Module& parent, std::string_view name, const RNNCellOptions& options)
      : LSTMCell(options) {
    join(parent, name);
  }
  // The new h and c.
  RecurrentState operator()(const Tensor& x, const RecurrentState& state = {});
};

}  // namespace binade::nn
