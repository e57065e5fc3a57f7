# RLX_DENSE, which the preset of ./dev run sets: the rooms and kernels that training a dense network takes, soon compiled.
# Convolutions, block formats, transforms, solvers, recurrences and splats have no kernels then (their nodes are
# decomposed or run on the reference, and the report says so), and files have no tokenizers. nodes/left_out.cpp stands
# for the families that are not there.
set(families quant conv dequantize fft linalg lapack determinant factorize solve splat gated_delta delta_chunk selective_scan
             causal_conv sequence pool resize windows group fused_conv product_groups)
list(JOIN families "|" families)
set(RLX_NOT_DENSE "/backend/cpu/[a-z/]*/(${families})[a-z_0-9]*\\.cpp$|/rlx/io/(model_text\\.cpp$|onnx/)")

# rlx_select(LIST): without the sources that this build leaves out.
macro(rlx_select sources)
  if(RLX_DENSE)
    list(FILTER ${sources} EXCLUDE REGEX "${RLX_NOT_DENSE}")
  else()
    list(FILTER ${sources} EXCLUDE REGEX "/nodes/left_out\\.cpp$")
  endif()
endmacro()
