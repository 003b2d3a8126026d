// Binade's side of bench/peers/loader: reads "epoch" lines and answers each with the number of
// images that the loader delivered and the seconds that it took.
//   peer_loader DIR WORKERS [decode]
#include <binade/data/image_folder.h>
#include <binade/data/loader.h>

#include <chrono>
#include <iostream>
#include <string>

using namespace binade;

namespace {

data::LoaderOptions options_for(int workers, bool decode_only) {
  data::LoaderOptions options{.batch = 50, .workers = workers, .cache_bytes = 0};
  if (decode_only) {  // all pixels are decoded; then a part is cut out, which costs little
    options.transform = data::Transform(
        [](data::Image& image, philox::Stream&) { image = data::crop_image(image, 0, 0, 8, 8); });
    return options;
  }
  options.transform =
      data::sequence({data::random_resized_crop(224, 224), data::random_horizontal_flip()});
  options.mean = {.485f, .456f, .406f};
  options.deviation = {.229f, .224f, .225f};
  return options;
}

int run(const std::string& folder, int workers, bool decode_only) {
  const data::ImageFolder photos(folder, data::Part::train);
  data::Loader loader(photos, options_for(workers, decode_only));
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
    check(argc >= 3, "peer_loader: expected DIR WORKERS [decode]");
    return run(argv[1], std::stoi(argv[2]), argc > 3 && std::string(argv[3]) == "decode");
  } catch (const std::exception& error) {
    std::cerr << "peer_loader: error: " << error.what() << '\n';
    return 1;
  }
}
