// Tensors by name, to and from safetensors files. Files hold logical row-major order, so PyTorch
// can read them for every memory order here.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/core/io/named_tensors.h>
#include <binade/nn/module.h>

#include <map>
#include <string>

namespace binade::train {

// Writes durably (core/io/file_system.h): after a crash the path holds the old or the new file. The
// file has checksums, and load_tensors() and load_model() verify them: a flipped bit anywhere is an
// error that names the tensor or the header. Files of other programs have none and are read too.
void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  FileSystem& files = file_system());
NamedTensors load_tensors(const std::string& path, FileSystem& files = file_system());

// Text that a file carries beside its tensors: class names, sizes, the mean of the inputs.
using Metadata = std::map<std::string, std::string>;

// Parameters and buffers of a model. The keys "format" and "binade.*" of the metadata are reserved.
void save_model(const std::string& path, const nn::Module& model, const Metadata& metadata = {});
// Loads all or nothing: a file that does not fit changes nothing. The options load a part of it or
// other names (nn/load_options.h).
nn::LoadReport load_model(const std::string& path, nn::Module& model,
                          const nn::LoadOptions& options = {});
// The metadata that save_model() or save_tensors() was given, without the reserved keys.
Metadata load_metadata(const std::string& path, FileSystem& files = file_system());

// Writes the tensors into an open file, for checkpoints.
void write_tensors(OutputFile& file, const NamedTensors& tensors);
uint64_t tensor_bytes(const NamedTensors& tensors);

// A 64-bit hash of names, dtypes, shapes and every byte, as 16 hex digits: equal states have equal
// hashes.
std::string state_hash(const NamedTensors& tensors);

}  // namespace binade::train
