# binade_library(NAME [EXCLUDE REGEX] [DEPENDS LAYER...] [PRECOMPILE HEADER...]): one static library per folder, binade::NAME.
# Sources are all *.cpp below the folder. Those named *_isa.cpp are compiled once per instruction set
# (kernels/base/isa.h), those named *_avx512_bf16.cpp and *_amx_bf16.cpp for that set alone; no -march flag reaches a user's program.

set(BINADE_INCLUDE_DIR ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${BINADE_INCLUDE_DIR}/binade)
foreach(folder kernels core nn optim data dist train lab)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${BINADE_INCLUDE_DIR}/binade/${folder} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/binade.h ${BINADE_INCLUDE_DIR}/binade/binade.h SYMBOLIC)
if(NOT BINADE_CUDA_MODE STREQUAL "OFF")
  set(BINADE_WITH_CUDA 1)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_config.h.in ${BINADE_INCLUDE_DIR}/binade/build_config.h)

include(BinadePrecompile)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Flags of all sources here; none of them reaches a user's program. Position independent code may be
# inlined across functions of a file, as in a program.
add_library(binade_base_flags INTERFACE)
target_compile_options(binade_base_flags INTERFACE -Wall -Wextra -fno-semantic-interposition
  $<$<AND:$<BOOL:${BINADE_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Pragmas for g++'s vectoriser; "a & b ? x : y", where b must be evaluated for the loop to vectorise.
  target_compile_options(binade_base_flags INTERFACE
    -Wno-unknown-pragmas -Wno-unknown-warning-option -Wno-bitwise-conditional-parentheses)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns of an overlap in every `"text" + string` (its bug 105651).
  target_compile_options(binade_base_flags INTERFACE -Wno-restrict)
endif()
# Hardening, except for the *_isa.cpp loops, whose sizes are checked before they run.
include(BinadeHardening)
add_library(binade_flags INTERFACE)
target_link_libraries(binade_flags INTERFACE binade_base_flags binade_hardening)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Not in the base flags: they follow a target's own options, and the last -march wins.
  target_compile_options(binade_flags INTERFACE -march=x86-64-v2)
endif()

if(BINADE_SANITIZE)
  add_compile_options(-fsanitize=${BINADE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BINADE_SANITIZE})
endif()
# The instruction sets that are compiled (kernels/base/isa.h).
set(binade_isas baseline avx2 avx512 avx512_bf16 amx_bf16)
if(NOT BINADE_ISAS MATCHES "^(all|native|baseline)$")
  message(FATAL_ERROR "BINADE_ISAS: got ${BINADE_ISAS}, expected all, native or baseline")
elseif(BINADE_SANITIZE OR BINADE_ISAS STREQUAL "baseline")
  set(binade_isas baseline)
  add_compile_definitions(BINADE_BASELINE_ONLY)
elseif(BINADE_ISAS STREQUAL "native")
  file(STRINGS /proc/cpuinfo features REGEX "^flags" LIMIT_COUNT 1)
  if(features MATCHES "avx512bw" AND features MATCHES "avx512vl")
    list(REMOVE_ITEM binade_isas avx2)
    add_compile_definitions(BINADE_WITHOUT_AVX2)
  else()
    list(REMOVE_ITEM binade_isas avx512 avx512_bf16 amx_bf16)
    add_compile_definitions(BINADE_WITHOUT_AVX512)
  endif()
endif()

# binade_unity(TARGET): with BINADE_UNITY the target's sources compile eight at a time, which parses the headers
# once for all of them and halves the time; after a change to one source the others of its eight compile again.
# Names in unnamed namespaces of one target must therefore differ. Sources with options or definitions of their
# own compile alone (CMake's UNITY_BUILD). Off by default: tools that read the compile commands, and the check
# that each source includes what it uses, need every source by itself.
option(BINADE_UNITY "Compile several sources at a time: for a build from nothing" OFF)
function(binade_unity target)
  if(BINADE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 8)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # g++ takes an included source for a header, whose classes should have no members of unnamed namespaces.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

function(binade_library name)
  cmake_parse_arguments(arg "" "EXCLUDE" "DEPENDS;PRECOMPILE" ${ARGN})
  set(target binade_${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(cuda|host)/[^/]*$|_cuda\\.cpp$")  # binade_cuda_sources adds them
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  set(isa_sources ${sources})
  list(FILTER isa_sources INCLUDE REGEX "_isa\\.cpp$")
  foreach(isa avx512_bf16 amx_bf16)
    set(sources_${isa} ${sources})
    list(FILTER sources_${isa} INCLUDE REGEX "_${isa}\\.cpp$")
  endforeach()
  list(FILTER sources EXCLUDE REGEX "_(isa|avx512_bf16|amx_bf16)\\.cpp$")

  add_library(${target} ${sources})
  set_property(GLOBAL APPEND PROPERTY binade_objects $<TARGET_OBJECTS:${target}>)
  add_library(binade::${name} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${BINADE_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:binade_flags>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
    DEFINE_SYMBOL "")
  binade_precompile(${target} ${arg_PRECOMPILE})
  if(NOT name STREQUAL "kernels")  # their sources are few and large
    binade_unity(${target})
  endif()
  foreach(layer ${arg_DEPENDS})
    target_link_libraries(${target} PUBLIC binade_${layer})
  endforeach()

  binade_cuda_sources(${target} ${name})
  set(BINADE_HOST_KERNELS ${BINADE_HOST_KERNELS} PARENT_SCOPE)

  # -O3 in every build type: kernels at -O0 are too slow for tests, and inlining keeps instructions
  # of one set out of functions that the whole program shares. Nothing reads errno or the
  # floating-point exception flags, and without them square roots and selections vectorise.
  set(isa_flags_baseline -O3 -march=x86-64-v2)
  if(BINADE_ISAS STREQUAL "native")  # only tests take the baseline then, and -O1 compiles in half the time
    set(isa_flags_baseline -O1 -march=x86-64-v2)
  endif()
  set(isa_flags_avx2 -O3 -march=x86-64-v3 -mtune=generic)
  set(isa_flags_avx512 -O3 -march=x86-64-v4 -mtune=generic -mprefer-vector-width=512)
  set(isa_flags_avx512_bf16 ${isa_flags_avx512} -mavx512bf16)
  set(isa_flags_amx_bf16 ${isa_flags_avx512_bf16} -mamx-tile -mamx-bf16)
  # Products and sums that are rounded separately, with and without FMA.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/kernels/image/normalize_bytes_isa.cpp
    ${PROJECT_SOURCE_DIR}/kernels/image/augment_bytes_isa.cpp
    ${PROJECT_SOURCE_DIR}/kernels/formats/format_sums_isa.cpp
    PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  foreach(isa baseline avx2 avx512)
    set(sources_${isa} ${isa_sources})
  endforeach()
  foreach(isa ${binade_isas})
    if(sources_${isa})
      set(object ${target}_${isa})
      add_library(${object} OBJECT ${sources_${isa}})
      target_compile_features(${object} PRIVATE cxx_std_20)
      target_include_directories(${object} PRIVATE ${BINADE_INCLUDE_DIR})
      target_link_libraries(${object} PRIVATE binade_base_flags)
      target_compile_definitions(${object} PRIVATE BINADE_ISA=${isa})
      target_compile_options(${object} PRIVATE
        ${isa_flags_${isa}} -fno-math-errno -fno-trapping-math)
      set_target_properties(${object} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      binade_precompile(${object})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${object}>)
      set_property(GLOBAL APPEND PROPERTY binade_objects $<TARGET_OBJECTS:${object}>)
    endif()
  endforeach()
endfunction()
