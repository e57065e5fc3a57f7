#!/usr/bin/env bash
# ./dev gpu pack | check | bench: tests and benchmarks for a GPU machine without a toolchain.
#   pack   build here, strip, collect shared libraries and data into build/gpu/pack.tar.xz
#   check  there: every operator in a process of its own, whole programs, operator vectors; ends with a summary
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
  strip -o "$folder/pack/bin/test_backend_cuda" "$bin/tests/test_backend_cuda"
  strip -o "$folder/pack/bin/vectors" "$bin/tests/vectors"
  strip -o "$folder/pack/bin/bench_gpu" "$bin/bench/bench_gpu"
  libraries_of "$folder"/pack/bin/* | xargs -I{} cp -L {} "$folder/pack/lib/"
  [ -d ../shared/data/opvectors ] && cp -r ../shared/data/opvectors "$folder/pack/opvectors"
  XZ_OPT=-0 tar -C "$folder/pack" -cJf "$folder/pack.tar.xz" .
  rm -rf "$folder/pack"
  ls -l "$folder/pack.tar.xz"
}

unpack() {
  [ -d "$folder/there" ] && return
  mkdir -p "$folder/there"
  tar -C "$folder/there" -xJf "$folder/pack.tar.xz"
}

check() {
  unpack
  export LD_LIBRARY_PATH=$PWD/$folder/there/lib RLX_CACHE=$PWD/$folder/there/cache
  mkdir -p "$folder/logs"
  export bin=$PWD/$folder/there/bin logs=$PWD/$folder/logs
  # A wrong address ends a context, so every test has a process of its own.
  "$bin/test_backend_cuda" --gtest_list_tests --gtest_filter='*runs_on_the_gpu*:OnDevice*' |
    awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}' > "$folder/tests.txt"
  run_one() {
    local name=${1//\//_}
    if ! timeout 120 "$bin/test_backend_cuda" --gtest_brief=1 --gtest_filter="$1" > "$logs/$name.log" 2>&1; then
      echo "FAILED $1"
    fi
  }
  export -f run_one
  xargs -P "$jobs" -I{} bash -c 'run_one {}' < "$folder/tests.txt" > "$folder/failed.txt" || true
  sort "$folder/failed.txt"
  echo "$(wc -l < "$folder/tests.txt") tests, $(wc -l < "$folder/failed.txt") failed"
  if [ -d "$folder/there/opvectors" ]; then
    timeout 200 "$bin/vectors" "$folder/there/opvectors" --device cuda > "$folder/vectors.log" 2>&1 || true
    tail -30 "$folder/vectors.log" | cut -c1-200
  fi
  if [ -n "${OUT:-}" ]; then tar -C "$folder" -czf "$OUT/logs.tar.gz" logs failed.txt vectors.log 2>/dev/null || true; fi
}

bench() {
  unpack
  LD_LIBRARY_PATH=$PWD/$folder/there/lib RLX_CACHE=$PWD/$folder/there/cache "$folder/there/bin/bench_gpu" "$@"
}

case ${1:-} in
  pack | check | bench) "$@" ;;
  *) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
