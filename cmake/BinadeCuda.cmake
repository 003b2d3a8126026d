# The CUDA backend, from BINADE_CUDA:
#   OFF       CPU only.
#   AUTO      ON if the machine has a GPU and a toolkit, else OFF.
#   ON        kernels compiled by nvcc, runtime from the toolkit. Runs on the CPU if there is no GPU.
#   EMULATED  the same sources compiled by the host compiler: the device "emulated" executes kernels on
#             the CPU over a fake CUDA runtime (kernels/host). Needs no toolkit. For tests.
# Sets BINADE_CUDA_MODE (OFF, ON or EMULATED).
set(BINADE_CUDA_MODE ${BINADE_CUDA})
if(BINADE_CUDA STREQUAL "AUTO")
  set(BINADE_CUDA_MODE OFF)
  if(EXISTS /dev/nvidiactl)
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(BINADE_CUDA_MODE ON)
    endif()
  endif()
endif()

if(BINADE_CUDA_MODE STREQUAL "ON")
  # One card: that of this machine, else Hopper. Preset cuda-all has all cards, and PTX for later
  # ones.
  set(card 90a-real)
  if(EXISTS /dev/nvidiactl)
    set(card native)
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${card} CACHE STRING "GPU architectures to compile for")
  message(STATUS "CUDA kernels for ${CMAKE_CUDA_ARCHITECTURES} (CMAKE_CUDA_ARCHITECTURES; preset cuda-all: all cards)")
  enable_language(CUDA)
  find_package(CUDAToolkit 12.0 REQUIRED)
endif()

# binade_nvcc_options(TARGET): the compile options of its CUDA sources.
function(binade_nvcc_options target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:
    -std=c++20 --expt-relaxed-constexpr -Xcompiler=-Wno-unknown-pragmas -Xptxas=-warn-spills -Wno-deprecated-gpu-targets
    $<$<CONFIG:Release>:-Xcompiler=-O1>  # the host side, which launches kernels
    # Makes the binaries a fifth of the size; drivers of CUDA 13 can read it.
    $<$<VERSION_GREATER_EQUAL:${CMAKE_CUDA_COMPILER_VERSION},13>:--compress-mode=size>
    $<$<BOOL:${BINADE_WERROR}>:-Werror=all-warnings>>)
endfunction()

# binade_cuda_sources(TARGET FOLDER): adds the CUDA sources below the folder: all *.cu, the *.cpp in
# folders named cuda, *_cuda.cpp, and for host execution the *.cpp in folders named host.
function(binade_cuda_sources target folder)
  if(BINADE_CUDA_MODE STREQUAL "OFF")
    return()
  endif()
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cu)
  list(FILTER kernels EXCLUDE REGEX "/lab/(ladders|exercises)/")  # written as users of the lab write them
  file(GLOB_RECURSE runtime CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  set(host ${runtime})
  list(FILTER runtime INCLUDE REGEX "/cuda/[^/]*\\.cpp$|_cuda\\.cpp$")
  list(FILTER host INCLUDE REGEX "/host/[^/]*\\.cpp$")
  target_compile_definitions(${target} PUBLIC $<BUILD_INTERFACE:BINADE_WITH_CUDA>)
  if(BINADE_CUDA_MODE STREQUAL "EMULATED")
    target_compile_definitions(${target} PUBLIC $<BUILD_INTERFACE:BINADE_HOST_EXECUTION>)
    if(kernels OR host)
      # Separate object libraries, because the kernel tests link them in sanitized variants.
      set(BINADE_HOST_KERNELS ${kernels} PARENT_SCOPE)
      list(FILTER host INCLUDE REGEX "${binade_fake_runtime}")
      set(object ${target}_host)
      binade_host_objects(${object} "${kernels}" "${host};${runtime}")
      binade_host_executor(plain executor)
      foreach(part ${object}_kernels ${object}_runtime ${executor})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${part}>)
        set_property(GLOBAL APPEND PROPERTY binade_objects $<TARGET_OBJECTS:${part}>)
      endforeach()
    else()
      target_sources(${target} PRIVATE ${runtime})
    endif()
  else()
    target_sources(${target} PRIVATE ${kernels} ${runtime})
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
    # Other libraries of the toolkit are found at run time (kernels/base/vendor_library.h).
    target_compile_definitions(${target} PRIVATE BINADE_CUDA_MAJOR=${CUDAToolkit_VERSION_MAJOR})
    get_filename_component(toolkit ${CUDAToolkit_BIN_DIR} DIRECTORY)
    target_compile_definitions(${target} PRIVATE BINADE_CUDA_TOOLKIT="${toolkit}")
    binade_nvcc_options(${target})
  endif()
