# What a hard look found (../shared/findings): each file is tried from outside, and skipped where the folder is not.
if(NOT Python3_FOUND)
  return()
endif()
set(findings ${PROJECT_SOURCE_DIR}/../shared/findings)
if(RLX_APPS)
  add_test(NAME findings/core COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/core.py
           $<TARGET_FILE:rlx_command> ${findings}/core)
  add_test(NAME findings/text COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/text.py
           $<TARGET_FILE:rlx_command> ${findings}/text ${PROJECT_SOURCE_DIR})
  set_tests_properties(findings/core findings/text PROPERTIES SKIP_REGULAR_EXPRESSION "no folder")
endif()

# Programs that a newcomer wrote, as they are; one program calls them by name.
if(NOT EXISTS ${findings}/newcomer)
  message(STATUS "no ../shared/findings: programs of a newcomer are not tried")
  return()
endif()
set(script ${CMAKE_CURRENT_LIST_DIR}/newcomer.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
execute_process(COMMAND ${Python3_EXECUTABLE} ${script} write ${findings}/newcomer ${CMAKE_CURRENT_BINARY_DIR}/newcomer_programs
                OUTPUT_VARIABLE sources COMMAND_ERROR_IS_FATAL ANY)
add_executable(newcomer ${sources})
target_link_libraries(newcomer PRIVATE rlx::rlx rlx_program_flags ZLIB::ZLIB GTest::gtest)
rlx_batch(newcomer)
rlx_precompile_as(newcomer rlx_program_test_headers)
add_test(NAME findings/newcomer COMMAND ${Python3_EXECUTABLE} ${script} run ${findings}/newcomer $<TARGET_FILE:newcomer>
         ${PROJECT_SOURCE_DIR}/../shared/data)
set_tests_properties(findings/newcomer PROPERTIES SKIP_REGULAR_EXPRESSION "no folder")
