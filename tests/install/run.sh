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
  for package in rlx rlx-static; do
    quietly c++ "$scratch/consumer/main.cpp" -o "$scratch/program" $(pkg-config --cflags --libs $package)
    echo "with_pkg_config $package $(LD_LIBRARY_PATH=$(pkg-config --variable=libdir $package) "$scratch/program")"
  done
  echo "pkg-config $(pkg-config --modversion rlx)"
fi
"$scratch/prefix/bin/rlx" ops add | head -1

# What `rlx build` writes is a project of its own, on rlx::run or on the whole library, never on both.
quietly "$scratch/prefix/bin/rlx" build "$source/../../docs/pictures/loss.rlx" --bind batch=4 -o "$scratch/loss"
for library in rlx::run rlx::rlx; do
  cat >"$scratch/loss/main.c" <<'END'
#include <stdio.h>
#include "loss.h"
int main(void) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4] = {0}, w[2] = {1, 0}, b[1] = {1}, loss_value = 0;
  const void* in[] = {x, y, w, b};
  void* out[] = {&loss_value};
  loss* p = loss_create();
  if (!p || loss_run(p, in, out)) return puts(loss_error()), 1;
  return printf("loss %g\n", loss_value), 0;
}
END
  cat >"$scratch/loss/program.cmake" <<END
cmake_minimum_required(VERSION 3.22)
project(program LANGUAGES C CXX)
find_package(rlx REQUIRED)
add_subdirectory($scratch/loss loss)
add_executable(program $scratch/loss/main.c)
set_target_properties(program PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(program PRIVATE loss \${ALSO})
END
  mkdir -p "$scratch/user" && cp "$scratch/loss/program.cmake" "$scratch/user/CMakeLists.txt"
  quietly cmake -G Ninja -S "$scratch/user" -B "$scratch/user/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_BUILD_TYPE=None -Dloss_LIBRARY=$library -DALSO=
  quietly cmake --build "$scratch/user/build"
  echo "built on $library: $("$scratch/user/build/program")"
done
if cmake -S "$scratch/user" -B "$scratch/user/build" -Dloss_LIBRARY=rlx::run -DALSO=rlx::lang >"$scratch/log" 2>&1; then
  echo "rlx::run and rlx::lang were linked together"
else
  grep -o "RLX_RECORDS" "$scratch/log" | head -1
fi
