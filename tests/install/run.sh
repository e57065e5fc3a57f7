#!/usr/bin/env bash
# Installs the built tree into a scratch prefix and builds a program elsewhere against it: with find_package against the
# static rooms and the shared library, and with pkg-config.
# usage: run.sh BUILD_FOLDER
set -euo pipefail
build=$1 source=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }; }

quietly cmake --install "$build" --prefix "$scratch/prefix"
mkdir "$scratch/consumer"
cp "$source/consumer.cmake" "$scratch/consumer/CMakeLists.txt"
cp "$source/consumer.cpp" "$scratch/consumer/main.cpp"
quietly cmake -G Ninja -S "$scratch/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=None
quietly cmake --build "$scratch/build"
for program in "$scratch"/build/with_*; do
  echo "$(basename "$program") $("$program")"
done

if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name rlx.pc)")
  export PKG_CONFIG_PATH
  object=$(find "$scratch/build" -name 'main.cpp.o')
  quietly c++ "$object" -o "$scratch/with_pkg_config" $(pkg-config --libs rlx)
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir rlx) "$scratch/with_pkg_config" | sed 's/^/with_pkg_config /'
  echo "pkg-config $(pkg-config --modversion rlx)"
fi
"$scratch/prefix/bin/rlx" ops add | head -1
