#include <binade/lab/cases/host_function_internal.h>
#include <binade/lab/driver/process_internal.h>
#include <binade/lab/driver/toolchain_internal.h>

#include <dlfcn.h>

#include <cstring>

namespace binade::lab {
namespace {

const char* const kFunctions[] = {"reference", "fill"};

std::string caller_of(const std::string& name, const std::vector<Parameter>& parameters) {
  std::string code = "extern \"C\" void binade_lab_" + name + "(void* const* a) { " + name + "(";
  for (size_t i = 0; i < parameters.size(); ++i) {
    code += text(i == 0 ? "" : ", ", "*(", parameters[i].type, "*)a[", i, "]");
  }
  return code + "); }\n";
}

}  // namespace

HostModule::HostModule(std::string path, std::string source)
    : path_(std::move(path)), source_(std::move(source)) {
  std::string code = "#line 1 \"" + path_ + "\"\n" + source_ + "\n";
  for (const char* name : kFunctions) {
    if (const auto parameters = parameters_of(path_, source_, name)) {
      code += caller_of(name, *parameters);
    }
  }
  const ScratchFolder scratch;
  const std::string file = scratch / "reference.cpp", library = scratch / "reference.so",
                    errors = scratch / "errors";
  write_text(file, code);
  Process compiler(
      {{find_compiler(""), "-std=c++20", "-O1", "-w", "-fPIC", "-shared", file, "-o", library},
       errors,
       errors,
       {{"LC_ALL", "C"}}});
  if (compiler.wait(std::chrono::minutes(2)).status != 0) {
    throw Error(
        text("kernel: the reference does not compile:\n", text_of_file(errors).substr(0, 2000)));
  }
  library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  check(library_ != nullptr, "kernel: cannot load the reference ", path_, ": ", ::dlerror());
}

HostModule::~HostModule() {
  if (library_ != nullptr) {
    ::dlclose(library_);
  }
}

bool HostModule::has(const std::string& name) const {
  return ::dlsym(library_, ("binade_lab_" + name).c_str()) != nullptr;
}

HostFunction HostModule::function(const std::string& name) const {
  void* entry = ::dlsym(library_, ("binade_lab_" + name).c_str());
  check(entry != nullptr, "kernel: ", path_, " does not define extern \"C\" void ", name, "(...)");
  return {path_, *parameters_of(path_, source_, name),
          reinterpret_cast<HostFunction::Entry>(entry)};
}

void HostFunction::call(const std::vector<HostArgument>& arguments) const {
  std::vector<std::string> values;  // numbers passed by value, in their own types
  std::vector<double*> arrays(arguments.size());
  std::vector<void*> places(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Element element = parameters_[i].element;
    std::string bytes(8, '\0');
    const double number = arguments[i].number;
    const auto whole = static_cast<int64_t>(number);
    const auto single = static_cast<float>(number);
    const void* from = element == Element::f64   ? static_cast<const void*>(&number)
                       : element == Element::f32 ? static_cast<const void*>(&single)
                                                 : static_cast<const void*>(&whole);
    std::memcpy(bytes.data(), from, element == Element::f32 ? 4 : 8);
    values.push_back(std::move(bytes));
    arrays[i] = arguments[i].array;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    places[i] = parameters_[i].passing == Passing::array ? static_cast<void*>(&arrays[i])
                                                         : values[i].data();
  }
  entry_(places.data());
}

}  // namespace binade::lab
