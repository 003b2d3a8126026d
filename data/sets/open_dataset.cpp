// open_dataset: chooses the reader for a directory.
#include <binade/core/io/file_system.h>
#include <binade/data/folder_listing_internal.h>
#include <binade/data/idx.h>
#include <binade/data/listing/listing_cache_internal.h>
#include <binade/data/sets/cifar.h>
#include <binade/data/sets/tar_dataset.h>
#include <binade/data/store/store_dataset.h>

#include <algorithm>
#include <optional>

namespace binade::data {
namespace {

bool has_folders(const std::string& directory) {
  try {
    return !FolderListing(directory, OutsideLinks::follow).class_folders(directory).empty();
  } catch (const Error&) {
    return false;
  }
}

// DIR/test, else DIR/val, if it passes the test; else empty.
template <class Is>
std::string test_part(const std::string& directory, const Is& is) {
  for (const char* name : {"/test", "/val"}) {
    if (is(directory + name)) {
      return directory + name;
    }
  }
  return {};
}

bool has_parts(const std::string& directory, bool (*is)(const std::string&)) {
  return is(directory + "/train") && !test_part(directory, is).empty();
}

TrainTest split_of(std::shared_ptr<const Dataset> whole, Format format,
                   const ImageFolderOptions& options) {
  const Split split = split_dataset(std::move(whole), options.test_share, options.seed);
  return {split.first, split.second, format};
}

// The parts of a format whose folders are recognised by `is` and read by `Set`.
template <class Set, class Options>
TrainTest open_parts(const std::string& directory, Format format, bool (*is)(const std::string&),
                     const Options& own, const ImageFolderOptions& options) {
  if (!has_parts(directory, is)) {
    return split_of(std::make_shared<Set>(directory, own), format, options);
  }
  auto train = std::make_shared<Set>(directory + "/train", own);
  auto test = std::make_shared<Set>(test_part(directory, is), own);
  check(test->class_count() <= train->class_count(), directory, ": the test part has ",
        test->class_count(), " classes, the train part ", train->class_count());
  return {std::move(train), std::move(test), format};
}

TrainTest open_idx(const std::string& directory, const ImageFolderOptions& options) {
  FolderListing listing(directory, options.outside_links);
  // Reads the labels only; both parts get the larger number of classes.
  int64_t classes = 0;
  for (const Part part : {Part::train, Part::test}) {
    const std::string labels = idx_file(directory, part, false);
    listing.check_link(idx_file(directory, part, true));
    listing.check_link(labels);
    const InputFile images(idx_file(directory, part, true));  // if it is missing, that is the error
    classes = std::max(classes, idx_classes(labels, options.checksums));
  }
  std::vector<std::shared_ptr<const Dataset>> parts;
  for (const Part part : {Part::train, Part::test}) {
    parts.push_back(std::make_shared<IdxDataset>(idx_file(directory, part, true),
                                                 idx_file(directory, part, false), classes,
                                                 options.checksums));
  }
  listing.report();
  return {parts[0], parts[1], Format::idx};
}

TrainTest open_folder(const std::string& directory, bool is_guess,
                      const ImageFolderOptions& options) {
  try {
    ListingCache listings(options.listing_cache);
    return {std::make_shared<ImageFolder>(directory, Part::train, options, listings),
            std::make_shared<ImageFolder>(directory, Part::test, options, listings),
            Format::folder};
  } catch (Error& error) {
    if (is_guess && !has_folders(directory)) {
      error.add_context(
          "(looked for a store, binade-store.txt, then for "
          "{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz], for CIFAR's *.bin, for *.tar, then "
          "for train/<class>/* with test/<class>/* or val/<class>/*, then for <class>/*)");
    }
    throw;
  }
}

Format format_of(const std::string& directory) {
  return is_store(directory) || has_parts(directory, is_store)             ? Format::store
         : has_idx_files(directory)                                        ? Format::idx
         : has_cifar_files(directory)                                      ? Format::cifar
         : has_tar_files(directory) || has_parts(directory, has_tar_files) ? Format::tar
                                                                           : Format::folder;
}

}  // namespace

TrainTest open_dataset(const std::string& directory, Format format,
                       const ImageFolderOptions& options) {
  check(folder_exists(directory), directory, ": no such folder");
  DecodeOptions of_store = options.decode;
  of_store.channels = 0;  // those that it was packed with
  switch (format == Format::automatic ? format_of(directory) : format) {
    case Format::store:
      return open_parts<StoreDataset>(directory, Format::store, is_store,
                                      StoreOptions{.decode = of_store}, options);
    case Format::tar:
      return open_parts<TarDataset>(directory, Format::tar, has_tar_files,
                                    TarOptions{.decode = options.decode}, options);
    case Format::cifar:
      return {std::make_shared<CifarDataset>(directory, Part::train),
              std::make_shared<CifarDataset>(directory, Part::test), Format::cifar};
    case Format::idx: return open_idx(directory, options);
    default: return open_folder(directory, format == Format::automatic, options);
  }
}

}  // namespace binade::data
