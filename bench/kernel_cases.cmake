# binade_kernel_cases: every kernel on raw memory, and binade_kernel_timing: what times, checks and compares
# them. For the programs of bench/ and for binade bench.
include_guard(GLOBAL)
find_package(nlohmann_json REQUIRED)
set(folder ${CMAKE_CURRENT_LIST_DIR})
binade_glob(cases ${folder}/*_cases.cpp)
add_library(binade_kernel_cases STATIC ${cases})
target_include_directories(binade_kernel_cases PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(binade_kernel_cases PUBLIC binade::kernels PRIVATE binade_flags)
binade_unity(binade_kernel_cases)

# The commit is looked up at each build, and the header changes only with it. It is there before the first
# build, too, for tools that read sources without one.
set(commit_header ${PROJECT_BINARY_DIR}/bench_commit/bench_commit.h)
set(write_commit ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DHEADER=${commit_header} -P ${folder}/commit.cmake)
execute_process(COMMAND ${write_commit} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(binade_bench_commit BYPRODUCTS ${commit_header} COMMAND ${write_commit})
add_library(binade_kernel_timing STATIC)
foreach(name bench_diff bench_record bench_record_file bench_run case_check flop_ceiling kernel_serve kernel_timer machine_facts
    roofline served_build statistics)
  target_sources(binade_kernel_timing PRIVATE ${folder}/${name}.cpp)
endforeach()
# In every build type: without it the sums would be in memory.
set_source_files_properties(${folder}/flop_ceiling.cpp PROPERTIES COMPILE_OPTIONS -O3)
add_dependencies(binade_kernel_timing binade_bench_commit)
target_include_directories(binade_kernel_timing PRIVATE ${PROJECT_BINARY_DIR}/bench_commit)
target_compile_definitions(binade_kernel_timing PRIVATE BINADE_BENCH_BUILD="$<CONFIG>"
  BINADE_BENCH_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
target_link_libraries(binade_kernel_timing PUBLIC binade_kernel_cases binade::core
  PRIVATE binade_flags nlohmann_json::nlohmann_json)
binade_unity(binade_kernel_timing)
