// Binade's side of bench/peers/loader: reads "epoch" lines and answers each with the number of
// images that the loader delivered and the seconds that it took.
//   peer_loader DIR WORKERS [decode | raw | small]
// "raw" and "small" pack the images of DIR into a store of pixels and read the store.
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using namespace binade;

namespace {

data::Transform work_of(const std::string& work) {
  if (work == "decode") {  // all pixels are decoded, then cropped, which costs little
    return data::Transform(
        [](data::Image& image, philox::Stream&) { image = data::crop_image(image, 0, 0, 8, 8); });
  }
  const data::Transform crop = work == "raw"     ? data::random_crop(224, 224)
                               : work == "small" ? data::random_crop(32, 32, 4)
                                                 : data::random_resized_crop(224, 224);
  return data::sequence({crop, data::random_horizontal_flip()});
}

std::shared_ptr<const data::Dataset> images_of(const std::string& folder, const std::string& work) {
  const auto photos = std::make_shared<data::ImageFolder>(folder, data::Part::train);
  if (work != "raw" && work != "small") {
    return photos;
  }
  const std::string store = folder + "/store";
  if (!data::is_store(store)) {
    data::pack(photos, store, {.images = data::PackImages::raw});
  }
  return std::make_shared<data::StoreDataset>(store);
}

int run(const std::string& folder, int workers, const std::string& work) {
  data::LoaderOptions options{
      .batch = work == "small" ? 250 : 50, .workers = workers, .transform = work_of(work)};
  options.cache_bytes = 0;
  if (work != "decode") {
    options.mean = {.485f, .456f, .406f};
    options.deviation = {.229f, .224f, .225f};
  }
  data::Loader loader(images_of(folder, work), options);
  std::string line;
  for (int64_t epoch = 0; std::getline(std::cin, line); ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    int64_t images = 0;
    for (const data::Batch& batch : loader.epoch(epoch)) {
      images += batch.size;
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    std::cout << images << ' ' << spent.count() << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check(argc >= 3, "peer_loader: expected DIR WORKERS [decode | raw | small]");
    return run(argv[1], std::stoi(argv[2]), argc > 3 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::cerr << "peer_loader: error: " << error.what() << '\n';
    return 1;
  }
}
