// bundle_probe: links what the programs of the bundle link (devices, training, pictures, compressed
// files, ranks), so that a test can read which libraries that needs. It prints the devices.
#include <binade/core/device/device_info.h>
#include <binade/data/decode.h>
#include <binade/data/idx.h>
#include <binade/data/pictures/pictures.h>
#include <binade/dist/transport/mpi_transport.h>
#include <binade/kernels/base/error.h>

#include <cstdio>

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) {  // files of images in the format of MNIST
      const binade::data::IdxArray images = binade::data::read_idx(argv[i]);
      std::printf("%s: %zu bytes\n", argv[i], images.elements.size());
      binade::data::save_jpeg(std::string(argv[i]) + ".jpg", binade::data::read_image(argv[i]));
    }
    if (binade::dist::has_mpi()) {
      binade::dist::make_mpi_transport();
    }
    std::printf("%s, MPI %s\n", binade::describe(binade::Device::best()).c_str(),
                binade::dist::has_mpi() ? "in" : "out");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bundle_probe: %s\n", error.what());
    return 1;
  }
  return 0;
}
