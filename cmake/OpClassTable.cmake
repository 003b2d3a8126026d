# library_ops() of core/precision/op_class.cpp: made anew whenever an op's source changes.
binade_glob(op_sources RECURSE ${PROJECT_SOURCE_DIR}/core/ops/*.cpp ${PROJECT_SOURCE_DIR}/core/linalg/*.cpp)
list(APPEND op_sources ${PROJECT_SOURCE_DIR}/core/precision/precision.cpp ${PROJECT_SOURCE_DIR}/core/autograd/recompute.cpp)
set(op_classes ${CMAKE_CURRENT_BINARY_DIR}/generated/op_class_table.cpp)
add_custom_command(OUTPUT ${op_classes}
  COMMAND ${CMAKE_COMMAND} "-DSOURCES=${op_sources}" -DOUTPUT=${op_classes}
    -P ${PROJECT_SOURCE_DIR}/cmake/OpClasses.cmake
  DEPENDS ${op_sources} ${PROJECT_SOURCE_DIR}/cmake/OpClasses.cmake VERBATIM)
target_sources(binade_core PRIVATE ${op_classes})
