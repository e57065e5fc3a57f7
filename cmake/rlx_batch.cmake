# rlx_batch(TARGET): several small sources of the target compiled as one unit, as cmake/batches.py groups them. A precompiled
# header and what it instantiates cost a small source three times its own text. Off in the release preset and for users:
# there every source stands alone. Without Python nothing is put together.
if(RLX_BATCH)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/batches.py)
endif()

function(rlx_batch target)
  if(NOT RLX_BATCH OR NOT Python3_FOUND)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(objects ${sources})
  list(FILTER objects INCLUDE REGEX "^\\$<")  # of instruction-set levels
  list(FILTER sources EXCLUDE REGEX "^\\$<")
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/batches.py
                          ${CMAKE_CURRENT_BINARY_DIR}/units/${target} ${sources}
                  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE units COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "\n" ";" units "${units}")
  set_target_properties(${target} PROPERTIES SOURCES "${units};${objects}")
  # g++ takes the sources of a unit for headers, where a member of a type without linkage would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
