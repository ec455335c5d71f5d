#!/bin/sh
# Prints the libraries of the address and undefined-behaviour sanitizers that the compiler links, for LD_PRELOAD: the interpreter is not
# built with them, and they must come first. The C++ library with them, so that exceptions are known before any are thrown.
set -eu
compiler=${CXX:-c++}
for name in libasan.so libubsan.so libstdc++.so; do
    path=$("$compiler" -print-file-name="$name")
    case $path in
        /*) printf '%s ' "$path" ;;
        *)
            printf 'error: %s has no %s\n' "$compiler" "$name" >&2
            exit 1
            ;;
    esac
done
