// Common mistakes of beginners with shapes, dtypes, devices and options (mistakes.h).
#include <tests/train/mistakes.h>

namespace mistakes::tensor_mistakes_test {
namespace {

Mistakes shapes() {
  return {
      {"wrong width",
       [] {
         nn::Linear({.in = 3, .out = 2})(randn({2, 4}));
       },
       "linear:", "got x of shape [2, 4]", "expected x [..., 3]", "change the layer's option in"},
      {"matrix not turned",
       [] {
         matmul(randn({2, 3}), randn({2, 3}));
       },
       "matmul:", "got shapes [2, 3] and [2, 3]", "expected the last size of a",
       "transpose(-2, -1)"},
      {"sizes that do not broadcast",
       [] {
         (void)(randn({2, 3}) + randn({2, 4}));
       },
       "add:", "got shapes [2, 3] and [2, 4]", "expected shapes that broadcast", "unsqueeze()"},
      {"NHWC images",
       [] {
         Net()(randn({2, 8, 8, 3}));
       },
       "conv2d:", "got x of shape [2, 8, 8, 3]", "expected x [N, 3, ...]", "movedim(x, -1, 1)"},
      {"wrong number of channels",
       [] {
         Net()(randn({2, 1, 8, 8}));
       },
       "conv2d:", "[2, 1, 8, 8]", "expected x [N, 3, ...]", "(in module conv)"},
      {"no batch",
       [] {
         Net()(randn({3, 8, 8}));
       },
       "conv2d:", "got x of shape [3, 8, 8]", "expected 4 dimensions", "[N, C, ...]"},
      {"image smaller than the kernel",
       [] {
         Net()(randn({1, 3, 2, 2}));
       },
       "conv2d:", "got x of shape [1, 3, 2, 2]", "expected a kernel that fits", "padded input"},
      {"index beyond the end",
       [] {
         randn({3, 2})[3];
       },
       "x[3]:", "got index 3 for x of shape [3, 2]", "expected -3 to 2", "-3 to 2"},
      {"write through an index tensor",
       [] {
         const Tensor x = randn({3, 2});
         index(x, {x > 0}) = 1;
       },
       "x[i] = y:", "got a temporary on the left", "expected a view such as x[0]",
       "use index_put_()"},
      {"change through a mask",
       [] {
         const Tensor x = randn({3, 2});
         index(x, {x > 0}) += 1;
       },
       "+=:", "got a temporary on the left", "expected a view such as x[0]", "use index_put_()"},
      {"index of a scalar", [] { randn({3})[0][0]; }, "x[0]:", "got a scalar x",
       "expected a dimension", "item() reads the value"},
      {"dim out of range",
       [] {
         softmax(randn({2, 4}), 2);
       },
       "softmax:", "got dimension 2", "expected -2 to 1", "for a tensor of 2 dimensions"},
      {"reshape to another number",
       [] {
         randn({2, 4}).reshape({3, 3});
       },
       "reshape:", "got shape [2, 4] and sizes [3, 3]", "expected sizes with 8 elements",
       "8 elements"},
      {"cat of different shapes",
       [] {
         cat({randn({2, 3}), randn({2, 4})});
       },
       "cat:", "got shapes [2, 3] and [2, 4]", "expected equal sizes but in dimension 0",
       "another dim"},
      {"cat of different ranks",
       [] {
         cat({randn({2, 3}), randn({2})});
       },
       "cat:", "got f32 [2]", "expected equal dtypes and ranks", "unsqueeze()"},
      {"negative size",
       [] {
         binade::zeros({2, -3});
       },
       "zeros:", "got sizes [2, -3]", "expected no negative size", "no negative size"},
      {"too few values",
       [] {
         Tensor::from({1.f, 2.f}, {3});
       },
       "from:", "got 2 values for shape [3]", "expected 3", "3"},
      {"rows of different lengths",
       [] {
         Tensor::from({{1.f, 2.f}, {3.f}});
       },
       "from:", "got rows of 2 and 1 values", "expected equal lengths", "equal lengths"},
      {"item of many",
       [] {
         randn({2, 4}).item();
       },
       "item:", "got [2, 4]", "expected a tensor with one element", "to_vector()"},
      {"batch and length exchanged",
       [] {
         nn::MultiheadAttention m({.embed = 8, .heads = 2});
         m(randn({3, 2, 8}), randn({3, 5, 8}), randn({3, 5, 8}));
       },
       "MultiheadAttention:", "got query [3, 2, 8], key [3, 5, 8]",
       "expected [length, batch, size]", "set batch_first"},
      {"sequence without a batch",
       [] {
         nn::LSTM({.input = 3, .hidden = 4})(randn({5, 3}));
       },
       "LSTM:", "got shape [5, 3]", "expected [steps, batch, 3]", "[steps, batch, 3]"},
      {"batch norm of one value",
       [] {
         nn::BatchNorm1d({.channels = 4})(randn({1, 4}));
       },
       "batch_norm:", "got x of shape [1, 4]", "expected more than one value per channel",
       "drop_last"},
      {"target [N] beside output [N, 1]",
       [] {
         mse_loss(randn({4, 1}), randn({4}));
       },
       "mse_loss:", "got an input of shape [4, 1]", "which broadcast to [4, 4]", "reshape one"},
  };
}

Mistakes dtypes() {
  return {
      {"f64 beside f32", [] { (void)(randn({2}, DType::f64) + randn({2})); },
       "add:", "got dtypes f64 and f32", "expected equal ones", "convert one with to()"},
      {"integers into a layer",
       [] {
         nn::Linear({.in = 4, .out = 2})(randint(3, {2, 4}));
       },
       "linear:", "got dtypes i64 and f32", "expected one floating dtype", "convert one with to()"},
      {"labels as floats",
       [] {
         cross_entropy(randn({2, 4}), Tensor::from({1.f, 2.f}));
       },
       "cross_entropy:", "got a target of shape [2] and dtype f32", "expected i64 [2]",
       "convert labels with to(DType::i64)"},
      {"labels as i32",
       [] {
         cross_entropy(randn({2, 4}), Tensor::from({1, 2}));
       },
       "cross_entropy:", "dtype i32", "expected i64 [2]", "to(DType::i64)"},
      {"labels as a column",
       [] {
         cross_entropy(randn({2, 4}), Tensor::from<int64_t>({1, 2}, {2, 1}));
       },
       "cross_entropy:", "got a target of shape [2, 1]", "expected i64 [2]", "squeeze()"},
      {"label out of range",
       [] {
         cross_entropy(randn({2, 4}), labels({1, 4}));
       },
       "cross_entropy:", "got target 4 in row 1", "expected 0 to 3", "or ignore_index"},
      {"logits of one sample", [] { cross_entropy(randn({4}), labels({1})); },
       "cross_entropy:", "got logits of shape [4]", "expected [N, C, ...]", "unsqueeze(x, 0)"},
      {"accuracy of float labels",
       [] {
         nn::accuracy(randn({2, 3}), Tensor::from({1.f, 2.f}));
       },
       "accuracy:", "a target f32 [2]", "expected [N, C] and i64 [N]", "to(DType::i64)"},
      {"probability above 1", [] { bce(Tensor::from({1.5f}), Tensor::from({1.f})); },
       "bce:", "got input 1.5", "expected 0 to 1", "bce_with_logits"},
      {"index of floats",
       [] {
         index_select(randn({2, 4}), 0, Tensor::from({1.f}));
       },
       "index_select:", "got an index of dtype f32", "expected i64", "convert it with to()"},
      {"id beyond the table", [] { nn::Embedding({.count = 5, .width = 2})(labels({5})); },
       "embedding:", "got index 5", "expected 0 to 4", "0 to 4"},
      {"condition of floats", [] { where(randn({2}), randn({2}), randn({2})); },
       "where:", "got a condition of dtype f32", "expected bool", "compare with ne(x, 0)"},
      {"mean of integers", [] { mean(randint(3, {4})); }, "mean:", "got dtype i64",
       "expected a floating dtype", "convert with to()"},
      {"sum of two masks", [] { (void)((randn({2}) > 0) + (randn({2}) > 0)); },
       "add:", "got dtype bool", "expected a floating dtype", "convert with to()"},
      {"negative power of integers", [] { pow(randint(3, {3}), -1); }, "pow:", "got exponent -1",
       "expected 0 or more", "to(DType::f32)"},
      {"fraction into integers",
       [] {
         Tensor x = randint(3, {3});
         x += 0.5;
       },
       "+=:", "got a result f32 [3] for a tensor i64 [3]", "expected its sizes and dtype",
       "write x = x + y"},
      {"gradient of integers", [] { randint(3, {4}).require_grad(); }, "require_grad:", "got i64",
       "expected a floating dtype", "to(DType::f32)"},
      {"data() of another type", [] { randn({2}).data<double>(); },
       "data:", "got a tensor of dtype f32", "expected f64", "convert it with to()"},
      {"undefined tensor", [] { relu(Tensor()); }, "relu:", "got an undefined tensor",
       "expected one with a value", "assign it first"},
      {"unknown device", [] { Device::parse("gpu"); }, "device:", "got 'gpu'", "expected auto, cpu",
       "cuda"},
      {"unknown precision", [] { binade::parse_precision("fp17"); }, "precision:", "got 'fp17'",
       "expected fp32, fp16", "mixed-bf16"},
  };
}

// The compiler can warn about missing options, but here they are left out on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
Mistakes options() {
  return {
      {"a missing size", [] { nn::Linear({.in = 2}); }, "Linear:", "got out = 0",
       "expected a positive number", "set the option out"},
      {"a missing width", [] { nn::Embedding({.count = 2}); }, "Embedding:", "got width = 0",
       "expected a positive number", "set the option width"},
      {"missing heads", [] { nn::MultiheadAttention({.embed = 8}); }, "MultiheadAttention:",
       "got heads = 0", "expected a positive number", "set the option heads"},
      {"missing layers", [] { nn::TransformerEncoder({.layer = {.embed = 8, .heads = 2}}); },
       "TransformerEncoder:", "got layers = 0", "expected a positive number",
       "set the option layers"},
      {"heads that do not divide", [] { nn::MultiheadAttention({.embed = 8, .heads = 3}); },
       "MultiheadAttention:", "got embed = 8, heads = 3", "expected a multiple of heads",
       "multiple"},
      {"groups that do not divide",
       [] { nn::Conv2d({.in = 3, .out = 4, .kernel = 3, .groups = 2}); }, "Conv2d:",
       "got in = 3, out = 4, groups = 2", "expected groups that divide in and out", "groups"},
      {"dropout above 1", [] { nn::Dropout({.p = 1.5}); }, "Dropout:", "got p = 1.5",
       "expected 0 to 1", "0 to 1"},
      {"percent as dropout", [] { dropout(randn({2}), 50); }, "dropout:", "got p = 50",
       "expected 0 to 1", "0 to 1"},
      {"unknown name", [] { gelu(randn({2}), "tanhh"); }, "gelu:", "'tanhh'", "expected 'none'",
       "'tanh'"},
      {"betas beyond 1",
       [] {
         Net net;
         optim::Adam adam(net.parameters(), {.betas = {0.9, 1.5}});
       },
       "Adam:", "got betas = {0.9, 1.5}", "expected numbers in [0, 1)", "[0, 1)"},
      {"negative rate",
       [] {
         Net net;
         optim::SGD sgd(net.parameters(), {.lr = -1});
       },
       "optimizer:", "got lr = -1", "expected a number >= 0", ">= 0"},
      {"a group with an option of another optimizer",
       [] {
         Net net;
         optim::SGD sgd({{.parameters = net.parameters(), .betas = {{0.9, 0.99}}}}, {.lr = 0.1});
       },
       "SGD:", "got a group with betas", "expected one that it has", "leave it out"},
      {"one parameter in two groups",
       [] {
         Net net;
         optim::SGD sgd({{.parameters = net.parameters()}, {.parameters = net.parameters()}},
                        {.lr = 0.1});
       },
       "optimizer:", "parameter conv.weight is in two groups", "expected one",
       "filter the parameters"},
  };
}
#pragma GCC diagnostic pop

// Mistakes with a second device, in builds that have the emulated one.
Mistakes devices() {
  try {
    Device::parse("emulated");
  } catch (const binade::Error&) {
    return {};
  }
  return {
      {"two devices", [] { (void)(randn({2}) + randn({2}).to(Device::parse("emulated"))); },
       "add:", "got inputs on cpu and emulated:0", "expected one device", "move them with to()"},
      {"input left on the CPU",
       [] {
         Net net;
         net.to(Device::parse("emulated"));
         net(images());
       },
       "conv2d:", "got inputs on cpu and emulated:0", "expected one device", "move them with to()"},
  };
}

TEST(TensorMistakes, NameTheOpWhatItGotWhatItExpectedAndWhatToDo) {
  EXPECT_GE(expect_messages({shapes(), dtypes(), options(), devices()}), 55u);
}

}  // namespace
}  // namespace mistakes::tensor_mistakes_test
