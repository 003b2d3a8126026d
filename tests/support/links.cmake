# cmake -DPROGRAM=FILE -DLINKS=NAMES -P links.cmake: makes hard links to a program under other names, beside it.
foreach(name ${LINKS})
  file(CREATE_LINK ${PROGRAM} ${name})
endforeach()
