# rlx_run_library(): rlx::run, what programs written by `rlx build` are linked with (docs/design/020): the rooms up to the CPU's kernels
# with slim records of the operators (rlx/run/records.cpp) instead of those of rlx/ops/all.cpp, which bring the reference rules.
#
# Functions of these rooms stand in sections of their own, so that a linker told --gc-sections leaves out what a program does not reach.
# Options of sources, not of targets: precompiled headers stay those of other rooms.
set(RLX_RUN_ROOMS base math quant ir ops region passes backend_cpu backend backend_cpu_nodes)  # lowest first

function(rlx_run_sections)
  foreach(room ${RLX_RUN_ROOMS})
    get_target_property(sources rlx_${room} SOURCES)
    list(FILTER sources EXCLUDE REGEX "^\\$<")
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -ffunction-sections -fdata-sections)
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL rlx_run_sections)  # behind rlx_batch_all

function(rlx_run_library)
  add_library(rlx_run STATIC ${PROJECT_SOURCE_DIR}/rlx/run/records.cpp)
  add_library(rlx::run ALIAS rlx_run)
  set_target_properties(rlx_run PROPERTIES EXPORT_NAME run POSITION_INDEPENDENT_CODE ON)
  target_compile_features(rlx_run PUBLIC cxx_std_20)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/rlx/run/records.cpp APPEND PROPERTY COMPILE_OPTIONS -ffunction-sections -fdata-sections)
  target_link_libraries(rlx_run PUBLIC rlx_backend_cpu_nodes PRIVATE $<BUILD_INTERFACE:rlx_flags>)
  target_link_options(rlx_run INTERFACE -Wl,--gc-sections)
  # One program has one kind of records; linking both kinds is an error of CMake that names this property.
  set_target_properties(rlx_run PROPERTIES INTERFACE_RLX_RECORDS slim)
  set_property(TARGET rlx_run APPEND PROPERTY COMPATIBLE_INTERFACE_STRING RLX_RECORDS)
  foreach(room transform lang)
    set_target_properties(rlx_${room} PROPERTIES INTERFACE_RLX_RECORDS whole)
    set_property(TARGET rlx_${room} APPEND PROPERTY COMPATIBLE_INTERFACE_STRING RLX_RECORDS)
  endforeach()
  install(TARGETS rlx_run EXPORT rlxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
