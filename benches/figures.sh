#!/usr/bin/env bash
# Reproduces the figures of the README: every benchmark with its baselines, a load of twenty seconds on the real
# runtime, and 25 minutes of more than a million simulated cores. It wants a quiet machine and takes about half an
# hour; with --quick, a few minutes for smaller figures. Usage: benches/figures.sh [--quick]

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=()
seconds=20
virtual_seconds=1500
if [ "${1:-}" = "--quick" ]; then
    quick=(--quick)
    seconds=5
    virtual_seconds=600
fi
target="${CARGO_TARGET_DIR:-target}"

cargo build --locked --release
for bench in decisions pending_node starvation fair_share shares runtime windows; do
    cargo bench --locked --bench "$bench" -- "${quick[@]}"
done
"$target/release/plimsoll" load --seconds "$seconds" --producers 4
"$target/release/plimsoll" load --seconds "$seconds" --producers 4 --tasks 100
"$target/release/plimsoll" load --seconds "$seconds" --producers 4 --mix 2:1:2
"$target/release/plimsoll" load --simulated --seconds "$virtual_seconds"
