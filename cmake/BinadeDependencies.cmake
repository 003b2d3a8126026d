# The packages of the distribution that the layers need. Nothing is downloaded.
find_package(Threads REQUIRED)
target_link_libraries(binade_kernels PUBLIC Threads::Threads PRIVATE ${CMAKE_DL_LIBS})  # loads libraries at run time

# g++ copies the 16-byte tensor handle with one vector load right after two stores: a stall in every
# op.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(binade_core PRIVATE -fno-tree-slp-vectorize)
endif()

find_package(ZLIB REQUIRED)
find_package(JPEG)
find_path(BINADE_STB_INCLUDE stb/stb_image.h REQUIRED)
target_link_libraries(binade_data PRIVATE ZLIB::ZLIB)
target_include_directories(binade_data SYSTEM PRIVATE ${BINADE_STB_INCLUDE})
if(JPEG_FOUND)
  target_link_libraries(binade_data PRIVATE JPEG::JPEG)
  target_compile_definitions(binade_data PRIVATE BINADE_WITH_JPEG)
endif()

# WebP is optional: `binade doctor` says whether it is in.
set(BINADE_HAS_WEBP FALSE)
find_path(BINADE_WEBP_INCLUDE webp/decode.h)
find_library(BINADE_WEBP_LIBRARY webp)
mark_as_advanced(BINADE_WEBP_INCLUDE BINADE_WEBP_LIBRARY)
if(BINADE_WEBP_INCLUDE AND BINADE_WEBP_LIBRARY)
  set(BINADE_HAS_WEBP TRUE)
  target_include_directories(binade_data SYSTEM PRIVATE ${BINADE_WEBP_INCLUDE})
  target_link_libraries(binade_data PRIVATE webp)
  target_compile_definitions(binade_data PRIVATE BINADE_WITH_WEBP)
endif()

find_package(nlohmann_json REQUIRED)
target_link_libraries(binade_core PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
target_link_libraries(binade_train PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
find_package(CLI11 REQUIRED)  # the flags of programs: train/flags.cpp
target_link_libraries(binade_train PRIVATE $<BUILD_INTERFACE:CLI11::CLI11>)

# Eigen: the factorisations of core/linalg, and one of the providers of gemm. Only the sources
# eigen_*.cpp include it: its templates take seconds each to compile.
set(BINADE_HAS_EIGEN FALSE)
if(NOT BINADE_EIGEN STREQUAL "OFF")
  find_package(Eigen3 3.3 QUIET NO_MODULE)
  set(BINADE_HAS_EIGEN ${Eigen3_FOUND})
endif()
if(BINADE_EIGEN STREQUAL "ON" AND NOT BINADE_HAS_EIGEN)
  message(FATAL_ERROR "BINADE_EIGEN=ON, but no Eigen was found: install libeigen3-dev, or use AUTO or OFF")
endif()
if(BINADE_HAS_EIGEN)
  get_target_property(eigen_include Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  binade_glob(eigen_sources ${PROJECT_SOURCE_DIR}/core/linalg/eigen_*.cpp ${PROJECT_SOURCE_DIR}/kernels/gemm/eigen_*.cpp)
  set_source_files_properties(${eigen_sources} PROPERTIES
    COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>;-isystem;${eigen_include}")
  set_source_files_properties(${eigen_sources} core/linalg/no_eigen.cpp kernels/base/provider.cpp PROPERTIES
    COMPILE_DEFINITIONS BINADE_WITH_EIGEN)
endif()

# MPI, one of the transports between processes. Programs without a World do not load its library.
# FindMPI stops with an error at a wrapper without headers, which Debian's openmpi-bin alone
# installs.
set(BINADE_HAS_MPI FALSE)
set(mpi_compiles 0)
find_program(BINADE_MPICXX mpicxx)
mark_as_advanced(BINADE_MPICXX)
if(BINADE_MPICXX AND NOT BINADE_MPI STREQUAL "OFF")
  execute_process(COMMAND ${BINADE_MPICXX} -E -include mpi.h -x c++ /dev/null
                  RESULT_VARIABLE mpi_compiles OUTPUT_QUIET ERROR_QUIET)
endif()
if(NOT BINADE_MPI STREQUAL "OFF" AND mpi_compiles EQUAL 0)
  find_package(MPI QUIET COMPONENTS CXX)
  set(BINADE_HAS_MPI ${MPI_CXX_FOUND})
endif()
if(BINADE_MPI STREQUAL "ON" AND NOT BINADE_HAS_MPI)
  message(FATAL_ERROR "BINADE_MPI=ON, but no MPI was found: install libopenmpi-dev, or use AUTO or OFF")
endif()
if(BINADE_HAS_MPI)
  target_link_libraries(binade_dist PRIVATE -Wl,--push-state,--as-needed MPI::MPI_CXX -Wl,--pop-state)
  target_compile_definitions(binade_dist PRIVATE BINADE_WITH_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endif()
