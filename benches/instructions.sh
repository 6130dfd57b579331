#!/usr/bin/env bash
# Counts the instructions of small pieces of the machines' work with valgrind's callgrind, and compares them
# with those that are kept in benches/instructions.txt for this compiler. On a busy machine times mean little;
# instructions hardly move. Usage:
#
#     benches/instructions.sh            prints the counts; fails if one has grown by more than a tenth
#     benches/instructions.sh --save     keeps them
#
# The profile of each stays in target/instructions, for callgrind_annotate.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

growth_max=10 # per cent
kept=benches/instructions.txt
command -v valgrind >/dev/null || { echo "valgrind is missing" >&2; exit 1; }

# What is counted stays the same, and is built sooner, without optimising across crates.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_BENCH_LTO=off
target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target/instructions"
cargo bench --locked --bench instructions --no-run
program="$(cargo bench --locked --bench instructions --no-run --message-format=json 2>/dev/null |
    sed -n '/"name":"instructions"/s/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)"
names="$("$program" --names)"
compiler="$(rustc --version)"
known="$(sed -n '1p' "$kept" 2>/dev/null || true)"
counted="$compiler"
failed=0

for name in $names; do
    profile="$target/instructions/$name.callgrind"
    valgrind --tool=callgrind --callgrind-out-file="$profile" "$program" "$name" \
        >/dev/null 2>"$target/instructions/$name.log"
    count="$(sed -n 's/^\(summary\|totals\): //p' "$profile" | head -1)"
    counted="$counted"$'\n'"$name $count"
    before=""
    [ "$known" != "$compiler" ] || before="$(awk -v name="$name" '$1 == name { print $2 }' "$kept")"
    if [ -z "$before" ]; then
        printf '%-20s %14s instructions, nothing known for this compiler\n' "$name" "$count"
        continue
    fi
    growth="$(awk -v now="$count" -v before="$before" 'BEGIN { printf "%+.2f", (now / before - 1) * 100 }')"
    printf '%-20s %14s instructions, %s %%\n' "$name" "$count" "$growth"
    if awk -v growth="$growth" -v most="$growth_max" 'BEGIN { exit !(growth > most) }'; then
        failed=1
    fi
done

if [ "${1:-}" = "--save" ]; then
    printf '%s\n' "$counted" >"$kept"
elif [ "$failed" -ne 0 ]; then
    echo "instructions have grown by more than $growth_max %; if there is a reason, keep them with --save" >&2
    exit 1
fi
