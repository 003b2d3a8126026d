#include <binade/core/io/hash64.h>
#include <binade/core/io/safetensors.h>
#include <binade/core/ops.h>
#include <binade/train/model_file.h>

namespace binade::train {
namespace {

std::span<const std::byte> bytes_of(const Tensor& t) {  // REQUIRES: t is row-major, on the CPU
  return {t.view().data, static_cast<size_t>(t.numel()) * size_of(t.dtype())};
}

std::vector<TensorSource> sources_of(const NamedTensors& tensors) {
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "save: got the undefined tensor '", name,
          "', expected one with a value; leave it out or assign it first");
    sources.push_back(
        {name, tensor.dtype(), tensor.sizes(), {}, [t = tensor.detach()](const ByteSink& sink) {
           NoGradGuard guard;
           const Tensor packed = contiguous(t.to(Device{}));
           sink(bytes_of(packed));
         }});
  }
  return sources;
}

bool is_reserved(const std::string& key) { return key == "format" || key.starts_with("binade."); }

}  // namespace

void write_tensors(OutputFile& file, const NamedTensors& tensors) {
  const std::vector<TensorSource> sources = sources_of(tensors);
  SafetensorsWriter(sources, {{"format", "pt"}}, SafetensorsSums::crc32c).write(file);
}

uint64_t tensor_bytes(const NamedTensors& tensors) {
  std::vector<TensorSource> sources = sources_of(tensors);
  for (TensorSource& source : sources) {
    source.produce = [](const ByteSink&) {};  // the size does not depend on the bytes
  }
  return SafetensorsWriter(sources, {{"format", "pt"}}, SafetensorsSums::crc32c).file_bytes();
}

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata, FileSystem& files) {
  std::map<std::string, std::string> all = metadata;
  all.emplace("format", "pt");
  write_safetensors(path, sources_of(tensors), all, files, SafetensorsSums::crc32c);
}

NamedTensors load_tensors(const std::string& path, FileSystem& files) {
  const SafetensorsFile file = SafetensorsFile::open(path, files);
  NamedTensors tensors;
  for (const TensorEntry& entry : file.entries()) {
    Tensor t = empty(entry.sizes, file.dtype_of(entry));
    file.read(entry, {t.view().data, static_cast<size_t>(entry.bytes())});
    tensors.emplace_back(entry.name, std::move(t));
  }
  return tensors;
}

void save_model(const std::string& path, const nn::Module& model, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    check(!is_reserved(key), "save_model: got the metadata key '", key,
          "', expected one other than 'format' and 'binade.*'");
  }
  save_tensors(path, model.state(), metadata);
}

nn::LoadReport load_model(const std::string& path, nn::Module& model,
                          const nn::LoadOptions& options) {
  try {
    return model.load_state(load_tensors(path), options);
  } catch (Error& error) {
    error.add_context("(while loading " + path + ")");
    throw;
  }
}

Metadata load_metadata(const std::string& path, FileSystem& files) {
  Metadata metadata = SafetensorsFile::open(path, files).metadata();
  std::erase_if(metadata, [](const auto& entry) { return is_reserved(entry.first); });
  return metadata;
}

std::string state_hash(const NamedTensors& tensors) {
  NoGradGuard guard;
  Hash64 hash;
  for (const auto& [name, tensor] : tensors) {
    hash.add(name);
    hash.add(text(tensor.dtype(), tensor.sizes()));
    const Tensor packed = contiguous(tensor.detach().to(Device{}));
    hash.add(bytes_of(packed));
  }
  return hash.hex();
}

}  // namespace binade::train
