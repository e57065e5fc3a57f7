# rlx_texts(TARGET FILE...): sources of rooms as texts, without their directives, in a generated source of the target that defines
# rlx::cuda::room_source (rlx/backend/cuda/kernels/room_sources.h). A change of one of them configures again.
function(rlx_texts target)
  set(text "#include \"rlx/backend/cuda/kernels/room_sources.h\"\n\n#include \"rlx/base/error.h\"\n\nnamespace rlx::cuda {\n\n")
  string(APPEND text "std::string_view room_source(std::string_view path) {\n")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    file(READ ${PROJECT_SOURCE_DIR}/${file} content)
    string(REGEX REPLACE "#(include|pragma)[^\n]*" "" content "${content}")
    string(APPEND text "  if (path == \"${file}\") {\n    return R\"text(${content})text\";\n  }\n")
  endforeach()
  string(APPEND text "  RLX_CHECK(false, path, \" is no text of kernels; cmake/rlx_texts.cmake is given the list\");\n}\n\n}  // namespace rlx::cuda\n")
  set(out ${PROJECT_BINARY_DIR}/texts/${target}.cpp)
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)  # written where it differs
  target_sources(${target} PRIVATE ${out})
endfunction()
