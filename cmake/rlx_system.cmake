# What the machine must have: a compiler and libraries, each missing one told with the package that brings it.

# Whether the compiler knows enough of C++20, in one line instead of a page of its errors.
function(rlx_check_compiler)
  set(least_GNU 12)
  set(least_Clang 16)
  set(least ${least_${CMAKE_CXX_COMPILER_ID}})
  if(least AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS least)
    message(FATAL_ERROR "rlx: ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; "
            "g++ 12 or clang 16 is the oldest that builds rlx")
  endif()
endfunction()

# rlx_need_package(NAME DEBIAN): find_package, or an error that names the Debian package.
macro(rlx_need_package name debian)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "rlx: ${name} is not installed; on Debian and Ubuntu: apt-get install ${debian}")
  endif()
endmacro()

# rlx_need_header(NAME HEADER DEBIAN): a library of headers that brings no CMake package.
function(rlx_need_header name header debian)
  find_path(RLX_HEADER_${name} ${header})
  mark_as_advanced(RLX_HEADER_${name})
  if(NOT RLX_HEADER_${name})
    message(FATAL_ERROR "rlx: ${name} (${header}) is not installed; on Debian and Ubuntu: apt-get install ${debian}")
  endif()
endfunction()

# rlx_need_library(NAME HEADER DEBIAN): a library that brings no CMake package, with its header.
function(rlx_need_library name header debian)
  rlx_need_header(${name} ${header} ${debian})
  find_library(RLX_LIBRARY_${name} ${name})
  mark_as_advanced(RLX_LIBRARY_${name})
  if(NOT RLX_LIBRARY_${name})
    message(FATAL_ERROR "rlx: ${name} (lib${name}.so) is not installed; on Debian and Ubuntu: apt-get install ${debian}")
  endif()
endfunction()
