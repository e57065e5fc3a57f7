#!/usr/bin/env bash
# ./dev fuzz SECONDS [NAME]: builds the fuzz targets and runs each for that long. New inputs are kept in
# build/fuzz/corpus; a finding leaves its input in build/fuzz/found and fails the run.
set -euo pipefail
self=$1 seconds=$2 only=${3:-}
"$self" build fuzz "fuzz_${only:-all}"
failed=0
for source in tests/fuzz/*.cpp; do
  name=$(basename "$source" .cpp)
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  mkdir -p "build/fuzz/corpus/$name" build/fuzz/found
  seeds=()
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  log=build/fuzz/$name.log
  if "build/fuzz/tests/fuzz/fuzz_$name" "build/fuzz/corpus/$name" "${seeds[@]}" -max_total_time="$seconds" \
    -max_len=65536 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/found/$name-" -print_final_stats=1 \
    >"$log" 2>&1; then
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs in $seconds s, nothing found"
  else
    failed=1
    echo "$name: FOUND SOMETHING, see $log"
    grep -E "ERROR|SUMMARY|Test unit written" "$log" || true
  fi
done
exit $failed
