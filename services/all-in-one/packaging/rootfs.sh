#!/usr/bin/env bash
# rootfs.sh BINARIES FOLDER [PROGRAM...]: makes the root file system of a container with these programs, `reveille` and all parts
# unless given, and with nothing beside them but the libraries that they load, certificate authorities and one user.
set -euo pipefail

binaries=${1:?folder with the built programs}
root=${2:?folder to make}
shift 2
programs=("$@")
if ((${#programs[@]} == 0)); then
    programs=(reveille)
    for part in gateway component-registry session-manager status-evaluator power-controller config-coordinator \
        host-provisioner fleet-manager insight simulator; do
        programs+=("reveille-$part")
    done
fi
authorities=${AUTHORITIES:-/etc/ssl/certs/ca-certificates.crt}

# put FILE: the file behind a path, at the same path.
put() {
    install -D -m 0755 "$(readlink -f "$1")" "$root$1"
}

# libraries PROGRAM: paths of the libraries and of the loader that a program names; none for a static one.
libraries() {
    ldd "$1" 2>/dev/null | grep -oE '/[^ ]+' | sort -u || true
}

mkdir -p "$root"/{etc,tmp,usr/bin,var/lib/reveille}
chmod 1777 "$root/tmp"
for program in "${programs[@]}"; do
    install -m 0755 "$binaries/$program" "$root/usr/bin/$program"
    for library in $(libraries "$binaries/$program"); do
        [[ -e $root$library ]] || put "$library"
    done
done
install -D -m 0644 "$authorities" "$root/etc/ssl/certs/ca-certificates.crt"
echo 'reveille:x:65532:65532:Reveille:/var/lib/reveille:/sbin/nologin' >"$root/etc/passwd"
echo 'reveille:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
# The settings refer to no time zone, and all times are UTC.
if ((EUID == 0)); then chown 65532:65532 "$root/var/lib/reveille"; fi
