#!/usr/bin/env bash
# What one GPU is to measure in ten minutes: the cost of a step, and MiniLM with 100 and 50 labels.
#
#     OUT=results bash benchmarks/gpu_run.sh steps
#     OUT=results bash benchmarks/gpu_run.sh labels DATA MINILM
#
# Run it from the root of the repository; OUT is a folder that exists. `steps` takes three to five
# minutes and writes step_cost.txt and step_cost.json. `labels` trains 40 runs, eight at a time through
# NVIDIA's multi-process service, in about five minutes, and writes table.md and labels.tgz, whose
# folders belong into benchmarks/results/base-size. DATA and MINILM are those of
# benchmarks/base_size.py; the encoder may be saved in half precision, as it is read in fp32.
#
# Without network: WHEELS=FOLDER has wheels of the project, its plug-ins and of what Python lacks.
# They go into a folder under /tmp, once, so that a second call finds them.
set -euo pipefail

site=/tmp/aang-site
if [ -n "${WHEELS:-}" ] && [ ! -e "$site/complete" ]; then
    python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$WHEELS"/*.whl
    touch "$site/complete"
fi
# The tree's own code goes before that of its wheels, which only tell which plug-ins there are.
path=$PWD
for plugin in "$PWD"/plugins/*; do path=$path:$plugin; done
export PYTHONPATH=$path:$site PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

case "${1:-}" in
steps)
    # MiniLM first, as RoBERTa-base in fp32 takes most of the time; what ends in time is kept.
    timeout 300 python3 -m benchmarks.step_cost_gpu --n 3 --n 24 --repeats 5 --out "$OUT/step_cost.json" |
        tee "$OUT/step_cost.txt"
    ;;
labels)
    data=$2 minilm=$3 work=$(mktemp -d)
    # Fails where containers may not have it; runs then take turns on the GPU.
    nvidia-cuda-mps-control -d || echo "no multi-process service"
    settings=(minilm-scierc-100 minilm-acl-arc-100 minilm-scierc-50 minilm-acl-arc-50)
    # A setting trains one draw of two runs after the other, so the settings go side by side.
    for setting in "${settings[@]}"; do
        timeout 400 python3 -m benchmarks.base_size train "$data" "$work/$setting" --minilm "$minilm" \
            --setting "$setting" --jobs 2 --device cuda >"$OUT/$setting.log" 2>&1 &
    done
    wait
    for setting in "${settings[@]}"; do
        python3 -m benchmarks.base_size collect "$work/$setting" "$work/results" >"$work/table.txt" ||
            tail -5 "$OUT/$setting.log"
    done
    cp "$work/results/table.md" "$OUT/"
    tar -czf "$OUT/labels.tgz" -C "$work/results" "${settings[@]}"
    cat "$OUT/table.md"
    ;;
*)
    sed -n '2,14p' "$0"
    exit 2
    ;;
esac
