// Tests where vendor libraries are looked for, in which order, and what an error says.
#include <binade/kernels/base/vendor_library.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>
#include <algorithm>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

namespace binade::kernels::vendor_library_test {
namespace {

namespace files = std::filesystem;

constexpr VendorLibrary kLibrary{"Example", "libbinade_example.so.7", "BINADE_EXAMPLE_LIBRARY",
                                 "the example"};

// Sets environment variables and makes a folder for one test.
class VendorLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"BINADE_EXAMPLE_LIBRARY", "BINADE_LIBRARY_PREFIX", "CUDA_HOME",
                             "CUDA_PATH", "VIRTUAL_ENV"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      unsetenv(name);
    }
    root_ = files::path(testing::TempDir()) / ("vendor-" + std::to_string(getpid()));
    files::create_directories(root_);
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
    files::remove_all(root_);
  }

  // Makes a file that is no library, or a link to `target`.
  std::string make(const std::string& path, const std::string& target = "") const {
    const files::path file = root_ / path;
    files::create_directories(file.parent_path());
    if (target.empty()) {
      std::ofstream(file) << "no library";
    } else {
      files::create_symlink(target, file);
    }
    return file.string();
  }
  std::string folder(const std::string& name) const { return (root_ / name).string(); }

  static std::string missing(LibraryPlaces places = LibraryPlaces::all) {
    return LoadedLibrary(
               kLibrary, [](const auto&) { return std::string(); }, places)
        .missing();
  }

  files::path root_;
  std::map<std::string, std::optional<std::string>> before_;
};

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

TEST_F(VendorLibraryTest, PlacesComeInOrder) {
  const std::string file = kLibrary.file;
  const std::string wheel = make("venv/lib/python3.12/site-packages/nvidia/cu13/lib/" + file);
  const std::string home = make("toolkit/lib64/" + file);
  const std::string target = make("toolkit/targets/x86_64-linux/lib/" + file);
  const std::string first = make("first/" + file);
  const std::string second = make("second/nvidia/example/lib/" + file);
  make("second/nvidia/other/lib/libother.so");
  setenv("VIRTUAL_ENV", folder("venv").c_str(), 1);
  setenv("CUDA_HOME", folder("toolkit").c_str(), 1);
  setenv("CUDA_PATH", folder("toolkit").c_str(), 1);  // the same folder must be listed once
  setenv("BINADE_LIBRARY_PREFIX", (folder("first") + "::" + folder("second")).c_str(), 1);
  const std::vector<std::string> expected{first, second, home, target, file, wheel};
  EXPECT_EQ(library_files(kLibrary, LibraryPlaces::all), expected);
  EXPECT_TRUE(library_files(kLibrary, LibraryPlaces::named).empty());
  setenv("BINADE_EXAMPLE_LIBRARY", "/somewhere/it.so", 1);
  EXPECT_EQ(library_files(kLibrary, LibraryPlaces::all),
            std::vector<std::string>{"/somewhere/it.so"});
  EXPECT_EQ(library_files(kLibrary, LibraryPlaces::named),
            std::vector<std::string>{"/somewhere/it.so"});
}

TEST_F(VendorLibraryTest, AnErrorListsWhatWasTriedAndSaysWhatToDo) {
  const std::string wrong = make("prefix/lib/" + std::string(kLibrary.file));
  setenv("BINADE_LIBRARY_PREFIX", folder("prefix").c_str(), 1);
  setenv("VIRTUAL_ENV", folder("venv").c_str(), 1);
  expect_parts(missing(),
               {"Example was not loaded: tried " + wrong, "too short", "libbinade_example.so.7",
                "/usr/local/cuda", "the system's folders", folder("venv"), "install the example",
                "BINADE_EXAMPLE_LIBRARY", "BINADE_LIBRARY_PREFIX"});
  setenv("BINADE_EXAMPLE_LIBRARY", wrong.c_str(), 1);
  expect_parts(missing(), {"tried " + wrong, "which BINADE_EXAMPLE_LIBRARY names"});
  EXPECT_EQ(missing().find("/usr/local/cuda"), std::string::npos);
  unsetenv("BINADE_EXAMPLE_LIBRARY");
  expect_parts(missing(LibraryPlaces::named), {"no file was tried", "BINADE_EXAMPLE_LIBRARY"});
}

TEST_F(VendorLibraryTest, TheNamesCarryTheInterface) {
  EXPECT_TRUE(std::string(kCublasLt.file).starts_with("libcublasLt.so.1")) << kCublasLt.file;
  EXPECT_STREQ(kCudnn.file, "libcudnn.so.9");
  EXPECT_STREQ(kNccl.file, "libnccl.so.2");
}

// Returns the file of a system library.
std::string file_of(const char* name) {
  void* handle = dlopen(name, RTLD_NOW);
  const link_map* map = nullptr;
  return handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

TEST_F(VendorLibraryTest, AFileThatWillNotDoIsPassedOver) {
  const std::string file = kLibrary.file;
  const std::string wrong = make("first/lib/" + file);
  const std::string absent = make("second/lib/" + file, file_of("libc.so.6"));
  const std::string right =
      make("venv/lib/python3.11/site-packages/nvidia/x/lib/" + file, file_of("libm.so.6"));
  setenv("BINADE_LIBRARY_PREFIX", (folder("first") + ":" + folder("second")).c_str(), 1);
  double (*cosine)(double) = nullptr;
  const auto check = [&](const LoadedLibrary::Find& find) {
    find_function(find, "cos", cosine);
    return std::string();
  };
  const LoadedLibrary none(kLibrary, check, LibraryPlaces::all);
  EXPECT_EQ(none.path(), "");
  expect_parts(none.missing(), {wrong, absent, "it has no cos"});
  setenv("VIRTUAL_ENV", folder("venv").c_str(), 1);
  const LoadedLibrary found(kLibrary, check, LibraryPlaces::all);
  EXPECT_EQ(found.path(), right) << found.missing();
  EXPECT_EQ(found.missing(), "");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  const LoadedLibrary old(
      kLibrary, [](const auto&) { return std::string("it is version 1, expected 2"); },
      LibraryPlaces::all);
  expect_parts(old.missing(), {right + " (it is version 1, expected 2)"});
}

}  // namespace
}  // namespace binade::kernels::vendor_library_test
