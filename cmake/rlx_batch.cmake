# rlx_batch(TARGET): several small sources of the target compiled as one unit, as cmake/batches.py groups them, of up to
# RLX_BATCH lines (ON: 1600). A precompiled header and what it instantiates cost a small source three times its own text.
# Off in the release preset and for users: there every source stands alone. Without Python nothing is put together.
if(RLX_BATCH)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/batches.py)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL rlx_batch_all)  # one call of Python for all targets
endif()

function(rlx_batch target)
  set_property(GLOBAL APPEND PROPERTY RLX_BATCHED ${target})
endfunction()

function(rlx_batch_all)
  get_property(targets GLOBAL PROPERTY RLX_BATCHED)
  if(NOT Python3_FOUND OR NOT targets)
    return()
  endif()
  set(arguments 1600)
  if(RLX_BATCH MATCHES "^[0-9]+$")
    set(arguments ${RLX_BATCH})
  endif()
  foreach(target ${targets})
    get_target_property(sources ${target} SOURCES)
    get_target_property(source_dir ${target} SOURCE_DIR)
    get_target_property(binary_dir ${target} BINARY_DIR)
    set(objects_${target} ${sources})
    list(FILTER objects_${target} INCLUDE REGEX "^\\$<")  # of instruction-set levels
    list(FILTER sources EXCLUDE REGEX "^\\$<")
    set(absolute)
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${source_dir})
      list(APPEND absolute ${source})
    endforeach()
    set(folder_${target} ${binary_dir}/units/${target})
    list(APPEND arguments -- ${folder_${target}} ${absolute})
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/batches.py ${arguments}
                  COMMAND_ERROR_IS_FATAL ANY)
  foreach(target ${targets})
    file(STRINGS ${folder_${target}}/sources.txt units)
    set_target_properties(${target} PROPERTIES SOURCES "${units};${objects_${target}}")
    # g++ takes the sources of a unit for headers, where a member of a type without linkage would be a mistake.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endforeach()
endfunction()
