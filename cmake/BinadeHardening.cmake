# binade_hardening: makes memory errors in a program harder to exploit (SECURITY.md).
# CMAKE_POSITION_INDEPENDENT_CODE makes programs position independent.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(binade_hardening INTERFACE)
target_compile_options(binade_hardening INTERFACE -fstack-protector-strong)
# Not in device code, which has no function for a failed assertion.
target_compile_definitions(binade_hardening INTERFACE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
if(NOT BINADE_SANITIZE)  # fortified functions would bypass the sanitizers' own checks
  target_compile_options(binade_hardening INTERFACE
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(binade_hardening INTERFACE LINKER:-z,relro,-z,now)
endif()