endfunction()

# binade_host_kernels(TARGET): the target has kernels for host execution.
function(binade_host_kernels target)
  set_target_properties(${target} PROPERTIES
    RULE_LAUNCH_COMPILE "sh '${PROJECT_SOURCE_DIR}/cmake/drop_patch_entries.sh'")
endfunction()

# Frames tell calls of a helper apart (call_path); code that one call must not be copied to two places.
set(binade_host_frames -fno-omit-frame-pointer -fno-optimize-sibling-calls)

# binade_host_flags(TARGET): what all sources of host execution need.
function(binade_host_flags target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE ${BINADE_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE BINADE_WITH_CUDA BINADE_HOST_EXECUTION)
  target_link_libraries(${target} PRIVATE binade_flags)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# The sources in kernels/host that are the fake of the CUDA runtime; the others are the executor.
set(binade_fake_runtime "/(queue|runtime_[a-z_]+)\\.cpp$")

# binade_host_executor(VARIANT VARIABLE): the object library of the executor in the variant, for all who link
# it: the product, the tests and the lab's archives. plain has no checks but its own, asan works with
# AddressSanitizer, race has the race detector, and ucontext is plain with the context switch of machines other
# than x86-64. The executor itself is never instrumented: it checks what it touches by itself and would be
# several times slower.
function(binade_host_executor variant variable)
  set(target binade_executor_${variant})
  set(${variable} ${target} PARENT_SCOPE)
  if(TARGET ${target})
    return()
  endif()
  set(options_plain)
  set(options_asan -DBINADE_HOST_ASAN)
  set(options_race -DBINADE_HOST_RACE)
  set(options_ucontext -DBINADE_HOST_UCONTEXT)
  binade_glob(sources ${PROJECT_SOURCE_DIR}/kernels/host/*.cpp)
  list(FILTER sources EXCLUDE REGEX "${binade_fake_runtime}")
  add_library(${target} OBJECT ${sources})
  binade_host_flags(${target})
  # Lines are named in kernels, which bring their own debug information; Debug is for gdb.
  target_compile_options(${target} PRIVATE -O2 ${binade_host_frames} ${options_${variant}}
    $<$<CONFIG:Debug>:-g> $<$<CONFIG:Release>:-g0>)
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)  # the lab's archives have it
  binade_precompile(${target})
  binade_unity(${target})
endfunction()

# binade_host_objects(NAME KERNELS RUNTIME [KERNEL_OPTIONS ...]): object libraries NAME_kernels and NAME_runtime
# for host execution, each where it has sources.
function(binade_host_objects name kernels runtime)
  cmake_parse_arguments(arg "" "" "KERNEL_OPTIONS" ${ARGN})
  set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX)  # of this directory only
  set(parts)
  foreach(part kernels runtime)
    if(NOT ${part})
      continue()
    endif()
    list(APPEND parts ${part})
    add_library(${name}_${part} OBJECT ${${part}})
    binade_host_flags(${name}_${part})
  endforeach()
  set(debug $<IF:$<CONFIG:Debug>,-g,-g1>)  # the executor names source lines
  # Kernels read memory as 16-byte vectors of another type; "#pragma unroll" is nvcc's.
  set(options_kernels -fno-strict-aliasing -Wno-unknown-pragmas -Wno-maybe-uninitialized ${binade_host_frames}
    $<$<CXX_COMPILER_ID:GNU>:-fno-thread-jumps>
    $<$<NOT:$<CONFIG:Debug>>:-O1> ${debug} ${arg_KERNEL_OPTIONS})
  if(BINADE_DEVICE_NUMERICS)  # kernels/host/device_numerics.h
    list(APPEND options_kernels -include binade/kernels/host/device_numerics.h -DBINADE_DEVICE_NUMERICS "-DBINADE_HD=__attribute__((always_inline))"
      -Wno-attributes -mfma -ffp-contract=fast -fexpensive-optimizations)  # with -O1 the last one enables contraction
  endif()
  set(options_runtime -O2 ${binade_host_frames} ${debug})
  foreach(part ${parts})
    target_compile_options(${name}_${part} PRIVATE ${options_${part}})
    if(part STREQUAL "kernels")
      binade_host_kernels(${name}_${part})
    endif()
    binade_precompile(${name}_${part})
  endforeach()
endfunction()
