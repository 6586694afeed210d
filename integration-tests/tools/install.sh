# Installs what the checks need and the machine lacks, by package name. Sourced by integration-tests/run, which sets
# `tools`, the folder that takes whatever need not be installed for the whole machine.

BUF_VERSION=1.75.0
UV_VERSION=0.13.9

# A browser's driver, rules of accessibility, and what compares pictures.
PAGE_TOOLS=(playwright-core@1.65.1 axe-core@4.14.1 pixelmatch@8.0.0 pngjs@7.0.0)

# Every tool that is missing is tried, so that one run names all that cannot be had.
install_tools() {
    local missing=0
    need_rust_components || missing=1
    install_postgres || missing=1
    install_buf || missing=1
    install_python_tools || missing=1
    install_promtool || missing=1
    install_ironic || missing=1
    install_old_kubectl || missing=1
    install_old_flightctl || missing=1
    install_browser || missing=1
    return $missing
}

need_rust_components() {
    if cargo fmt --version && cargo clippy --version; then
        return
    fi
    echo "rustfmt and clippy are parts of the Rust toolchain: rustup component add rustfmt clippy"
    return 1
}

# apt_install PACKAGE...: for the whole machine, so only as root.
apt_install() {
    if ! command -v apt-get >/dev/null; then
        echo "please install what Debian calls: $*"
        return 1
    fi
    if ((EUID != 0)); then
        echo "please install as root: apt-get install --no-install-recommends $*"
        return 1
    fi
    # In run level 1 packages do not start their services: the tests start what they need themselves.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get -q update && apt-get -q install -y --no-install-recommends "$@"
}

install_postgres() {
    postgres_programs >/dev/null || apt_install postgresql
}

install_buf() {
    if [[ $(buf --version 2>/dev/null) == "$BUF_VERSION" ]]; then
        return
    fi
    command -v npm >/dev/null || apt_install npm || return
    npm install --prefix "$tools/npm" --ignore-scripts --no-audit --no-fund --no-save "@bufbuild/buf@$BUF_VERSION"
}

# The browser is Debian's; its driver brings none.
install_browser() {
    command -v chromium >/dev/null || apt_install chromium || return
    if [[ $(cat "$tools/page/installed.txt" 2>/dev/null) == "${PAGE_TOOLS[*]}" ]]; then
        return
    fi
    command -v npm >/dev/null || apt_install npm || return
    npm install --prefix "$tools/page" --ignore-scripts --no-audit --no-fund --no-save "${PAGE_TOOLS[@]}" &&
        echo "${PAGE_TOOLS[*]}" >"$tools/page/installed.txt"
}

buf() {
    "$tools/npm/node_modules/.bin/buf" "$@"
}

install_python_tools() {
    install_python_packages venv requirements.txt
}

# Checks alerts. Debian has it in the package of the server.
install_promtool() {
    command -v promtool >/dev/null || apt_install prometheus
}

# Ironic insists on other versions of what the other tools need, so it gets an environment of its own.
install_ironic() {
    install_python_packages ironic requirements-ironic.txt
}

# Two versions of a package need an environment each.
install_old_flightctl() {
    install_python_packages old-flightctl requirements-flightctl.txt
}

# install_python_packages FOLDER LIST: anew whenever the list has changed.
install_python_packages() {
    local wanted=integration-tests/tools/$2 venv=$tools/$1
    if cmp -s "$wanted" "$venv/installed.txt"; then
        return
    fi
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv || return
    install_uv && python3 -m venv --clear --without-pip "$venv" &&
        "$tools/uv/bin/uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" --requirement "$wanted" &&
        cp "$wanted" "$venv/installed.txt"
}

# Installs Python packages in seconds, where pip takes minutes.
install_uv() {
    if [[ $("$tools/uv/bin/uv" --version 2>/dev/null) == "uv $UV_VERSION"* ]]; then
        return
    fi
    python3 -m venv --clear "$tools/uv" &&
        "$tools/uv/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"
}

# The kubectl of Debian speaks as clients did years ago. It is unpacked rather than installed, beside whatever kubectl
# the machine has.
install_old_kubectl() {
    local folder=$tools/old-kubectl package=kubernetes-client
    if "$folder/usr/bin/kubectl" version --client >/dev/null 2>&1; then
        return
    fi
    rm -rf "$folder" && mkdir -p "$folder" || return
    (
        cd "$folder" || exit
        apt-get -q download "$package" || { apt-get -q update && apt-get -q download "$package"; }
    ) && dpkg-deb --extract "$folder"/"$package"_*.deb "$folder" && rm "$folder"/*.deb
}
