#!/usr/bin/env bash
# Installs the built tree into a scratch prefix and builds a program elsewhere against it with find_package.
# usage: run.sh BUILD_FOLDER
set -euo pipefail
build=$1 source=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
mkdir "$scratch/consumer"
cp "$source/consumer.cmake" "$scratch/consumer/CMakeLists.txt"
cp "$source/consumer.cpp" "$scratch/consumer/main.cpp"
cmake -G Ninja -S "$scratch/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=None >"$scratch/configure.log"
cmake --build "$scratch/build" >"$scratch/build.log" || { cat "$scratch/build.log"; exit 1; }
"$scratch/build/main"
"$scratch/prefix/bin/rlx" ops add | head -1
