// Functions of a C++ source that are compiled by the user's compiler and called in this process.
// The references of case files are such functions.
#pragma once
#include <binade/lab/source/translate.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::lab {

struct HostArgument {
  double* array = nullptr;
  double number = 0;
};

class HostFunction {
 public:
  using Entry = void (*)(void* const*);
  HostFunction(std::string path, std::vector<Parameter> parameters, Entry entry)
      : path_(std::move(path)), parameters_(std::move(parameters)), entry_(entry) {}

  const std::string& path() const { return path_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  void call(const std::vector<HostArgument>& arguments) const;

 private:
  std::string path_;
  std::vector<Parameter> parameters_;
  Entry entry_;
};

// A source of extern "C" void functions, compiled by the constructor. Throws an Error with the
// compiler's text.
class HostModule {
 public:
  HostModule(std::string path, std::string source);
  ~HostModule();
  HostModule(const HostModule&) = delete;
  HostModule& operator=(const HostModule&) = delete;

  bool has(const std::string& name) const;
  // Throws Error if the source does not define the function.
  HostFunction function(const std::string& name) const;

 private:
  std::string path_, source_;
  void* library_ = nullptr;
};

}  // namespace binade::lab
