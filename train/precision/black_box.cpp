#include <binade/core/io/json_text.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/train/model_file.h>
#include <binade/train/precision/black_box.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

using nlohmann::json;

constexpr const char* kBlackBoxKey = "black_box";  // in the metadata: one JSON object
constexpr const char *kStored = "stored/", *kExact = "exact/", *kBatch = "batch/",
                     *kScales = "scales/";

std::string batch_prefix(size_t number) { return text(kBatch, number, "/"); }

// The tensors of a file: all as stored, masters also under kExact, and the fields of the batches.
NamedTensors tensors_of(const BlackBox& box) {
  NamedTensors all;
  for (const auto& [name, tensor] : box.stored) {
    all.emplace_back(kStored + name, tensor);
  }
  for (size_t i = 0; i < box.exact.size(); ++i) {
    if (box.exact[i].second.dtype() != box.stored[i].second.dtype()) {
      all.emplace_back(kExact + box.exact[i].first, box.exact[i].second);
    }
  }
  for (const auto& [name, tensor] : box.scales) {
    all.emplace_back(kScales + name, tensor);
  }
  for (size_t i = 0; i < box.batches.size(); ++i) {
    for (const std::string& name : box.batches[i].batch.names()) {
      all.emplace_back(batch_prefix(i) + name, box.batches[i].batch[name]);
    }
  }
  return all;
}

std::string header_of(const BlackBox& box) {
  json batches = json::array();
  for (const StepBatch& micro : box.batches) {
    batches.push_back({{"weight", micro.weight},
                       {"seed", micro.random.seed},
                       {"offset", micro.random.offset},
                       {"size", micro.batch.size},
                       {"epoch", micro.batch.epoch},
                       {"first", micro.batch.first},
                       {"repeated", micro.batch.repeated},
                       {"indices", micro.batch.indices}});
  }
  return json{{"step", box.step},
              {"scale", box.scale},
              {"loss_bits", std::bit_cast<uint64_t>(box.loss)},  // also of NaN
              {"precision", to_json(box.precision)},
              {"modes", box.modes},
              {"batches", batches},
              {"stale", box.stale},
              {"gradients", box.gradients},
              {"device", box.device},
              {"cause", box.cause},
              {"first", box.first},
              {"description", box.description}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

StepBatch batch_of(const json& j) {
  StepBatch micro;
  micro.weight = j.at("weight");
  micro.random.seed = j.at("seed");
  micro.random.offset = j.at("offset");
  micro.batch.size = j.at("size");
  micro.batch.epoch = j.at("epoch");
  micro.batch.first = j.at("first");
  micro.batch.repeated = j.at("repeated");
  micro.batch.indices = j.at("indices").get<std::vector<int64_t>>();
  return micro;
}

BlackBox box_of(const std::string& header) {
  const json j = json::parse(header);
  BlackBox box{.step = j.at("step"),
               .scale = j.at("scale"),
               .loss = std::bit_cast<double>(j.at("loss_bits").get<uint64_t>()),
               .precision = precision_of_json(j.at("precision")),
               .modes = j.at("modes").get<std::vector<bool>>(),
               .stale = j.at("stale").get<std::vector<std::string>>(),
               .gradients = j.at("gradients"),
               .device = j.at("device"),
               .cause = j.at("cause"),
               .first = j.at("first"),
               .description = j.at("description").get<std::map<std::string, std::string>>()};
  for (const json& micro : j.at("batches")) {
    box.batches.push_back(batch_of(micro));
  }
  check(std::isfinite(box.scale) && box.scale > 0 && !box.batches.empty(), "got a scale of ",
        box.scale, " and ", box.batches.size(), " batches");
  return box;
}

// Puts a tensor of the file where it belongs.
void place(BlackBox& box, const std::string& name, const Tensor& tensor) {
  const std::string_view all = name;
  if (all.starts_with(kStored)) {
    box.stored.emplace_back(all.substr(std::string_view(kStored).size()), tensor);
    return;
  }
  if (all.starts_with(kExact)) {
    box.exact.emplace_back(all.substr(std::string_view(kExact).size()), tensor);
    return;
  }
  if (all.starts_with(kScales)) {
    box.scales.emplace_back(all.substr(std::string_view(kScales).size()), tensor);
    return;
  }
  for (size_t i = 0; i < box.batches.size(); ++i) {
    const std::string prefix = batch_prefix(i);
    if (all.starts_with(prefix)) {
      box.batches[i].batch.set(all.substr(prefix.size()), tensor);
      return;
    }
  }
  fail("got the tensor ", json_quoted_short(name), ", which belongs to no part");
}

// Adds the weights without masters to the exact weights.
void complete_exact(BlackBox& box) {
  std::map<std::string, Tensor> masters(box.exact.begin(), box.exact.end());
  box.exact.clear();
  for (const auto& [name, tensor] : box.stored) {
    const auto master = masters.find(name);
    box.exact.emplace_back(name, master == masters.end() ? tensor : master->second);
    masters.erase(name);
  }
  check(masters.empty(), "got masters of weights that are not there");
}

}  // namespace

int64_t write_black_box(const std::string& path, const BlackBox& box, int64_t limit,
                        FileSystem& files) {
  const NamedTensors tensors = tensors_of(box);
  const auto bytes = static_cast<int64_t>(tensor_bytes(tensors));
  if (bytes <= limit) {
    save_tensors(path, tensors, {{kBlackBoxKey, header_of(box)}}, files);
  }
  return bytes;
}

BlackBox read_black_box(const std::string& path, FileSystem& files) {
  const Metadata metadata = load_metadata(path, files);
  const auto header = metadata.find(kBlackBoxKey);
  check(header != metadata.end(), path,
        ": got a file without a recorded step, expected one that a run with "
        "TrainerOptions::black_box wrote (RUN/blackbox.safetensors)");
  try {
    BlackBox box = box_of(header->second);
    for (const auto& [name, tensor] : load_tensors(path, files)) {
      place(box, name, tensor);
    }
    complete_exact(box);
    return box;
  } catch (const std::exception& error) {
    fail(path, ": the recorded step cannot be read: ", json_quoted_short(error.what()));
  }
}

}  // namespace binade::train
