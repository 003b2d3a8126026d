// Code that the loader and its collate functions share. Internal to data.
#pragma once
#include <binade/data/collate/collate.h>

namespace binade::data {

// An error about one sample of a batch: the loader puts its index and origin before the text, which
// begins with a verb.
class SampleError : public Error {
 public:
  SampleError(size_t place, const std::string& what)
      : Error(text("sample ", place, " of the batch ", what)), place_(place), verb_(what) {}
  size_t place() const { return place_; }
  const std::string& verb() const { return verb_; }

 private:
  size_t place_;
  std::string verb_;
};

// Throws SampleError unless all samples have the same fields.
void check_same_fields(std::span<const Sample> samples);

}  // namespace binade::data
