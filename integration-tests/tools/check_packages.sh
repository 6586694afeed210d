#!/usr/bin/env bash
# check_packages.sh BINARIES: checks the unit of systemd, and the root file system of the image, with the built programs.
set -uo pipefail

binaries=$(realpath "${1:?folder with the built programs}")
packaging=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../services/all-in-one/packaging")
# Not among temporary files, of which nothing may be executable.
folder=$(mktemp --directory --tmpdir="$binaries")
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# check NAME COMMAND...: a check passes when its command does; its output is shown when it does not.
check() {
    local name=$1
    shift
    if "$@" >"$folder/output" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        sed 's/^/          /' "$folder/output"
    fi
}

unit_is_understood() {
    sed "s#/usr/bin/reveille#$binaries/reveille#" "$packaging/systemd/reveille.service" >"$folder/reveille.service"
    systemd-analyze verify --man=no "$folder/reveille.service"
}

# The exposure is a figure from 0 to 100; beyond 50 systemd calls a service exposed.
unit_is_hardened() {
    systemd-analyze security --offline=true --threshold=20 --no-pager "$packaging/systemd/reveille.service"
}

settings_are_taken() {
    "$binaries/reveille" serve --config "$packaging/reveille.toml" --print-config
}

command_of_the_container_is_taken() {
    local command
    command=$(sed -n 's/^Exec=reveille //p' "$packaging/quadlet/reveille.container")
    # shellcheck disable=SC2086 # Words of a command.
    "$binaries/reveille" ${command/\/etc\/reveille\/reveille.toml/$packaging/reveille.toml} --print-config
}

rootfs_is_made() {
    "$packaging/rootfs.sh" "$binaries" "$folder/root" reveille
}

# Who has no right to change the root takes the loader and the libraries of the image, which is nearly the same.
rootfs_runs() {
    if ((EUID == 0)) && chroot / true; then
        chroot --userspec=65532:65532 "$folder/root" /usr/bin/reveille --version
    else
        local loader
        loader=$(find "$folder/root" -name 'ld-linux*' | head -n 1)
        "$loader" --library-path "$(dirname "$(find "$folder/root" -name 'libc.so*')")" "$folder/root/usr/bin/reveille" --version
    fi
}

rootfs_has_nothing_else() {
    local others
    others=$(find "$folder/root" -type f -printf '/%P\n' | grep -vE '^/(usr/bin/reveille$|lib(64)?/|usr/lib/|etc/(passwd|group|nsswitch.conf|ssl/certs/ca-certificates.crt)$)')
    [[ -z $others ]] || { echo "$others" && false; }
}

if command -v systemd-analyze >/dev/null; then
    check "systemd understands the unit" unit_is_understood
    check "the unit is hardened" unit_is_hardened
else
    echo "systemd-analyze is missing: the unit was not checked"
fi
check "the packaged settings are taken" settings_are_taken
check "the command of the container is taken" command_of_the_container_is_taken
check "the root file system of the image is made" rootfs_is_made
check "it runs without root" rootfs_runs
check "it has the program, its libraries and no other file" rootfs_has_nothing_else
echo "$passed passed, $failed failed"
((failed == 0))
