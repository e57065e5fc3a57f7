# rlx_room(NAME [DEPS room...] [LIBS target...] [WITHOUT folder]): one static library per room from every source
# below rlx/NAME, except below a folder that is a room of its own. Sources are globbed: a new file needs no line here.
#
# rlx_umbrella(): the INTERFACE target rlx::rlx that users link, librlx.so where it is asked for, and the install rules.
# rlx_test(NAME [DEPS room...] [HEADERS kind]): one test program from tests/NAME/**/*_test.cpp, with the precompiled
# headers of that kind. rlx_test_headers(KIND header...) makes them, with GoogleTest's.

set(RLX_ROOMS "" CACHE INTERNAL "")
set(RLX_SYSTEM_LIBRARIES "" CACHE INTERNAL "")  # that any room links

# rlx_links(LIBRARY...): notes them for the shared library and for pkg-config.
function(rlx_links)
  set(all ${RLX_SYSTEM_LIBRARIES} ${ARGN})
  list(REMOVE_DUPLICATES all)
  set(RLX_SYSTEM_LIBRARIES ${all} CACHE INTERNAL "")
endfunction()

add_library(rlx_flags INTERFACE)
target_compile_options(rlx_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       # False alarms of g++ 12, on std::string and on lists of vectors at -O3.
                       "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-use-after-free;-Wno-free-nonheap-object>"
                       # The same on lists of samples, which hold vectors.
                       "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-maybe-uninitialized>"
                       # False alarms of g++ 13 and later, on references into a span and on vectors of one element.
                       "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference;-Wno-array-bounds>")
