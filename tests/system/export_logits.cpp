// export_logits MODEL FILE.safetensors DATA OUT.safetensors: loads a model, runs it on the test
// images of DATA, normalised as in training with the default seed, and writes images, labels and
// logits, so that other programs can compute the same.
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>
#include <binade/train/classifier_data.h>
#include <binade/train/model_file.h>

#include <cstdio>
#include <cstring>

using namespace binade;

namespace {

// Rows of the batches, one below the other.
class Rows {
 public:
  void add(const Tensor& batch) {
    const Tensor rows = batch.contiguous();
    const auto* bytes = static_cast<const std::byte*>(rows.view().data);
    bytes_.insert(bytes_.end(), bytes,
                  bytes + static_cast<size_t>(rows.numel()) * size_of(rows.dtype()));
    sizes_ = rows.sizes();
    dtype_ = rows.dtype();
    count_ += rows.size(0);
  }
  Tensor tensor() const {
    Dims sizes = sizes_;
    sizes[0] = count_;
    Tensor out = empty(sizes, dtype_);
    std::memcpy(out.view().data, bytes_.data(), bytes_.size());
    return out;
  }

 private:
  std::vector<std::byte> bytes_;
  Dims sizes_;
  DType dtype_ = DType::f32;
  int64_t count_ = 0;
};

void run(const std::string& name, const std::string& file, const std::string& path,
         const std::string& out) {
  const train::ClassifierData data = train::open_classifier_data({.path = path});
  auto model = nn::make_model(
      name, {data.channels, data.height, data.width, int64_t(data.class_names.size())});
  train::load_model(file, *model);
  model->eval();
  NoGradGuard no_grad;
  Rows images, labels, logits;
  data.test->epoch(0);
  for (data::Batch batch; data.test->next(batch);) {
    images.add(batch.images);
    labels.add(batch.labels);
    logits.add((*model)(batch.images));
  }
  train::save_tensors(
      out, {{"images", images.tensor()}, {"labels", labels.tensor()}, {"logits", logits.tensor()}});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check(argc == 5, "export_logits: got ", argc - 1,
          " arguments, expected MODEL FILE.safetensors DATA OUT.safetensors");
    run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
}
