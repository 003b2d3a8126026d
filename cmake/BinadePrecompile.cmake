# binade_precompile(TARGET [HEADER...]): precompiles the standard headers, which are half of the
# compile time of most sources, and the given headers (<gtest/gtest.h>). Sources must still include
# what they use: clang's front end (.ci/run) and the lint of headers compile them without this. It
# does not work together with ccache, which cannot tell apart two precompiled headers of the same
# content.
set(precompile ON)
if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache" OR CMAKE_EXPORT_COMPILE_COMMANDS)
  set(precompile OFF)  # tools that read the compile commands cannot read g++'s precompiled headers
endif()
option(BINADE_PRECOMPILE "Precompile standard headers (default: unless ccache is the launcher)" ${precompile})

# Targets share the precompiled header of the first target with the same flags. g++ requires the
# same macros; a target may define more, and may differ in include folders, warnings and aliasing
# rules.
function(binade_precompile target)
  if(NOT BINADE_PRECOMPILE)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ forgets that a precompiled header was a system header, and warns in it (its bug 105651).
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  set(own ${ARGN})
  get_target_property(options ${target} COMPILE_OPTIONS)
  list(FILTER options EXCLUDE REGEX "^-([DIW]|fno-strict-aliasing)")
  get_target_property(libraries ${target} LINK_LIBRARIES)
  list(FILTER libraries INCLUDE REGEX "flags")
  get_target_property(type ${target} TYPE)
  string(SHA1 key "${own} ${options} ${libraries} ${type}")
  get_property(first GLOBAL PROPERTY binade_precompiled_${key})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  set_property(GLOBAL PROPERTY binade_precompiled_${key} ${target})
  set(headers)
  foreach(name algorithm array atomic cmath cstdint cstdio cstdlib cstring functional limits map memory
          mutex optional span string string_view type_traits utility vector)
    list(APPEND headers <${name}>)
  endforeach()
  list(APPEND headers ${own})
  list(TRANSFORM headers REPLACE "<(.+)>" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()
