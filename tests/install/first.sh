#!/usr/bin/env bash
# Configures the preset of ./dev run and compiles what its options change: the level of instructions in use, the devices;
# none of its sources may need one that it leaves out.
# usage: first.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{ cmake --preset first -B "$scratch" -DRLX_BATCH=OFF -DRLX_PCH=OFF &&
  ninja -C "$scratch" CMakeFiles/rlx_backend_cpu.dir/rlx/backend/cpu/{isa,kernels/rope}.cpp.o \
    CMakeFiles/rlx_runtime.dir/rlx/runtime/devices.cpp.o; } >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
python3 tests/install/first_sources.py "$scratch"
targets=$(ninja -C "$scratch" -t targets all)
echo "levels: $(grep -o 'rlx_isa_[a-z0-9]*' <<<"$targets" | sort -u | wc -l), sources for a GPU: $(grep -c 'backend/cuda/' <<<"$targets" || true)"
