#!/usr/bin/env bash
# ./dev gpu pack | check | bench: tests and benchmarks for a GPU machine without a toolchain.
#   pack   build here, strip, collect shared libraries and data into build/gpu/pack.tar.xz
#   check  there: every operator in a process of its own, whole programs, operator vectors, models; ends with a summary
#   models there: the models of the test data alone
#   commands  there: every command over language models, on the CPU and on the GPU
#   sanitize TOOL  there: compute-sanitizer (memcheck, racecheck, initcheck) over every test, a process for each
#   bench  there: bench_gpu
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${RLX_PRESET:-dev}
folder=build/gpu
jobs=${RLX_JOBS:-$(nproc)}

# What a binary needs beside the C and C++ libraries of the other machine.
libraries_of() {
  ldd "$@" | awk '/=> \// {print $3}' | sort -u |
    grep -v -E '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so'
}

pack() {
  local bin=${1:-build/$preset}
  rm -rf "$folder/pack"
  mkdir -p "$folder/pack/bin" "$folder/pack/lib"
  local program
  for program in tests/test_backend_cuda tests/test_models tests/test_llm tests/vectors bench/bench_gpu apps/rlx; do
    strip -o "$folder/pack/bin/$(basename "$program")" "$bin/$program"
  done
  libraries_of "$folder"/pack/bin/* | xargs -I{} cp -L {} "$folder/pack/lib/"
  local set
  for set in opvectors quant checkpoints gguf lora; do
    if [ -d "../shared/data/$set" ]; then cp -rL "../shared/data/$set" "$folder/pack/$set"; fi
  done
  # The programs hold the same libraries: a window over all of them finds what is repeated.
  XZ_OPT="-T2 --lzma2=preset=4,dict=192MiB" tar -C "$folder/pack" --sort=name -cJf "$folder/pack.tar.xz" .
  rm -rf "$folder/pack"
  ls -l "$folder/pack.tar.xz"
}

unpack() {
  [ -d "$folder/there" ] && return
  mkdir -p "$folder/there"
  tar -C "$folder/there" -xJf "$folder/pack.tar.xz"
}

# A wrong address ends a context, so every test has a process of its own.
list_tests() {
  unpack
  export LD_LIBRARY_PATH=$PWD/$folder/there/lib RLX_CACHE=$PWD/$folder/there/cache RLX_DATA=$PWD/$folder/there
  mkdir -p "$folder/logs"
  export bin=$PWD/$folder/there/bin logs=$PWD/$folder/logs
  "$bin/test_backend_cuda" --gtest_list_tests --gtest_filter="${RLX_TESTS:-*on_the_gpu*:*OnDevice*}" |
    awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}' > "$folder/tests.txt"
}

# Compiled kernels are taken from the cache: a sanitizer follows the GPU, not libnvrtc. memcheck loses its way in recorded loops (docs/cuda.md): there the host decides.
sanitize() {
  list_tests
  if [ "${1:-memcheck}" = memcheck ]; then export RLX_CUDA_CONDITIONS=0; fi
  export tool=${1:-memcheck} sanitizer=${RLX_SANITIZER:-/usr/local/cuda/bin/compute-sanitizer}
  sanitize_one() {
    local log="$logs/$tool.${1//\//_}.log" said
    timeout "${RLX_SANITIZE_SECONDS:-300}" "$sanitizer" --tool "$tool" --print-limit 20 ${RLX_SANITIZE:-} \
      "$bin/test_backend_cuda" \
      --gtest_brief=1 --gtest_filter="$1" > "$log" 2>&1 || true
    said=$(grep -aE "ERROR SUMMARY|RACECHECK SUMMARY" "$log" | tail -1 | sed 's/^=* *//')
    echo "${said:-no summary} | $1"
  }
  export -f sanitize_one
  xargs -P "$jobs" -I{} bash -c 'sanitize_one {}' < "$folder/tests.txt" > "$folder/$tool.txt" || true
  grep -vE "SUMMARY: 0 (errors|hazards)" "$folder/$tool.txt" | sort || true
  echo "$tool: $(wc -l < "$folder/tests.txt") tests, $(grep -cE "SUMMARY: 0 (errors|hazards)" "$folder/$tool.txt") clean"
  if [ -n "${OUT:-}" ]; then tar -C "$folder" -czf "$OUT/$tool.tar.gz" logs "$tool.txt"; fi
}

