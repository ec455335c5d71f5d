# shellcheck shell=sh disable=SC2154
# What each command of ./dev needs from the system, and whether it is here. Read by ./dev.

# A Vulkan driver for a real GPU: its manifest and its device node. A manifest alone may be a leftover.
has_gpu_driver() {
    [ -n "${VK_DRIVER_FILES-}${VK_ICD_FILENAMES-}" ] && return 0
    node=
    for file in /dev/dri/renderD* /dev/nvidiactl /dev/dxg; do [ -e "$file" ] && node=$file; done
    [ -n "$node" ] || return 1
    for file in /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json /usr/local/share/vulkan/icd.d/*.json; do
        case ${file##*/} in '*.json' | lvp_icd*) ;; *) return 0 ;; esac
    done
    return 1
}

# needs COMMAND: lines "Debian package|what else may provide it|why". Python's own packages are python_needs; those of
# every build are in build_needs.txt, which CMake reads too.
needs() {
    case $1 in lint | format) return ;; esac
    grep -v '^#' tools/dev/build_needs.txt
    case $1 in
        test | ends | stall | random | corpus | fuzz | soak | asan)
            say 'spirv-cross|cmd spirv-cross|says independently what published shaders declare'
            say 'doctest-dev|header doctest/doctest.h|the native tests'
            say 'vulkan-validationlayers|-|the tests run with validation on'
            say 'mesa-vulkan-drivers|-|lavapipe, the CPU driver that the tests run on'
            say 'xvfb|cmd Xvfb|a display without a screen: the tests open windows'
            say 'libgl1|-|OpenGL, which the windows draw with'
            say 'xdotool|cmd xdotool|moves the mouse over them'
            ;;
        bench)
            say 'mesa-vulkan-drivers|-|lavapipe, the CPU driver that the benchmarks run on'
            say 'vulkan-validationlayers|-|what validation costs is one of the figures'
            ;;
        docs) say 'mesa-vulkan-drivers|-|lavapipe, the CPU driver that the notebooks of the site run on' ;;
        look | shots)
            say 'mesa-vulkan-drivers|-|lavapipe, the CPU driver that the notebooks of the site run on'
            say 'chromium|cmd chromium chromium-browser google-chrome|shows the pages'
            ;;
        wheel) say 'debootstrap|cmd debootstrap|makes the bare systems to try wheels in' ;;
        build | tsan) ;;
        *) has_gpu_driver ||
            say 'mesa-vulkan-drivers|-|a Vulkan driver (lavapipe on the CPU): no GPU driver is installed here' ;;
    esac
}

# optional_needs COMMAND: the same lines, for what the command also runs without. Not every release offers these.
optional_needs() {
    case $1 in test | bench) say 'valgrind|cmd valgrind|counts the instructions that an evaluation takes' ;; esac
    # 150 MB to download and 650 MB on the disk; PyTorch's own wheels for Linux take ten times that.
    if [ "$1" = test ] && [ -z "${DEV_WITHOUT_TORCH-}" ]; then
        say 'python3-torch|module torch|PyTorch for the CPU: tests exchange memory with it (DEV_WITHOUT_TORCH=1 goes without)'
    fi
}

version_at_least() { # version_at_least HAVE WANT, both as major.minor
    have_major=${1%%.*} have_minor=${1#*.} want_major=${2%%.*} want_minor=${2#*.}
    have_minor=${have_minor%%.*}
    [ "$have_major" -gt "$want_major" ] ||
        { [ "$have_major" -eq "$want_major" ] && [ "$have_minor" -ge "$want_minor" ]; }
}

# provided "KIND ARGUMENTS": is the thing here, whoever installed it?
provided() {
    # shellcheck disable=SC2086 # the words are the arguments
    set -- $1
    kind=$1
    shift
    case $kind in
        cmd)
            for tool in "$@"; do command -v "$tool" >/dev/null 2>&1 && return 0; done
            return 1
            ;;
        cmake)
            command -v cmake >/dev/null 2>&1 || return 1
            version_at_least "$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')" "$1"
            ;;
        header)
            for prefix in /usr /usr/local "${VULKAN_SDK-/usr}" "${HOMEBREW_PREFIX-/opt/homebrew}" "${MSYSTEM_PREFIX-/usr}"; do
                for folder in include Include; do [ -e "$prefix/$folder/$1" ] && return 0; done
            done
            return 1
            ;;
        module)
            [ -x "$VPY" ] && "$VPY" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))' "$1"
            ;;
        *) return 1 ;;
    esac
}
