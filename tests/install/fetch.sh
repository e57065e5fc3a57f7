#!/usr/bin/env bash
# Builds a program that takes rlx by FetchContent, from the source folder. It links one room, so that only that is built.
# usage: fetch.sh SOURCE_FOLDER
set -euo pipefail
source=$1 here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$here/fetch.cmake" "$scratch/CMakeLists.txt"
cp "$here/fetch.cpp" "$scratch/main.cpp"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
{ cmake -G Ninja -S "$scratch" -B "$scratch/build" -DRLX_SOURCE="$source" -DCMAKE_BUILD_TYPE=None "${launcher[@]}" &&
  cmake --build "$scratch/build" --target main; } >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
! grep -n 'warning:' "$scratch/log"
"$scratch/build/main"