if(RLX_BATCH)
  # g++ collects garbage from 128 MB on; a unit needs some 500, and a tenth of its time went into looking for it.
  target_compile_options(rlx_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
endif()
if(RLX_WERROR)
  target_compile_options(rlx_flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:RLX_PROGRAM>>>:-Werror>)
endif()
# With precompiled headers g++ 12 sees moves of short strings run out of bounds.
set(RLX_STRING_WARNINGS -Wno-array-bounds $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
                        $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
# Tests, commands and examples call the library; little of the time is theirs. At their level of optimisation
# g++ 12 warns of more that is not so; such warnings are shown and stop nothing.
add_library(rlx_program_flags INTERFACE)
target_link_libraries(rlx_program_flags INTERFACE rlx_flags)
target_compile_options(rlx_program_flags INTERFACE ${RLX_PROGRAM_OPTIONS} ${RLX_STRING_WARNINGS})
set_target_properties(rlx_program_flags PROPERTIES COMPATIBLE_INTERFACE_BOOL RLX_PROGRAM INTERFACE_RLX_PROGRAM ON)
if(RLX_SANITIZE)
  target_compile_options(rlx_flags INTERFACE -fsanitize=${RLX_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(rlx_flags INTERFACE -fsanitize=${RLX_SANITIZE})
  if(RLX_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The frames that g++ 13 keeps to find uses after return hold vectors of 64 bytes at multiples of 32, and moves trap.
    target_compile_options(rlx_flags INTERFACE --param=asan-use-after-return=0)
  endif()
endif()

# rlx_precompile(TARGET HEADER...): headers that nearly every source of the target parses, parsed once. Off in the
# release preset, where a source must name all it uses. rlx_precompile_as(TARGET OTHER): those of OTHER, parsed there; both
# have the same flags.
function(rlx_precompile target)
  if(RLX_PCH AND TARGET ${target})
    list(TRANSFORM ARGN REPLACE "^([^<].*)$" "\"\\1\"")  # as is, not relative to this folder
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

function(rlx_precompile_as target other)
  if(RLX_PCH AND TARGET ${target} AND TARGET ${other})
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

function(rlx_room name)
  cmake_parse_arguments(ARG "" "WITHOUT" "DEPS;LIBS;PRIVATE_LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rlx/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/isa/")  # compiled once per instruction set, see rlx_isa.cmake
  rlx_select(sources)
  if(ARG_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/backend/${ARG_WITHOUT}/")
  endif()
  string(REPLACE "/" "_" target ${name})
  if(NOT sources)
    return()
  endif()
  add_library(rlx_${target} STATIC ${sources})
  add_library(rlx::${target} ALIAS rlx_${target})
  set_target_properties(rlx_${target} PROPERTIES EXPORT_NAME ${target} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(rlx_${target} PUBLIC cxx_std_20)
  target_include_directories(rlx_${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(dep ${ARG_DEPS})
    if(TARGET rlx_${dep})
      target_link_libraries(rlx_${target} PUBLIC rlx_${dep})
    endif()
  endforeach()
  target_link_libraries(rlx_${target} PUBLIC ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS}
                        $<BUILD_INTERFACE:rlx_flags>)
  rlx_batch(rlx_${target})
  set(RLX_ROOMS ${RLX_ROOMS} rlx_${target} CACHE INTERNAL "")
  rlx_links(${ARG_LIBS} ${ARG_PRIVATE_LIBS})
endfunction()

# One shared library from the objects of all rooms, so that nothing is compiled twice.
function(rlx_shared_library)
  add_library(rlx_shared SHARED)
  add_library(rlx::shared ALIAS rlx_shared)
  set_target_properties(rlx_shared PROPERTIES OUTPUT_NAME rlx EXPORT_NAME shared VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINKER_LANGUAGE CXX)
  target_compile_features(rlx_shared INTERFACE cxx_std_20)
  target_include_directories(rlx_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(room ${RLX_ROOMS})
    target_sources(rlx_shared PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  foreach(level ${RLX_ISA_LEVELS})
    target_sources(rlx_shared PRIVATE $<TARGET_OBJECTS:rlx_isa_${level}>)
  endforeach()
  target_link_libraries(rlx_shared PRIVATE ${RLX_SYSTEM_LIBRARIES})
  install(TARGETS rlx_shared EXPORT rlxTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# For builds without CMake: pkg-config --cflags --libs rlx. It gives the shared library where there is one; rlx-static always
# gives the rooms.
function(rlx_pkg_config)
  set(RLX_PC_SYSTEM "")
  foreach(library ${RLX_SYSTEM_LIBRARIES})
    if(library STREQUAL "Threads::Threads")
      string(APPEND RLX_PC_SYSTEM " -pthread")
    elseif(library STREQUAL "ZLIB::ZLIB")
      string(APPEND RLX_PC_SYSTEM " -lz")
    else()
      string(REGEX REPLACE "^.*::" "" library ${library})
      string(APPEND RLX_PC_SYSTEM " -l${library}")
    endif()
  endforeach()
  file(RELATIVE_PATH RLX_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # the prefix is wherever the file is
  string(REGEX REPLACE "/$" "" RLX_PC_UP "${RLX_PC_UP}")
  set(rooms ${RLX_ROOMS})
  list(REVERSE rooms)  # a room before those it uses
  list(TRANSFORM rooms PREPEND " -l")
  string(CONCAT RLX_PC_LIBS ${rooms} ${RLX_PC_SYSTEM})
  set(RLX_PC_PRIVATE "")
  set(RLX_PC_NAME rlx-static)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/rlx.pc.in ${PROJECT_BINARY_DIR}/rlx-static.pc @ONLY)
  if(RLX_SHARED)
    set(RLX_PC_LIBS " -lrlx")
    set(RLX_PC_PRIVATE "${RLX_PC_SYSTEM}")
  endif()
  set(RLX_PC_NAME rlx)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/rlx.pc.in ${PROJECT_BINARY_DIR}/rlx.pc @ONLY)
  # For programs that `rlx build` wrote.
  set(RLX_PC_NAME rlx-run)
  set(rooms ${RLX_RUN_ROOMS})
  list(REVERSE rooms)
  list(TRANSFORM rooms PREPEND " -lrlx_")
  string(CONCAT RLX_PC_LIBS " -Wl,--gc-sections -lrlx_run" ${rooms} " -pthread")
  if("lapacke" IN_LIST RLX_SYSTEM_LIBRARIES)
    string(APPEND RLX_PC_LIBS " -llapacke -llapack")
  endif()
  set(RLX_PC_PRIVATE "")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/rlx.pc.in ${PROJECT_BINARY_DIR}/rlx-run.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/rlx.pc ${PROJECT_BINARY_DIR}/rlx-static.pc ${PROJECT_BINARY_DIR}/rlx-run.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

function(rlx_umbrella)
  add_library(rlx INTERFACE)
  add_library(rlx::rlx ALIAS rlx)
  target_link_libraries(rlx INTERFACE ${RLX_ROOMS})

  include(CMakePackageConfigHelpers)
  install(TARGETS rlx ${RLX_ROOMS} EXPORT rlxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(RLX_SHARED)
    rlx_shared_library()
  endif()
  rlx_pkg_config()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/rlx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
  install(EXPORT rlxTargets NAMESPACE rlx:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rlxConfig.cmake.in
    ${PROJECT_BINARY_DIR}/rlxConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/rlxConfig.cmake ${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
endfunction()

function(rlx_test_headers kind)
  if(RLX_PCH)
    set(empty ${PROJECT_BINARY_DIR}/rlx_${kind}_test_headers.cpp)
    file(CONFIGURE OUTPUT ${empty} CONTENT "")
    add_library(rlx_${kind}_test_headers OBJECT ${empty})
    target_link_libraries(rlx_${kind}_test_headers PRIVATE rlx_test_support rlx_program_flags GTest::gtest)
    rlx_precompile(rlx_${kind}_test_headers <gtest/gtest.h> ${ARGN})
  endif()
endfunction()

function(rlx_test name)
  cmake_parse_arguments(ARG "" "HEADERS" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*_test.cpp)
  string(REPLACE "/" "_" target ${name})
  if(NOT sources)
    return()
  endif()
  add_executable(test_${target} ${sources})
  rlx_batch(test_${target})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(test_${target} PRIVATE rlx_${dep})
  endforeach()
  target_link_libraries(test_${target} PRIVATE ${ARG_LIBS} rlx_test_support rlx_program_flags GTest::gtest_main)
  if(ARG_HEADERS)
    rlx_precompile_as(test_${target} rlx_${ARG_HEADERS}_test_headers)
  endif()
  add_test(NAME ${name} COMMAND test_${target} --gtest_brief=1 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()
