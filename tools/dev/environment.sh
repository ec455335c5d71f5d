# shellcheck shell=sh disable=SC2154,SC2034
# The interpreter, .venv, the Python requirements and the build. Read by ./dev.

# Prints "VERSION TAG HAS_VENV HAS_HEADERS EXECUTABLE" for one interpreter; a .venv's names what it was made with.
probe_python() {
    "$1" -c '
import os, sys, sysconfig
try:
    import ensurepip, venv
    has_venv = 1
except ImportError:
    has_venv = 0
has_headers = int(os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
major, minor = sys.version_info[:2]
base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
print("%d.%d cp%d%d %d %d %s" % (major, minor, major, minor, has_venv, has_headers, base))
' 2>/dev/null
}

# Sets PY, PY_VERSION, PY_TAG, PY_VENV, PY_HEADERS; PY is empty when there is no Python at all.
find_python() {
    PY='' too_old=''
    if [ -n "${PYTHON-}" ]; then
        candidates=$PYTHON
    elif venv_is_ours; then
        # Without PYTHON, the .venv that is here stays in use, whatever it was made with.
        candidates=$VPY
    else
        candidates='python3 python3.13 python3.12 python3.11 python3.10 python'
    fi
    for candidate in $candidates; do
        found=$(probe_python "$candidate") || continue
        # shellcheck disable=SC2086 # five fields, the last one the rest of the line
        set -- $found
        if version_at_least "$1" 3.10; then
            PY_VERSION=$1 PY_TAG=$2 PY_VENV=$3 PY_HEADERS=$4
            shift 4
            PY=$*
            return 0
        fi
        too_old="$too_old $candidate ($1)"
    done
    if [ -n "${PYTHON-}" ]; then
        die "PYTHON=$PYTHON is not a Python 3.10 or newer${too_old:+: it is$too_old}." \
            "Unset PYTHON, or set it to the path of a newer interpreter."
    fi
    if [ -n "$too_old" ]; then
        die "kompute_py needs Python 3.10 or newer; here there is only$too_old." \
            "Install a newer one beside it (Debian 12 and Ubuntu 22.04 have it) and run: PYTHON=/path/to/python3 ./dev ..."
    fi
}

# python_needs COMMAND: what Debian's Python still lacks, in the form of needs().
python_needs() {
    if [ -z "$PY" ]; then
        say 'python3|-|runs the package and its tools' 'python3-venv|-|makes .venv'
    elif [ "$PY_VENV" = 0 ]; then
        package=$(python_package venv) || exit 1
        say "$package|-|makes .venv"
    fi
    case $1 in lint | format) return ;; esac
    if [ -z "$PY" ]; then
        say 'python3-dev|-|headers to build the extension module'
    elif [ "$PY_HEADERS" = 0 ]; then
        package=$(python_package dev) || exit 1
        say "$package|-|headers to build the extension module"
    fi
}

# The package that completes the interpreter in use: python3-venv, or python3.12-venv for one beside it.
python_package() {
    case $PY in
        /usr/bin/*) ;;
        *)
            lacks='ensurepip module'
            [ "$1" = venv ] || lacks='Python.h'
            die "$PY has no $lacks, and it is not one of the system's packages." \
                "Complete that installation, or choose the system's own: PYTHON=/usr/bin/python3 ./dev ..."
            ;;
    esac
    if [ "$(readlink -f /usr/bin/python3 2>/dev/null)" = "$(readlink -f "$PY")" ]; then
        echo "python3-$1"
    else
        echo "python$PY_VERSION-$1"
    fi
}

# A .venv that was copied or moved still points at its old place.
venv_is_ours() {
    [ -x "$VPY" ] && "$VPY" -c '' 2>/dev/null && case $(cat "$STAMPS/identity" 2>/dev/null) in
        "$ROOT|"*) return 0 ;;
        *) return 1 ;;
    esac
}

# Sets up .venv for the interpreter in PY; one that was made for another PYTHON is made anew.
prepare_venv() {
    identity="$ROOT|$PY_VERSION|$PY"
    if venv_is_ours && stamp_is identity "$identity"; then return 0; fi
    step "making $VENV with Python $PY_VERSION" make_venv
    say "$identity" >"$STAMPS/identity"
}

make_venv() {
    rm -rf "$VENV" && "$PY" -m venv "$VENV" && mkdir -p "$STAMPS"
}

# The requirements of some extras and of the build, read from pyproject.toml without building anything.
list_requirements() {
    "$VPY" - "$@" <<'END'
import re
import sys

try:
    import tomllib
except ImportError:  # Python 3.10: pip brings its own
    from pip._vendor import tomli as tomllib

with open("pyproject.toml", "rb") as file:
    data = tomllib.load(file)
project = data["project"]


def expand(requirements):
    for requirement in requirements:
        own = re.fullmatch(re.escape(project["name"]) + r"\[(.+)\]", requirement)
        if own:
            for extra in own.group(1).split(","):
                yield from expand(project["optional-dependencies"][extra.strip()])
        else:
            yield requirement


wanted = list(project["dependencies"])
for name in sys.argv[1:]:
    wanted += data["build-system"]["requires"] if name == "build" else expand([f"{project['name']}[{name}]"])
print("\n".join(dict.fromkeys(wanted)))
END
}

prepare_requirements() { # NAME EXTRA...
    name=$1
    shift
    hash=$(digest <pyproject.toml)
    if stamp_is "requirements-$name" "$hash"; then return 0; fi
    list_requirements "$@" >"$STAMPS/requirements-$name.txt"
    step "installing Python packages ($name)" \
        "$VPY" -m pip install --disable-pip-version-check -r "$STAMPS/requirements-$name.txt"
    say "$hash" >"$STAMPS/requirements-$name"
}

# What the build is made from. Python files count by name only: the editable install reads them in place.
build_hash() {
    {
        say "$PY_TAG ${CXX-} ${CXXFLAGS-} ${CMAKE_ARGS-}"
        grep -s '^__version__' kompute_py/__init__.py
        find kompute_py -type f ! -name '*.pyc'
        find CMakeLists.txt cmake pyproject.toml native shaders "$@" -type f -exec "$HASHER" {} + 2>/dev/null
    } | LC_ALL=C sort | digest
}

prepare_build() { # plain | tests
    [ -f CMakeLists.txt ] || die "there is no CMakeLists.txt in $ROOT: this checkout is incomplete."
    hash=$(build_hash tests/native)
    # A build with the native tests serves the other commands too.
    if stamp_is build-tests "$hash"; then return 0; fi
    flag=ON
    if [ "$1" = plain ]; then
        hash=$(build_hash)
        flag=OFF
        if stamp_is build-plain "$hash"; then return 0; fi
    fi
    rm -f "$STAMPS/build-plain" "$STAMPS/build-tests"
    step 'building kompute_py' env CMAKE_ARGS="${CMAKE_ARGS-} -DKOMPUTE_PY_TESTS=$flag" \
        "$VPY" -m pip install --disable-pip-version-check --no-build-isolation --no-deps -v -e .
    say "$hash" >"$STAMPS/build-$1"
}
