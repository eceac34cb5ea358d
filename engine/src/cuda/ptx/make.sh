#!/usr/bin/env bash
# Makes the PTX files anew from the kernels, with the NVRTC whose PTX the oldest supported driver takes. Needs python3 with pip,
# no GPU and no CUDA toolkit.
set -euo pipefail
cd "$(dirname "$0")/../../.."
wheel=nvidia-cuda-nvrtc-cu12==12.1.105
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: -d "$directory" "$wheel"
python3 -m zipfile -e "$directory"/*.whl "$directory"
STRATO_BLESS_PTX=1 STRATO_NVRTC=$(ls "$directory"/nvidia/cuda_nvrtc/lib/libnvrtc.so.12) \
    cargo test -p stratoscope-engine --lib cuda::ptx -- --test-threads 1 stale
cargo test -p stratoscope-engine --lib cuda::ptx -- stale
