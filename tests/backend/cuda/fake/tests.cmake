# What is said on machines that lack something, with a driver that is none. Each case is a process: a device is opened once.
add_executable(cuda_without_gpu ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_include_directories(cuda_without_gpu PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(cuda_without_gpu PRIVATE rlx_backend_cuda rlx_runtime rlx_flags)

set(fake ${CMAKE_CURRENT_BINARY_DIR}/fake_cuda)
foreach(kind whole old)
  add_library(fake_cuda_${kind} SHARED ${CMAKE_CURRENT_LIST_DIR}/driver.cpp)
  set_target_properties(fake_cuda_${kind} PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY ${fake}/${kind})
  add_dependencies(cuda_without_gpu fake_cuda_${kind})
endforeach()
target_compile_definitions(fake_cuda_old PRIVATE FAKE_OLD)

# A machine with a driver of its own would open that one.
find_library(driver_here NAMES libcuda.so.1)
function(cuda_says name path environment expected)
  add_test(NAME backend/cuda/says/${name} COMMAND cuda_without_gpu ${ARGN})
  set_tests_properties(backend/cuda/says/${name} PROPERTIES ENVIRONMENT "RLX_CUDA_PATH=${path};${environment}"
                       PASS_REGULAR_EXPRESSION "${expected}" SKIP_REGULAR_EXPRESSION "no CUDA compiler: libnvrtc")
  if(driver_here)
    set_tests_properties(backend/cuda/says/${name} PROPERTIES DISABLED ON)
  endif()
endfunction()
set(toolkit /usr/local/cuda/lib64)

cuda_says(no_driver /nowhere "" "environment: cuda: no CUDA device: no NVIDIA driver: libcuda.so.1: cannot open")
cuda_says(no_toolkit ${fake}/whole "" "environment: cuda: no CUDA device: a card of paper is there, but no CUDA compiler: libnvrtc")
set_tests_properties(backend/cuda/says/no_toolkit PROPERTIES SKIP_REGULAR_EXPRESSION "there is a device")
cuda_says(old_driver ${fake}/old "" "the NVIDIA driver is too old: libcuda.so.1 has no cuEventCreate; CUDA 12 or newer is needed")
cuda_says(driver_fails ${fake}/whole:${toolkit} "FAKE_INIT=100" "the NVIDIA driver does not start: what the driver says .100")
cuda_says(no_card ${fake}/whole:${toolkit} "FAKE_DEVICES=0" "cuda: no CUDA device: the driver knows none")
cuda_says(old_card ${fake}/whole:${toolkit} "FAKE_CAPABILITY=75"
          "a card of paper has compute capability 7.5; 8.0 or newer is needed")
cuda_says(little_memory ${fake}/whole:${toolkit} "FAKE_MEMORY=65536"
          "environment: cuda: no memory for 400000 bytes; [0-9]+ of 65536 are free on a card of paper" 100000)
cuda_says(all_well ${fake}/whole:${toolkit} "FAKE_MEMORY=10000000" "it ran" 100000)
