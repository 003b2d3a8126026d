# Install and export: find_package(Binade) gives binade::kernels ... binade::train and binade::binade.
include(CMakePackageConfigHelpers)

add_library(binade INTERFACE)
add_library(binade::binade ALIAS binade)
target_link_libraries(binade INTERFACE binade_train binade_dist)

set(layers binade_kernels binade_core binade_nn binade_optim binade_data binade_dist binade_train)
install(TARGETS ${layers} binade EXPORT BinadeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder kernels core nn optim data dist train)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/binade
    FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE PATTERN "kernels/host" EXCLUDE)
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
