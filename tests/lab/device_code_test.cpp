// Parses the output of nvcc, cuobjdump and nvdisasm; compares occupancy with hand-computed
// examples.
#include <binade/lab/driver/device_code_internal.h>
#include <binade/lab/driver/gpus_internal.h>
#include <gtest/gtest.h>

namespace binade::lab::device_code_test {
namespace {

TEST(DeviceCode, ResourcesOfPtxas) {
  const auto found = resources_from(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z7softmaxPKfPfi' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z7softmaxPKfPfi\n"
      "    48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem\n"
      "ptxas info    : Compiling entry function 'plain' for 'sm_90'\n"
      "ptxas info    : Function properties for plain\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, 372 bytes cmem[0]\n");
  ASSERT_EQ(found.size(), 2u);
  const KernelResources& softmax = found.at("_Z7softmaxPKfPfi");
  EXPECT_EQ(softmax.registers, 32);
  EXPECT_EQ(softmax.spilled_bytes, 40);
  EXPECT_EQ(softmax.stack_bytes, 48);
  EXPECT_EQ(softmax.shared_bytes, 512u);
  EXPECT_EQ(found.at("plain").registers, 8);
  EXPECT_EQ(found.at("plain").shared_bytes, 0u);
}

TEST(DeviceCode, InstructionsOfCuobjdump) {
  const auto found = instructions_from(
      "\t\tFunction : _Z1kPf\n"
      "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
      "        /*0000*/                   LDC R1, c[0x0][0x28] ;          /* 0x00000a00ff017b82 "
      "*/\n"
      "                                                                   /* 0x000fe20000000800 "
      "*/\n"
      "        /*0010*/              @!P0 LDG.E R2, desc[UR4][R2.64] ;    /* 0x0000000402027981 "
      "*/\n"
      "                                                                   /* 0x000fe2000c1e1900 "
      "*/\n"
      "        /*0020*/               @P1 EXIT ;                          /* 0x000000000000194d "
      "*/\n"
      "        /*0030*/                   LDG.E.128 R4, desc[UR4][R2.64] ;/* 0x0 */\n"
      "        /*0040*/                   NOP;                            /* 0x0 */\n"
      "\t\tFunction : other\n"
      "        /*0000*/                   EXIT ;                          /* 0x0 */\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("_Z1kPf"),
            (std::map<std::string, uint64_t>{{"EXIT", 1}, {"LDC", 1}, {"LDG", 2}}));
  EXPECT_EQ(found.at("other").at("EXIT"), 1u);
}

TEST(DeviceCode, InstructionsOfNvdisasm) {
  const auto found = instructions_from(
      "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
      "//--------------------- .text._Z1kPf            --------------------------\n"
      ".text._Z1kPf:\n"
      "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n"
      ".L_x_0:\n"
      "        /*0010*/                   BRA `(.L_x_0);\n"
      "        /*0020*/                   NOP;\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at("_Z1kPf"), (std::map<std::string, uint64_t>{{"BRA", 1}, {"MOV", 1}}));
}

TEST(DeviceCode, KernelsAndTheirLaunches) {
  EXPECT_EQ(kernel_of_symbol("_Z7softmaxILi128EEvPKfPfi"), "softmax<128>");
  EXPECT_EQ(kernel_of_symbol("_ZN3ops3mapI4AxpbEEvPfT_"), "ops::map<Axpb>");
  EXPECT_EQ(kernel_of_symbol("plain"), "plain");
  EXPECT_TRUE(is_launch_of("softmax<128>", "softmax<128>"));
  EXPECT_TRUE(is_launch_of("softmax<kThreads>", "softmax<128>"));  // the value is unknown
  EXPECT_TRUE(is_launch_of("map", "ops::map<Axpb>"));              // it is deduced
  EXPECT_TRUE(is_launch_of("f<128>", "f<128, float>"));
  EXPECT_FALSE(is_launch_of("softmax<64>", "softmax<128>"));
  EXPECT_FALSE(is_launch_of("soft", "softmax<128>"));
}

TEST(DeviceCode, Residency) {
  const Gpu& h100 = kGpus[0];
  const Gpu& t4 = kGpus[3];
  // An H100's multiprocessor has room for exactly 2048 threads with 32 registers.
  EXPECT_EQ(residency_of(h100, 256, 32, 0).warps, 64u);
  // With 128 registers, each quarter has room for 16384 / 4096 warps: 16 of 64 in all.
  const Residency many = residency_of(h100, 256, 128, 0);
  EXPECT_EQ(many.blocks, 2u);
  EXPECT_EQ(many.warps, 16u);
  EXPECT_STREQ(many.limit, "registers");
  // 100 KiB plus the reserved KiB: two blocks fit into 228 KiB.
  const Residency wide = residency_of(h100, 128, 32, 100 << 10);
  EXPECT_EQ(wide.blocks, 2u);
  EXPECT_STREQ(wide.limit, "shared memory");
  // 32 blocks of one warp is the limit, though 64 warps would fit.
  EXPECT_EQ(residency_of(h100, 32, 32, 0).warps, 32u);
  EXPECT_STREQ(residency_of(h100, 32, 32, 0).limit, "blocks");
  EXPECT_EQ(residency_of(t4, 1024, 64, 0).blocks, 1u);
  EXPECT_EQ(residency_of(t4, 1024, 65, 0).blocks, 0u);  // cannot run at all
}

}  // namespace
}  // namespace binade::lab::device_code_test
