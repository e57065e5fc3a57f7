# rlx_isa_sources(TARGET): every source under kernels/isa/ and vm/isa/ of the CPU backend is compiled once per
# instruction-set level into namespace rlx::cpu::<level>, and joins TARGET. Other machines than x86-64 have the
# baseline level only. A source joins the level avx512vnni only if it says so in a comment `// Levels: also
# avx512vnni`, because it has or calls code of its own there: for the others isa_table.h takes avx512 for both. -ffp-contract=off: a level rounds as its source says. GCC 12 sees uninitialised values
# in its own AVX-512 headers, hence -Wno-maybe-uninitialized.
add_library(rlx_isa_quiet INTERFACE)  # after rlx_flags: options are passed in the order of linking
target_compile_options(rlx_isa_quiet INTERFACE -Wno-psabi "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>" -Wno-uninitialized
                       "$<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-pragmas>")  # GCC ivdep

# Whether this machine has the instructions of a level; yes where it cannot be told.
function(rlx_machine_runs level result)
  set(needs_avx2 avx2)
  set(needs_avx512 avx512vl)
  set(needs_avx512vnni avx512_vnni)
  set(${result} ON PARENT_SCOPE)
  if(EXISTS /proc/cpuinfo AND DEFINED needs_${level})
    file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
    if(flags AND NOT flags MATCHES " ${needs_${level}}( |$)")
      set(${result} OFF PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(rlx_isa_sources target)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rlx/backend/cpu/kernels/isa/*.cpp
       ${PROJECT_SOURCE_DIR}/rlx/backend/cpu/vm/isa/*.cpp)
  rlx_select(sources)
  set(flags_baseline "")
  set(flags_avx2 -mavx2 -mfma -mf16c)
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  set(flags_avx512vnni ${flags_avx512} -mavx512vnni)
  set(levels baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND levels avx2 avx512 avx512vnni)
  endif()
  foreach(level ${levels})
    rlx_machine_runs(${level} runs)
    if(runs)
      set(highest ${level})
    endif()
    if(runs AND NOT level STREQUAL avx512vnni)  # no level of its own for most sources
      set(best ${level})
    endif()
  endforeach()
  if(RLX_ISA_NATIVE)
    set(levels ${highest})
    target_compile_definitions(${target} PRIVATE RLX_ISA_ONLY=${highest})
  endif()
  set(RLX_ISA_LEVELS ${levels} CACHE INTERNAL "levels compiled")
  set(optimise -O3)
  if(RLX_SANITIZE)
    set(optimise -O1)  # a sanitizer makes -O3 take a minute for some sources
  endif()
  set(vnni_sources "")
  foreach(source ${sources})
    file(STRINGS ${source} mentions REGEX "^// Levels: also avx512vnni")
    if(mentions)
      list(APPEND vnni_sources ${source})
    endif()
  endforeach()
  foreach(level ${levels})
    set(of_level ${sources})
    if(level STREQUAL avx512vnni AND NOT RLX_ISA_NATIVE)
      set(of_level ${vnni_sources})
    endif()
    set(of_level_flags ${optimise})
    if(RLX_ISA_OTHERS AND NOT level MATCHES "^${best}")  # sources without code of their own for VNNI have the level below
      set(of_level_flags ${RLX_ISA_OTHERS})
    endif()
    add_library(rlx_isa_${level} OBJECT ${of_level})
    set_target_properties(rlx_isa_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_features(rlx_isa_${level} PUBLIC cxx_std_20)
    target_include_directories(rlx_isa_${level} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(rlx_isa_${level} PRIVATE RLX_ISA=${level})
    target_compile_options(rlx_isa_${level} PRIVATE ${of_level_flags} -ffp-contract=off -fno-math-errno -fno-trapping-math
                           ${flags_${level}})
    target_link_libraries(rlx_isa_${level} PRIVATE rlx_flags rlx_isa_quiet)
    rlx_precompile(rlx_isa_${level} "rlx/backend/cpu/simd/vec.h")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:rlx_isa_${level}>)
  endforeach()
endfunction()
