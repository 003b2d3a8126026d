# Selections of files and tests that cannot silently select nothing.

# binade_glob(VARIABLE [RECURSE] PATTERN...): the files that match, in the caller's folder where a pattern is
# relative, and below it with RECURSE. A pattern that no file matches is an error.
function(binade_glob variable)
  cmake_parse_arguments(arg "RECURSE" "" "" ${ARGN})
  set(mode GLOB)
  if(arg_RECURSE)
    set(mode GLOB_RECURSE)
  endif()
  set(found)
  foreach(pattern ${arg_UNPARSED_ARGUMENTS})
    file(${mode} files CONFIGURE_DEPENDS ${pattern})
    if(NOT files)
      message(FATAL_ERROR "${CMAKE_CURRENT_LIST_DIR}: no file matches ${pattern}")
    endif()
    list(APPEND found ${files})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# binade_exclude(VARIABLE WHAT SUFFIX NAME...): removes the file NAME + SUFFIX from the list, for each NAME.
# A name that is not in the list is an error.
function(binade_exclude variable what suffix)
  set(files ${${variable}})
  foreach(name ${ARGN})
    set(match ${files})
    list(FILTER match INCLUDE REGEX "/${name}${suffix}$")
    if(NOT match)
      message(FATAL_ERROR "${what}: there is no ${name}${suffix}")
    endif()
    list(REMOVE_ITEM files ${match})
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
