# binade_precompile(TARGET [HEADER...]): the target's sources find the standard headers already parsed,
# which is half of what most of them cost, and the given ones (<gtest/gtest.h>). Sources still include what they use: clang's front end (.ci/run) and the
# lint of headers compile them without this. Not together with ccache, which cannot tell one
# precompiled header from another of the same content.
set(precompile ON)
if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache" OR CMAKE_EXPORT_COMPILE_COMMANDS)
  set(precompile OFF)  # tools that read the compile commands know other precompiled headers
endif()
option(BINADE_PRECOMPILE "Precompile standard headers (default: unless ccache is the launcher)" ${precompile})

# Targets share what the first with the same flags has precompiled. g++ asks that all macros of that one
# are those of the others; they may have more, and other folders, warnings and rules of aliasing.
function(binade_precompile target)
  if(NOT BINADE_PRECOMPILE)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ forgets that a precompiled header was the system's, and tells of its bug 105651 there.
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
