// The flags of binade kernel.
#include "flags_internal.h"

namespace binade::tool {

void add_kernel(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<KernelOptions>();
  auto* command = app.add_subcommand(
      "kernel", "check a CUDA kernel without a GPU: binade kernel softmax.cu --case softmax");
  command->add_option("FILE", o->file, "CUDA C++ with extern \"C\" void solve(...)")
      ->required()
      ->check(path());
  command
      ->add_option(
          "--case", o->case_and_shape,
          "what it computes: softmax, gemm, layer_norm, reduce, transpose, histogram, scan, "
          "elementwise, stencil, attention, or a case file (.json); with :SHAPE, such as "
          "softmax:4096x1024, that shape is counted")
      ->required()
      ->check(path());
  command->add_option("--json", o->json, "a file for the report as JSON")->check(path());
  command->add_option("--page", o->page, "a file for the report as one HTML page")->check(path());
  command->add_option("--compiler", o->compiler, "the C++ compiler; else CXX, g++ or clang++")
      ->check(path());
  add_switch(command, "--strict", o->strict, "warnings and performance count as wrong: status 1");
  add_switch(command, "--watch", o->watch, "check again whenever the file changes");
  add_switch(command, "--no-counts", o->no_counts, "do not count accesses of memory");
  add_switch(command, "--no-nvcc", o->no_nvcc,
             "do not ask nvcc for registers, spills, occupancy and SASS counts");
  command->callback([o, &chosen] {
    check(o->page.empty() || o->page != o->json, "kernel: --json and --page name one file");
    chosen = *o;
  });
}

}  // namespace binade::tool
