#!/usr/bin/env bash
# Everything `make run` and `make test` need, installed into this folder where possible.
# Twice in a row costs nothing: each part is looked for first.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
may_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
apt_install() {
    say "installing $1 (apt-get)"
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1
}

# Python 3.11 or newer.
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die "Python 3.11 or newer is needed (tried $python; set PYTHON=/path/to/python)"

# uv, from PyPI, into .tools: Debian refuses packages in the system's own Python, rightly.
uv=.tools/uv/bin/uv
install_uv() {
    rm -rf .tools/uv
    if "$python" -m venv .tools/uv 2>/dev/null; then
        .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
    elif "$python" -m pip --version >/dev/null 2>&1; then
        rm -rf .tools/uv
        "$python" -m pip install --quiet --disable-pip-version-check --target .tools/uv uv
    else
        return 1
    fi
}
if ! "$uv" --version >/dev/null 2>&1; then
    say "installing uv into .tools"
    if ! install_uv; then
        may_apt || die "this Python has neither venv nor pip: install the package python3-venv"
        apt_install python3-venv || die "could not install the package python3-venv"
        install_uv || die "could not install uv"
    fi
fi

# The locked environment. uv compares it with the lock file in well under a second.
export UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=.venv
if [ ! -d .venv ]; then
    say "installing the locked environment into .venv (a minute or so, once)"
fi
"$uv" sync --frozen --quiet --python "$python" || die "could not install the locked environment"

# Java 17 or 21, for Spark.
java_ok() {
    local java=java version
    [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && java=$JAVA_HOME/bin/java
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || return 1
    [ "${version:-0}" -ge 17 ] 2>/dev/null
}
if ! java_ok; then
    may_apt || die "Spark needs Java 17 or 21: install openjdk-17-jre-headless (or set JAVA_HOME)"
    apt_install openjdk-17-jre-headless || apt_install openjdk-21-jre-headless ||
        die "could not install Java: install openjdk-17-jre-headless or set JAVA_HOME"
    java_ok || die "Java is installed but not found: set JAVA_HOME"
fi
