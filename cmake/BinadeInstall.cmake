# Install and export: find_package(Binade) gives binade::kernels ... binade::train, binade::lab and binade::binade.
include(CMakePackageConfigHelpers)

add_library(binade INTERFACE)
add_library(binade::binade ALIAS binade)
target_link_libraries(binade INTERFACE binade_train binade_dist)

# binade_archive: all layers in one archive, whatever BUILD_SHARED_LIBS says, for programs that must start where
# no library of Binade is, and for those that bring their own build of some kernels.
get_property(objects GLOBAL PROPERTY binade_objects)
add_library(binade_archive STATIC EXCLUDE_FROM_ALL ${objects})
set_target_properties(binade_archive PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(binade_archive INTERFACE cxx_std_20)
target_include_directories(binade_archive INTERFACE ${BINADE_INCLUDE_DIR})
target_link_libraries(binade_archive INTERFACE ZLIB::ZLIB $<TARGET_NAME_IF_EXISTS:JPEG::JPEG> Threads::Threads
  ${CMAKE_DL_LIBS} $<$<STREQUAL:${BINADE_CUDA_MODE},ON>:CUDA::cudart_static>)
if(BINADE_HAS_WEBP)
  target_link_libraries(binade_archive INTERFACE webp)
endif()
if(BINADE_HAS_MPI)
  target_link_libraries(binade_archive INTERFACE -Wl,--push-state,--as-needed MPI::MPI_CXX -Wl,--pop-state)
endif()

set(layers binade_kernels binade_core binade_nn binade_optim binade_data binade_dist binade_train binade_lab)
install(TARGETS ${layers} binade EXPORT BinadeTargets)
foreach(folder kernels core nn optim data dist train lab)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/binade
    FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE PATTERN "kernels/host" EXCLUDE
    PATTERN "lab/device" EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/binade.h ${BINADE_INCLUDE_DIR}/binade/build_config.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/binade)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Binade)
install(EXPORT BinadeTargets NAMESPACE binade:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BinadeConfig.cmake.in
  ${CMAKE_BINARY_DIR}/BinadeConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/BinadeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/BinadeConfig.cmake ${CMAKE_BINARY_DIR}/BinadeConfigVersion.cmake
  DESTINATION ${package_dir})
