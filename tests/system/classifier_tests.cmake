# Tests that run train_classifier as its users do. Slow ones run with scripts/test --all only.
function(binade_classifier_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;SCRIPT" "ARGS;LABELS" ${ARGN})
  string(REPLACE "-" "_" stem ${name})
  if(NOT arg_SCRIPT)
    set(arg_SCRIPT ${stem}_test.py)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)  # a minute, but much longer under a sanitizer
  endif()
  binade_script_test(${stem} LABELS ${name} ${arg_LABELS}
    COMMAND ${python} ${arg_SCRIPT} $<TARGET_FILE:train_classifier> ${arg_ARGS})
  set_tests_properties(system_${stem} PROPERTIES TIMEOUT ${arg_TIMEOUT} COST 10)
endfunction()

# Loads a model and writes its inputs and outputs.
add_executable(export_logits export_logits.cpp)
target_link_libraries(export_logits PRIVATE binade::train binade_flags)

binade_classifier_test(resume-kill)
binade_classifier_test(determinism)
binade_classifier_test(flags-matrix)
binade_classifier_test(bad-input ARGS $<TARGET_FILE:export_logits> $<TARGET_FILE:binade_tool>)
binade_classifier_test(safetensors-python ARGS $<TARGET_FILE:export_logits>)

# Two minutes without faults, then the same with one every four seconds.
binade_classifier_test(soak-faults ARGS 2 4 LABELS slow TIMEOUT 1800)

# Data set, settings and least accuracy are in the table of accuracy_test.py.
foreach(name glyphs-cnn mnist-accuracy fashion-accuracy cifar-resnet18)
  binade_classifier_test(${name} SCRIPT accuracy_test.py ARGS ${name} LABELS slow TIMEOUT 3600)
endforeach()
