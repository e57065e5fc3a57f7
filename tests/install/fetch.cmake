# A program that brings the source of rlx along.
cmake_minimum_required(VERSION 3.22)
project(fetcher LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(rlx SOURCE_DIR ${RLX_SOURCE})
FetchContent_MakeAvailable(rlx)
add_executable(main main.cpp)
target_link_libraries(main PRIVATE rlx::base)
