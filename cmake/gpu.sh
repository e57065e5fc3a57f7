#!/usr/bin/env bash
# ./dev gpu pack | check | bench: tests and benchmarks for a GPU machine without a toolchain.
#   pack   build here, strip, collect shared libraries and data into build/gpu/pack.tar.xz
#   check  there: every operator in a process of its own, whole programs, operator vectors, models; ends with a summary
#   models there: the models of the test data alone
#   commands  there: every command over language models, on the CPU and on the GPU
#   sanitize TOOL  there: compute-sanitizer (memcheck, racecheck, initcheck) over every test; again, over those that were not clean yet
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
  rm -rf "$folder/pack" "$folder/clean"  # what sanitizers found clean were other kernels
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

# Tests for a sanitizer, a line each: several short ones to a process, since most of a short one is its start, then those that take long, alone. Short
# ones come first, so that where time ends few have not begun. What an earlier run found clean ($folder/clean/TOOL.txt) is left out.
sanitizer_work() {
  local long='Size/.*/(64|100|200|300)$|RandomPrograms|losses_of_many|qr_of_dependent|matrices_without|exchanges_rows|in_panels|ConvOnDevice|ProductsOnDevice|GroupsOnDevice|ChainOnDevice|AttentionPipeline'
  touch "$folder/clean/$tool.txt"
  grep -vxFf "$folder/clean/$tool.txt" "$folder/tests.txt" > "$folder/$tool.left" || true
  # Every n-th of them: neighbours, which take alike long, go to different processes.
  grep -vE "$long" "$folder/$tool.left" | awk -v each="${RLX_SANITIZE_BATCH:-8}" '{test[NR] = $0}
    END {n = int((NR + each - 1) / each)
         for (i = 1; i <= n; ++i) {line = test[i]; for (j = i + n; j <= NR; j += n) line = line ":" test[j]; print line}}'
  grep -E "$long" "$folder/$tool.left" || true
}

# A process under the sanitizer for tests a:b:c; what it told of each is appended to $folder/TOOL.txt. Where something is told, every test has a process of its own.
sanitize_some() {
  local name=${1//[\/:]/_} log said tests=() test
  IFS=: read -ra tests <<< "$1"
  log="$logs/$tool.${name:0:120}.log"
  local left=$((deadline - $(date +%s)))
  if [ "$left" -lt 5 ]; then
    printf 'not begun | %s\n' "${tests[@]}" >> "$folder/$tool.txt"
    return
  fi
  local began=$SECONDS status=0
  timeout $((left < ${RLX_SANITIZE_SECONDS:-300} ? left : ${RLX_SANITIZE_SECONDS:-300})) "$sanitizer" --tool "$tool" --print-limit 20 ${RLX_SANITIZE:-} \
    "$bin/test_backend_cuda" --gtest_filter="$1" > "$log" 2>&1 || status=$?
  said=$(grep -aE "ERROR SUMMARY|RACECHECK SUMMARY" "$log" | tail -1 | sed 's/^=* *//')
  # Seconds are kept, so that the next order can be by them.
  echo "$((SECONDS - began)) $1" >> "$folder/$tool.seconds"
  if [[ "$said" =~ SUMMARY:\ 0\ (errors|hazards) ]] && [ $status = 0 ]; then
    printf 'clean | %s\n' "${tests[@]}" >> "$folder/$tool.txt"
  elif [ ${#tests[@]} -gt 1 ]; then
    for test in "${tests[@]}"; do sanitize_some "$test"; done
  else
    echo "${said:-no summary}, exit $status | $1" >> "$folder/$tool.txt"
  fi
}

# Kernels are compiled into the cache by whoever comes first: a sanitizer follows the GPU, not libnvrtc. memcheck loses its way in recorded loops
# (docs/cuda.md): there the host decides. RLX_SANITIZE_TOTAL: seconds for all of it; what does not begin in them is told and left for the next run.
sanitize() {
  list_tests
  if [ "${1:-memcheck}" = memcheck ]; then export RLX_CUDA_CONDITIONS=0; fi
  export tool=${1:-memcheck} sanitizer=${RLX_SANITIZER:-/usr/local/cuda/bin/compute-sanitizer} folder RLX_TEST_SANITIZED=1
  export deadline=$(($(date +%s) + ${RLX_SANITIZE_TOTAL:-100000}))
  mkdir -p "$folder/clean"
  rm -f "$folder/$tool.txt" "$folder/$tool.seconds"
  export -f sanitize_some
  sanitizer_work > "$folder/$tool.work"
  touch "$folder/$tool.txt"
  xargs -P "$jobs" -I{} bash -c 'sanitize_some {}' < "$folder/$tool.work" || true
  sed -n 's/^clean | //p' "$folder/$tool.txt" >> "$folder/clean/$tool.txt"
  grep -vE "^(clean|not begun) " "$folder/$tool.txt" | sort || true
  echo "$tool: $(wc -l < "$folder/tests.txt") tests, $(sort -u "$folder/clean/$tool.txt" | wc -l) clean, $(grep -c "^not begun" "$folder/$tool.txt" || true) not begun"
  sort -rn "$folder/$tool.seconds" 2>/dev/null | head -8 | cut -c1-120 || true
  if [ -n "${OUT:-}" ]; then tar -C "$folder" -czf "$OUT/$tool.tar.gz" --ignore-failed-read logs "$tool.txt" "$tool.seconds" clean; fi
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
