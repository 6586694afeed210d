#!/usr/bin/env bash
# deb.sh: makes the Debian package from target/release/reveille. Needs cargo-deb (`cargo install cargo-deb`). The package is
# below target/debian.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
reveille=target/release/reveille
pages=target/package

rm -rf "$pages"
mkdir -p "$pages/completions"
"$reveille" man --directory "$pages/man"
"$reveille" completions bash >"$pages/completions/reveille"
"$reveille" completions zsh >"$pages/completions/_reveille"
"$reveille" completions fish >"$pages/completions/reveille.fish"
cargo deb --package reveille --no-build
