# An emulated GPU: kernels run, compiled by g++ and with threads as fibres. A folder with the libraries that rlx/backend/cuda opens.
find_program(emulated_cxx NAMES g++)
if(NOT emulated_cxx OR RLX_SANITIZE OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(STATUS "no emulated GPU: it needs g++ and Linux on x86-64, without sanitizers")
  return()
endif()
set(emulated ${CMAKE_CURRENT_BINARY_DIR}/emulated)
function(emulated_library target name suffix)
  add_library(${target} SHARED ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -O2 -U_FORTIFY_SOURCE)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX ${suffix} LIBRARY_OUTPUT_DIRECTORY ${emulated})
endfunction()
set(here ${CMAKE_CURRENT_LIST_DIR})
emulated_library(emulated_cuda cuda .so.1 ${here}/driver.cpp ${here}/grid.cpp ${here}/fibre.cpp ${here}/memory.cpp)
target_link_libraries(emulated_cuda PRIVATE ${CMAKE_DL_LIBS})
emulated_library(emulated_nvrtc nvrtc .so.13 ${here}/compiler.cpp ${here}/module.cpp ${here}/ptx.cpp)
target_compile_definitions(emulated_nvrtc PRIVATE EMULATED_CXX="${emulated_cxx}" EMULATED_HEADERS="${here}/device")
emulated_library(emulated_blas cublasLt .so.13 ${here}/blas.cpp)
add_custom_target(emulated_gpu DEPENDS emulated_cuda emulated_nvrtc emulated_blas)
add_dependencies(test_backend_cuda emulated_gpu)

# Of every family of kernels some; all that fits on a device runs by hand with `gpu` (README.md).
set(operators add activation_backward argmax argsort attention batched_gather cast compare concat conv conv2d_backward_weight cumsum dequant_grouped_matmul
    dynamic_update_slice einsum encode_blocks expand gated_delta_net gather gather_backward gaussian_splat_render if iota layer_norm layer_norm_backward_gamma linear logsumexp maxpool2d_backward pad
    paged_attention pool q_conv2d q_matmul random_normal reduce rope scaled_matmul scan scatter_add selective_scan softmax softmax_cross_entropy_with_logits take_along top_k transpose
    variance where while windows_sum)
set(filter "Emulated.*:OnDevice.states*:OnDevice.an_index*:OnDevice.results*:OnDevice.a_p*:OnDevice.programs_of*:ControlOnDevice.*:DlpackOnDevice.*")
string(APPEND filter ":ChoicesOnDevice.*:CacheOnDevice.*:TrainingOnDevice.rows*:TrainingOnDevice.losses_of*:TrainingOnDevice.a_label*:GroupsOnDevice.long_rows*")
string(APPEND filter ":ProductTurnsOnDevice.two*:ProductTurnsOnDevice.many*:ProductTurnsOnDevice.sums_of_clusters:ProductTurnsOnDevice.addresses*:ConvOnDevice.strips:ScaledProductsOnDevice.special*:ScaledTurnsOnDevice.every_cut:ScaledTurnsOnDevice.elements*:LinearAlgebraOnDevice.factors_of_complex*:LinearAlgebraOnDevice.panels*")
foreach(operator ${operators})
  string(APPEND filter ":*/EveryOperator.runs_on_the_gpu/${operator}")
endforeach()
add_test(NAME backend/cuda/emulated COMMAND test_backend_cuda --gtest_brief=1 --gtest_filter=${filter} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(backend/cuda/emulated PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION "emulated: no compiler"
                     ENVIRONMENT "EMULATED_APART=1;LD_LIBRARY_PATH=${emulated};RLX_CUDA_PATH=${emulated};RLX_CACHE=${emulated}/cache")

# Blocks that wait for each other, with as many processors as the emulated GPU runs together.
add_test(NAME backend/cuda/emulated_chains COMMAND test_backend_cuda --gtest_brief=1 --gtest_filter=ChainOnDevice.* WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(backend/cuda/emulated_chains PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION "emulated: no compiler"
                     ENVIRONMENT "EMULATED_PROCESSORS=3;LD_LIBRARY_PATH=${emulated};RLX_CUDA_PATH=${emulated};RLX_CACHE=${emulated}/cache")

# The commands on it. What a GPU would not allow, it does not either: EMULATED_APART.
function(emulated_says name environment expected)
  add_test(NAME backend/cuda/emulated/${name} COMMAND rlx_command ${ARGN} WORKING_DIRECTORY ${here}/graphs)
  set_tests_properties(backend/cuda/emulated/${name} PROPERTIES PASS_REGULAR_EXPRESSION "${expected}"
                       ENVIRONMENT "LD_LIBRARY_PATH=${emulated};RLX_CUDA_PATH=${emulated};RLX_CACHE=${emulated}/cache;EMULATED_APART=1;${environment}")
endfunction()
if(RLX_APPS)
  emulated_says(devices "" "cuda +an emulated GPU, compute capability 9.0, 132 multiprocessors, 4.0 of 4.0 GiB free; driver 13.0, NVRTC .*, cuBLASLt" devices)
  emulated_says(auto "" "graph 'logs' on cuda, .*of peak.*copied in every run: 24 bytes to the device, 8 bytes back" run logs.rlx --random 1 --device auto --report)
  emulated_says(check_nan "" "check-nan: log .* makes NaN at element" run logs.rlx --random 1 --device cuda --check-nan)
  emulated_says(explain "" "kernel as text:.*__global__" opt logs.rlx --device cuda --explain y)
  emulated_says(explain_for "" "kernel as text:.*__global__" opt logs.rlx --device cuda:sm_80 --explain y)
  emulated_says(explain_for_none "" "device: 'cuda:sm_75': sm_90a for Hopper, or sm_80 or newer expected" opt logs.rlx --device cuda:sm_75)
  emulated_says(runs_nothing "" "cuda: 'cuda:sm_80' is for looking at programs and runs nothing; run on cuda" run logs.rlx --random 1 --device cuda:sm_80)
  emulated_says(factors "" "q +qr +qr_reflections.*copied in every run: 72 bytes to the device, 72 bytes back" run factors.rlx --random 1 --device cuda --report)
  emulated_says(failed_work "EMULATED_FAIL=region"
                "cuda: a step of graph 'logs' failed: .*RLX_CUDA_WAIT=1 names the step; no further work of this process" run logs.rlx --random 1 --device cuda)
  emulated_says(failed_step "EMULATED_FAIL=region;RLX_CUDA_WAIT=1" "cuda: the step failed: .*node s fused" run logs.rlx --random 1 --device cuda)
  emulated_says(no_memory "EMULATED_MEMORY=100" "no memory for 24 bytes; [0-9]+ of 100 are free on an emulated GPU; wanted for input .x." run logs.rlx --random 1 --device cuda)
endif()
