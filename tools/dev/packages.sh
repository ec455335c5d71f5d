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

# Other systems: the same needs under the names that their package managers use. Prints the part of other_systems.txt for
# this one.
name_packages() {
    id=$(uname -s)
    # shellcheck source=/dev/null
    if [ -r /etc/os-release ]; then id=$(. /etc/os-release && echo "${ID-} ${ID_LIKE-}"); fi
    text=$(system_text "$id")
    say "${text:-$(system_text other)}"
}

system_text() { # NAMES: the first part for one of them
    here='' done=''
    while IFS= read -r line; do
        case $line in
            '#'*) continue ;;
            'system: '*)
                [ -z "$here" ] || done=yes
                for part in ${line#system: }; do
                    for name in $1; do
                        # MINGW64_NT-10.0 is a MINGW.
                        case $name in "$part" | "$part"[-_0-9]*) here=yes ;; esac
                    done
                done
                ;;
            *) [ -z "$here" ] || [ -n "$done" ] || say "$line" ;;
        esac
    done <tools/dev/other_systems.txt
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