check() {
  list_tests
  run_one() {
    local name=${1//\//_}
    if ! timeout 240 "$bin/test_backend_cuda" --gtest_brief=1 --gtest_filter="$1" > "$logs/$name.log" 2>&1; then
      echo "FAILED $1"
    fi
  }
  export -f run_one
  xargs -P "$jobs" -I{} bash -c 'run_one {}' < "$folder/tests.txt" > "$folder/failed.txt" || true
  echo 'AloneOnGpu.*' >> "$folder/tests.txt"
  run_one 'AloneOnGpu.*' >> "$folder/failed.txt"
  sort "$folder/failed.txt"
  echo "$(wc -l < "$folder/tests.txt") tests, $(wc -l < "$folder/failed.txt") failed"
  if [ -d "$folder/there/opvectors" ]; then
    timeout 200 "$bin/vectors" "$folder/there/opvectors" --device cuda > "$folder/vectors.log" 2>&1 || true
    tail -30 "$folder/vectors.log" | cut -c1-200
  fi
  models
  commands
  if [ -n "${OUT:-}" ]; then tar -C "$folder" -czf "$OUT/logs.tar.gz" logs failed.txt vectors.log 2>/dev/null || true; fi
}

# Checkpoints and GGUF files with the tolerances of the CPU, then texts, batches, pages, adapters and fine-tuning; a process
# for each sixteenth of the tests.
models() {
  unpack
  export LD_LIBRARY_PATH=$PWD/$folder/there/lib RLX_CACHE=$PWD/$folder/there/cache
  export RLX_DATA=$PWD/$folder/there RLX_TEST_DEVICE=cuda GTEST_TOTAL_SHARDS=16
  export bin=$PWD/$folder/there/bin logs=$PWD/$folder/logs
  mkdir -p "$logs"
  model_tests test_models "All/Checkpoint.*:All/Gguf.*"
  model_tests test_llm "*Checkpoint*:*StoredAdapter*:Generate.*:Beams.*:Perplexity.*:*EveryDecoder*:Batcher.*:*Finetunes*"
  unset RLX_DATA RLX_TEST_DEVICE GTEST_TOTAL_SHARDS
}

model_tests() {
  export program=$1 tests=$2
  seq 0 15 | xargs -P 8 -I{} bash -c 'GTEST_SHARD_INDEX={} timeout 400 "$bin/$program" \
    --gtest_filter="$tests" > "$logs/${program}_{}.log" 2>&1 || true'
  grep -h "^\[  FAILED  \] .*ms)" "$logs/${program}"_*.log | sort | cut -c1-150 || true
  echo "$program: $(cat "$logs/${program}"_*.log | grep -c "^\[       OK \]") passed," \
    "$(cat "$logs/${program}"_*.log | grep -c "^\[  FAILED  \] .*ms)") failed"
}

# What a command prints on either device, numbers cut to three digits.
commands() {
  unpack
  export LD_LIBRARY_PATH=$PWD/$folder/there/lib RLX_CACHE=$PWD/$folder/there/cache
  local rlx=$PWD/$folder/there/bin/rlx data=$PWD/$folder/there/gguf text=$folder/text.txt same=0 differ=0
  local model=$data/qwen2-F16.gguf device
  printf 'the cat sat on the mat and the dog sat on the log. %.0s' $(seq 40) > "$text"
  compare() {
    local name=$1
    shift
    for device in cpu cuda; do
      rm -rf "$folder/made"
      mkdir "$folder/made"
      { timeout 100 "$rlx" "$@" --device $device 2>&1 || echo "exit $?"; } |
        sed -E 's/-?([0-9]+\.[0-9]{3})[0-9]*(e[-+][0-9]+)?/\1/g; s/[0-9]+ tokens\/s//g' > "$folder/$name.$device"
    done
    if cmp -s "$folder/$name.cpu" "$folder/$name.cuda"; then same=$((same + 1)); else
      differ=$((differ + 1))
      echo "DIFFERS $name"
      diff "$folder/$name.cpu" "$folder/$name.cuda" | cut -c1-200 | head -6
    fi
  }
  compare generate generate "$model" -p "the cat" -n 24 -q --temp 0
  compare sampled generate "$model" -p "the cat" -n 24 -q --temp 0.8 --seed 7
  compare packed generate "$data/qwen2-Q8_0.gguf" -p "the cat" -n 4 -q --temp 0
  compare lookup generate "$model" -p "the cat" -n 24 -q --temp 0 --lookup 4
  compare perplexity perplexity "$model" "$text" --progress none
  compare embed embed "$model" "the cat" "a dog" --json
  compare finetune finetune "$model" "$text" -o "$folder/made/adapter" -c 32 -b 2 --steps 6 --progress lines
  compare imatrix imatrix "$model" "$text" -o "$folder/made/m.gguf" --progress none
  echo "commands: $same same, $differ differ"
}

bench() {
  unpack
  LD_LIBRARY_PATH=$PWD/$folder/there/lib RLX_CACHE=$PWD/$folder/there/cache "$folder/there/bin/bench_gpu" "$@"
}

case ${1:-} in
  pack | check | models | commands | sanitize | bench) "$@" ;;
  *) sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
