# shellcheck shell=sh disable=SC2154
# Installs missing system packages with apt, or names them on systems without it. Read by ./dev.

is_debian() {
    [ -r /etc/os-release ] && command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1
}

# Of the lines of python_needs and needs, those that nothing here provides.
missing_needs() {
    lines=$(python_needs "$1" && needs "$1") || exit 1
    missing_of "$lines"
}

# The same of optional_needs. The system's Python packages serve the system's Python version alone.
missing_options() {
    is_debian || return 0
    [ "$(probe_python /usr/bin/python3 | cut -d' ' -f1)" = "$PY_VERSION" ] || return 0
    missing_of "$(optional_needs "$1")"
}

missing_of() { # LINES
    lines=$1
    [ -n "$lines" ] || return 0
    installed=
    if is_debian; then
        # shellcheck disable=SC2046 # one word a package
        installed=$(dpkg-query -W -f '${db:Status-Status}:${Package} ' $(say "$lines" | cut -d'|' -f1) 2>/dev/null) || :
    fi
    say "$lines" | while IFS='|' read -r package other why; do
        case " $installed" in *" installed:$package "*) continue ;; esac
        provided "$other" || say "$package|$other|$why"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then env "$@"; else sudo env "$@"; fi
}

apt() {
    # Waits for another package manager (a fresh Ubuntu updates itself) instead of failing on its lock.
    as_root DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -y -q -o DPkg::Lock::Timeout=300 -o APT::Install-Recommends=false "$@"
}

apt_can_install() { apt-get --simulate -o APT::Install-Recommends=false install "$@" >>"$LOG" 2>&1; }

# The lists may be older than the archive: when a file is gone from it, fresh lists know its successor.
apt_install() { apt install "$@" || { apt update && apt install "$@"; }; }

install_with_apt() { # the missing lines
    packages=$(say "$1" | cut -d'|' -f1 | tr '\n' ' ')
    say "${BOLD}System packages that are missing here:$CLEAR"
    say "$1" | while IFS='|' read -r package _ why; do printf '  %-28s %s\n' "$package" "$why"; done
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            die "installing them needs root, and there is no sudo here. As root, run:" \
                "apt-get update && apt-get install --no-install-recommends $packages"
        if [ -t 0 ]; then sudo -v; else sudo -n true 2>/dev/null; fi ||
            die "installing them needs root, and sudo refused. As root, run:" \
                "apt-get update && apt-get install --no-install-recommends $packages"
    fi
    # shellcheck disable=SC2086 # one word a package, here and below
    if ! apt_can_install $packages; then
        step 'apt-get update' apt update
        if ! apt_can_install $packages; then
            tail -n 8 "$LOG" | sed 's/^/  | /'
            die "this release does not offer all of these packages: $packages" \
                "Debian 12 and Ubuntu 24.04 are the oldest that do."
        fi
    fi
    # shellcheck disable=SC2086
    step 'apt-get install' apt_install $packages
}

# What a command can do without never stops it: not where the release has no such package, nor where nobody is root.
install_options() { # the missing lines
    if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then return 0; fi
    say "$1" | while IFS='|' read -r package _ why; do
        apt_can_install "$package" </dev/null || continue
        say "${BOLD}Also installing $package$CLEAR: $why"
        step "apt-get install $package" try_apt_install "$package"
    done
}

try_apt_install() { apt_install "$1" || say "without $1: it could not be installed"; }

# Other systems: the same needs under the names that their package managers use.
name_packages() {
    id=$(uname -s)
    # shellcheck source=/dev/null
    if [ -r /etc/os-release ]; then id=$(. /etc/os-release && echo "${ID-} ${ID_LIKE-}"); fi
    case " $id " in
        *' fedora '* | *' rhel '*)
            say 'On Fedora:' \
                'sudo dnf install python3 python3-devel gcc-c++ cmake ninja-build vulkan-headers vulkan-loader vulkan-volk-devel' \
                '    libshaderc-devel libshaderc-static glslang glslang-devel spirv-tools spirv-tools-devel spirv-headers-devel' \
                '    mesa-vulkan-drivers vulkan-validation-layers doctest-devel' \
                'and SPIRV-Cross from the Vulkan SDK (vulkan.lunarg.com), with VULKAN_SDK set.'
            ;;
        *' arch '*)
            say 'On Arch:' \
                'sudo pacman -S --needed python base-devel cmake ninja vulkan-headers vulkan-icd-loader volk shaderc glslang' \
                '    spirv-tools spirv-headers spirv-cross vulkan-swrast vulkan-validation-layers doctest'
            ;;
        *suse*)
            say 'On openSUSE:' \
                'sudo zypper install python3 python3-devel gcc-c++ cmake ninja vulkan-devel shaderc-devel' \
                '    glslang-devel spirv-tools-devel spirv-headers libvulkan_lvp vulkan-validationlayers doctest-devel' \
                'and volk and SPIRV-Cross, from the Vulkan SDK (vulkan.lunarg.com) where your release has no package.'
            ;;
        *' Darwin '*)
            say 'On macOS, with Homebrew (https://brew.sh); MoltenVK is the driver:' \
                'xcode-select --install' \
                'brew install python cmake ninja vulkan-headers vulkan-loader vulkan-volk molten-vk shaderc glslang' \
                '    spirv-tools spirv-headers spirv-cross vulkan-validationlayers doctest'
            ;;
        *MINGW* | *MSYS* | *CYGWIN*)
            say 'On Windows:' \
                'Python 3.10 or newer (python.org), the Visual Studio Build Tools (Desktop development with C++), CMake and Ninja,' \
                'and the Vulkan SDK (vulkan.lunarg.com) with the components volk, shaderc, glslang, SPIRV-Tools and SPIRV-Cross;' \
                'VULKAN_SDK must point at it. The driver comes with the graphics card.'
            ;;
        *)
            say "This system ($id) is not one that ./dev knows. Under its names for them, install:" \
                'Python 3.10 with headers and venv, a C++20 compiler, CMake 3.22, Ninja, the Vulkan headers and loader, volk,' \
                'shaderc and glslang (static libraries), SPIRV-Tools, SPIRV-Headers, SPIRV-Cross, and a Vulkan driver.'
            ;;
    esac
}

prepare_system() {
    find_python
    missing=$(missing_needs "$1") || exit 1
    if [ -n "$missing" ]; then provide "$missing"; fi
    options=$(missing_options "$1") || exit 1
    if [ -n "$options" ]; then install_options "$options"; fi
}

provide() { # the missing lines
    missing=$1
    if ! is_debian; then
        # Without dpkg a library can only be seen by its headers: what has none is left to the reader.
        missing=$(say "$missing" | grep -E '^python3|[|](cmd|cmake|header) ') || missing=
    fi
    [ -n "$missing" ] || return 0
    if is_debian; then
        install_with_apt "$missing"
        find_python
        [ -n "$PY" ] || die "python3 is installed but does not run; try: python3 --version"
    else
        say "${BOLD}Missing here:$CLEAR"
        say "$missing" | while IFS='|' read -r package other why; do
            case $other in 'header '* | 'cmake '*) package=$other ;; esac
            printf '  %-34s %s\n' "$package" "$why"
        done
        name_packages | sed 's/^/  /'
        die "./dev installs packages on Debian and Ubuntu only. Install what is named above, then run it again."
    fi
}
