#!/usr/bin/env bash
# Runs the bundle on this machine's GPU: tests, products of tensor cores, examples, benchmarks.
#
#   ./run.sh              each benchmark prints one JSON line
#   ./run.sh --sanitize   the tests' small shapes under compute-sanitizer instead
#
# The last line is 'N passed, N failed' over all parts; the exit status is 1 if any failed.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

passed=0
failed=0

# count NAME STATUS OUTPUT: a program that sums up in a last line 'N passed, N failed' counts as that
# many, any other as one. A program that fails without saying what failed counts as one failure more.
count() {
    local summary
    summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' <<<"$3" | tail -n 1)
    if [[ $summary =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + 10#${BASH_REMATCH[1]}))
        failed=$((failed + 10#${BASH_REMATCH[2]}))
        if [[ $2 -ne 0 && ${BASH_REMATCH[2]} -eq 0 ]]; then
            echo "$1 failed: exit status $2"
            failed=$((failed + 1))
        fi
    elif [[ $2 -eq 0 ]]; then
        passed=$((passed + 1))
    else
        echo "$1 failed: exit status $2"
        failed=$((failed + 1))
    fi
}

# part NAME COMMAND...: runs the command with its output shown as it comes.
part() {
    local name=$1 log status
    shift
    echo "== $name"
    log=$(mktemp) || exit 1
    "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    count "$name" "$status" "$(<"$log")"
    rm -f "$log"
}

# sanitize TOOL: one pass or one fail, whatever the tests count.
sanitize() {
    echo "== compute-sanitizer $1"
    if compute-sanitizer --tool "$1" --error-exitcode 1 ./tma-gpu-tests --quick; then
        passed=$((passed + 1))
    else
        echo "compute-sanitizer $1 failed"
        failed=$((failed + 1))
    fi
}

case "${1:-}" in
"")
    part tests ./tma-gpu-tests
    part products ./tma-gpu-products
    for example in examples/*; do
        part "$example" "./$example"
    done
    part benchmarks ./tma-gpu-bench
    ;;
--sanitize)
    for tool in memcheck synccheck initcheck; do
        sanitize "$tool"
    done
    ;;
*)
    echo "usage: $0 [--sanitize]" >&2
    exit 2
    ;;
esac

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
