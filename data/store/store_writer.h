// StoreWriter: writes samples to a packed store, one after another, and adds samples to one.
//
//   data::StoreWriter writer("arrays", {.class_names = {"cat", "dog"}});
//   writer.add({.label = 0, .fields = {{"x", x}}});
//   writer.finish();
//
// The store has the new samples only after finish(): until then a new folder has no manifest, and
// an existing store is unchanged. Only one process at a time writes to a store.
// data/store/pack.h stores whole datasets.
#pragma once
#include <binade/core/owned.h>
#include <binade/data/sample.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

struct StoreWriterOptions {
  // The classes of labels. For a store that exists, give its classes, with new ones at the end.
  // Empty: as many classes as the largest label needs.
  std::vector<std::string> class_names = {};
  int64_t classes = 0;                     // without names: how many; 0: as the labels need
  int64_t shard_bytes = int64_t(1) << 30;  // a shard ends after the sample that reaches it
  bool append = false;                     // to the store that is there
};

class StoreWriter {
 public:
  // Makes the folder, or with `append` opens the store in it. Throws Error if the folder has other
  // files, if there is no store to append to, if another process writes to it, or if the class
  // names do not begin with those of the store.
  explicit StoreWriter(const std::string& directory, StoreWriterOptions options = {});
  // Without finish() the new samples are dropped.
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // `origin` is for messages, such as "cat/1.jpg". With `encoded` that file (JPEG, PNG, ...) is
  // kept instead of sample.image. Throws Error for a label that is no class.
  void add(const Sample& sample, std::string_view origin = {},
           std::span<const uint8_t> encoded = {});
  // Adds the bytes that encode_sample() made: for many threads that encode and one that writes.
  void add_encoded_sample(std::string_view bytes, int64_t label, int channels, bool keeps_file);
  // Writes all to the disk but the name of the manifest, so that finish() only renames: for several
  // stores that get their samples together. No add() may follow. Throws Error if there are no
  // samples.
  void prepare();
  // Prepares, if that is not done, and gives the store its new manifest, in one system call.
  void finish();

  // finish() for stores in the folders of one folder: after a crash at any moment all of them have
  // their new samples, or none has.
  static void finish_together(const std::string& folder, const std::vector<StoreWriter*>& writers);

  int64_t samples() const;  // with those that were there
  int64_t bytes() const;    // of new shards, so far

 private:
  class State;
  Owned<State> state_;
};

}  // namespace binade::data
