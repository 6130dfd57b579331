#!/usr/bin/env bash
# Counts the instructions of the benchmarks that need no clock, in brief, with valgrind's callgrind. On a
# busy machine times mean little; instructions hardly move. Usage:
#
#     benches/instructions.sh [BENCH...]            prints instructions per benchmark
#     benches/instructions.sh --save [BENCH...]     also keeps them as the baseline (target/instructions)
#
# With a baseline the growth against it is printed. The profile of each stays in target/instructions, for
# callgrind_annotate.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

save=0
if [ "${1:-}" = "--save" ]; then
    save=1
    shift
fi
benches=("$@")
[ "${#benches[@]}" -gt 0 ] || benches=(decisions pending_node starvation fair_share shares)
command -v valgrind >/dev/null || { echo "valgrind is missing" >&2; exit 1; }

target="${CARGO_TARGET_DIR:-target}"
kept="$target/instructions"
mkdir -p "$kept"
for bench in "${benches[@]}"; do
    program="$(cargo bench --locked --bench "$bench" --no-run --message-format=json 2>/dev/null |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)"
    profile="$kept/$bench.callgrind"
    valgrind --tool=callgrind --callgrind-out-file="$profile" "$program" --quick >/dev/null 2>"$kept/$bench.log"
    count="$(sed -n 's/^summary: //p' "$profile" | head -1)"
    [ -n "$count" ] || count="$(sed -n 's/^totals: //p' "$profile" | head -1)"
    if [ -f "$kept/$bench.baseline" ]; then
        before="$(cat "$kept/$bench.baseline")"
        growth="$(awk -v now="$count" -v before="$before" 'BEGIN { printf "%+.2f %%", (now / before - 1) * 100 }')"
    else
        growth="no baseline"
    fi
    printf '%-14s %16s instructions  %s\n' "$bench" "$count" "$growth"
    [ "$save" -eq 0 ] || printf '%s\n' "$count" >"$kept/$bench.baseline"
done
