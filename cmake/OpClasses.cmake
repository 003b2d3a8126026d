# cmake -DSOURCES=... -DOUTPUT=FILE -P OpClasses.cmake: writes the function that lists the ops of the
# sources, each with its class. An op is `constexpr Op kName{"name", OpClass::class`. An op of two classes
# or a definition of another form is an error. The ops that the lists of kernels/pointwise/pointwise.h
# define are not among them: core/precision/op_class.cpp reads the lists themselves.
set(rows "")
set(names "")
foreach(source ${SOURCES})
  file(READ ${source} content)
  string(REGEX REPLACE "//[^\n]*" "" content "${content}")
  string(REGEX MATCHALL "Op k?[A-Za-z]+{[^}]*}" definitions "${content}")
  foreach(definition ${definitions})
    if(definition MATCHES "#name, OpClass::op_class")
      continue()  # of a list
    endif()
    string(REGEX REPLACE "Op k[A-Za-z]*{|OpClass::|[\"\n ]" "" plain "${definition}")
    if(NOT plain MATCHES "^([a-z0-9_]+),([a-z_]+)[,})]")
      message(FATAL_ERROR "${source}: cannot read '${definition}', expected Op kName{\"name\", OpClass::class}")
    endif()
    set(name ${CMAKE_MATCH_1})
    set(class ${CMAKE_MATCH_2})
    if(DEFINED class_of_${name} AND NOT class_of_${name} STREQUAL class)
      message(FATAL_ERROR "${source}: the op ${name} is ${class} here and ${class_of_${name}} elsewhere")
    endif()
    set(class_of_${name} ${class})
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)
list(REMOVE_DUPLICATES names)
foreach(name ${names})
  string(APPEND rows "    {\"${name}\", OpClass::${class_of_${name}}},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/OpClasses.cmake.
#include <binade/core/precision/op_class.h>

namespace binade::detail {
std::vector<OpInfo> library_ops() {
  return {
${rows}  };
}
}  // namespace binade::detail
")
