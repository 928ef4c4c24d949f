#!/usr/bin/env bash
# Copyright 2026 The sallyport Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the server, the wheel and the source distribution, installs the wheel in a new environment and runs
# the tests with it:
#
#	clients/python/test.sh [OUT]
#
# The packages are left in OUT, if that is given. PYTHON is the interpreter, SALLYPORT_BINARY a server that is
# built already. websockets comes from the package index, or where that is not reached from the system.
# It changes nothing in the checkout. Exit code 77: there is no Python with websockets.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
out=${1:-}
work=$(mktemp -d /var/tmp/x-sallyport-python.XXXXXX)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME

# environment makes $work/venv with what the build and the package need.
environment() {
	local python
	for python in ${PYTHON:-python3 /usr/bin/python3}; do
		command -v "$python" >/dev/null || continue
		if "$python" -c 'import sys, venv, ensurepip, websockets, setuptools, wheel; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
			"$python" -m venv --system-site-packages "$work/venv" && return
		fi
	done
	for python in ${PYTHON:-python3 /usr/bin/python3}; do
		"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || continue
		rm -rf "$work/venv"
		"$python" -m venv "$work/venv"
		"$work/venv/bin/pip" -q install --retries 0 --timeout 20 websockets setuptools wheel 2>"$work/pip" && return
	done
	cat "$work/pip" >&2 2>/dev/null || true
	echo "no Python of at least 3.10 with websockets, setuptools and wheel: install them (on Debian: apt-get install" \
		"python3-venv python3-websockets python3-setuptools python3-wheel)" >&2
	return 77
}

environment
python=$work/venv/bin/python
"$python" -c 'import sys, websockets.version as v; print("Python", sys.version.split()[0], "with websockets", v.version)'
"$python" "$here/tools/generate.py" --check

mkdir "$work/source" "$work/packages"
tar -C "$here" --exclude=__pycache__ -cf - . | tar -C "$work/source" --no-same-owner -xf -
(cd "$work/source" && "$python" -c 'import sys, setuptools.build_meta as b
out = sys.argv[1]  # which the builds replace
b.build_sdist(out)
b.build_wheel(out)' "$work/packages" >"$work/build" 2>&1) || { cat "$work/build" >&2; exit 1; }
ls "$work/packages"
"$python" -m pip -q install --no-index --no-deps --force-reinstall "$work"/packages/*.whl
[ -z "$out" ] || { mkdir -p "$out" && cp "$work"/packages/* "$out"; }

if command -v mypy >/dev/null; then
	(cd "$work" && MYPYPATH=$here/src mypy --strict --enable-incomplete-feature=Unpack --cache-dir="$work/mypy" \
		"$here/src/sallyport" "$here"/examples/*.py "$here"/tools/*.py)
else
	echo "no mypy: types are not checked"
fi

if [ -z "${SALLYPORT_BINARY:-}" ]; then
	export SALLYPORT_BINARY=$work/sallyport
	(cd "$here/../.." && go build -o "$SALLYPORT_BINARY" ./cmd/sallyport)
fi
cd "$work"
"$python" -W error::ResourceWarning -m unittest discover -s "$here/tests" -t "$here/tests" "${@:2}"
