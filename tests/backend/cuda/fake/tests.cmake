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

# Compilers that hide the one of this machine, whose folder the loader may know: one that is no library, one without most functions.
foreach(name libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2)
  file(WRITE ${fake}/broken_toolkit/${name} "no library")
endforeach()
add_library(fake_nvrtc_old SHARED ${CMAKE_CURRENT_LIST_DIR}/compiler.cpp)
set_target_properties(fake_nvrtc_old PROPERTIES OUTPUT_NAME nvrtc SUFFIX .so.13 LIBRARY_OUTPUT_DIRECTORY ${fake}/old_toolkit)
add_dependencies(cuda_without_gpu fake_nvrtc_old)

# A machine with a driver of its own would open that one.
find_library(driver_here NAMES libcuda.so.1)
function(cuda_says name path environment expected)
  add_test(NAME backend/cuda/says/${name} COMMAND cuda_without_gpu ${ARGN})
  set_tests_properties(backend/cuda/says/${name} PROPERTIES ENVIRONMENT "RLX_CUDA_PATH=${path};${environment}"
                       PASS_REGULAR_EXPRESSION "${expected}" SKIP_REGULAR_EXPRESSION "no CUDA compiler: libnvrtc.so.13: cannot open")
  if(driver_here)
    set_tests_properties(backend/cuda/says/${name} PROPERTIES DISABLED ON)
  endif()
endfunction()
set(toolkit /usr/local/cuda/lib64)

cuda_says(no_driver /nowhere "" "environment: cuda: no CUDA device: no NVIDIA driver: libcuda.so.1: cannot open")
cuda_says(no_toolkit ${fake}/whole "" "environment: cuda: no CUDA device: a card of paper is there, but no CUDA compiler: libnvrtc")
set_tests_properties(backend/cuda/says/no_toolkit PROPERTIES SKIP_REGULAR_EXPRESSION "there is a device")
cuda_says(broken_toolkit ${fake}/whole "LD_LIBRARY_PATH=${fake}/broken_toolkit"
          "environment: cuda: no CUDA device: a card of paper is there, but no CUDA compiler: .*libnvrtc.so.13: (file too short|invalid ELF header)")
cuda_says(old_toolkit ${fake}/whole "LD_LIBRARY_PATH=${fake}/old_toolkit"
          "a card of paper is there, but the CUDA compiler is too old: libnvrtc has no nvrtcCompileProgram")
cuda_says(old_driver ${fake}/old "" "the NVIDIA driver is too old: libcuda.so.1 has no cuEventCreate; CUDA 12 or newer is needed")
cuda_says(driver_fails ${fake}/whole:${toolkit} "FAKE_INIT=100" "the NVIDIA driver does not start: what the driver says .100")
cuda_says(no_card ${fake}/whole:${toolkit} "FAKE_DEVICES=0" "cuda: no CUDA device: the driver knows none")
cuda_says(old_card ${fake}/whole:${toolkit} "FAKE_CAPABILITY=75"
          "a card of paper has compute capability 7.5; 8.0 or newer is needed")
cuda_says(little_memory ${fake}/whole:${toolkit} "FAKE_MEMORY=65536"
          "environment: cuda: no memory for 400000 bytes; [0-9]+ of 65536 are free on a card of paper" 100000)
cuda_says(all_well ${fake}/whole:${toolkit} "FAKE_MEMORY=10000000" "it ran" 100000)
