#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh OUT TEST...: runs test programs on the software GPU of OUT; last line: N passed, N failed.
out=$1
shift
passed=0 failed=0 skipped=0
export LD_LIBRARY_PATH="$out/softgpu"
for test; do
	name=${test##*/}
	"$test" "$out"
	case $? in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) && echo "skipped: $name" ;;
	*) failed=$((failed + 1)) && echo "FAILED: $name" ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
