// Written by tests/parity/format_digests.py from ml_dtypes 0.6.0 and gfloat 0.5.2.
#pragma once
#include <cstdint>

namespace binade {

struct FormatDigests {
  const char* format;
  int64_t inputs;
  uint64_t nearest, saturated, toward_zero, stochastic;
};

inline constexpr FormatDigests kFormatDigests[] = {
    {"e4m3", 132024, 0x775f4206305cfe85u, 0xd41a74d47171f585u, 0x9867696e6f5e24a5u,
     0x1ce6696b6b5b90efu},
    {"e4m3fn", 132080, 0x3a266c4e8d8b75a5u, 0xfe0e960c84217625u, 0x8c0599b2c90b4965u,
     0xaf4a3c3845759613u},
    {"e4m3fnuz", 132088, 0x1a2f3f1e8d982ca5u, 0x63c2eb072fbcdde5u, 0xda40ec2f6662af65u,
     0x16623fab6eea5ec6u},
    {"e4m3b11fnuz", 132088, 0x29c397f947994d65u, 0xe241341b65f087e5u, 0x9b94beb6947750a5u,
     0xb193849f40de7547u},
    {"e5m2", 132056, 0x7cf36b1ee697ed25u, 0x27f2205fb536dba5u, 0xb96d348fedd19e25u,
     0x2d9bef444d2dcc52u},
    {"e5m2fnuz", 132088, 0xc03ae8a18ca1ae25u, 0x111b5fa38a8df3a5u, 0x9ee7bc92b5b4d3a5u,
     0xc9a40db7409911dfu},
    {"e3m4", 131960, 0xbfa4190cc124cb05u, 0xb9836c21db60a385u, 0x806bb32347a811a5u,
     0xbad393f68e185aacu},
    {"e3m2", 129020, 0x2042dd4b45c82fa5u, 0x2042dd4b45c82fa5u, 0xe2d9a5b20f2bf845u,
     0x31b3814c39125bafu},
    {"e2m3", 129020, 0x9a2cbba2dea2d405u, 0x9a2cbba2dea2d405u, 0x437057c1caf41525u,
     0x1dd3be3c338cd4d8u},
    {"e2m1", 128828, 0xa35a0940508d4f05u, 0xa35a0940508d4f05u, 0xa1ea077576215c25u,
     0x5386132de6952fa5u},
    {"e8m0", 133072, 0x210779e360bb12ccu, 0x2e4c46123105524cu, 0xf7ee0aefac61ed6cu,
     0x8f4e91ecb10b510au},
    {"f16", 385016, 0xccbc7af2ae9d4265u, 0x263bb9ec191ded5du, 0xe14783a29a66c755u,
     0xa2bc5ea741f42b74u},
    {"bf16", 392184, 0xae94030d7cbdec4du, 0x5c7e19d1683035d5u, 0xe30bb4250c767995u,
     0xd1c0ae4561e47133u},
    {"tf32", 131584, 0x38ec8659f8b53dc5u, 0xb0d94c92ff4a8cb9u, 0x6e5f7c4989617c25u,
     0x89ca88fa6209ee3au},
};

}  // namespace binade
