#!/usr/bin/env bash
# deb.sh [PROFILE]: makes the Debian package from the program that was built with that profile, `release` unless given. Needs
# cargo-deb (`cargo install cargo-deb`). The package is below target/debian.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
profile=${1:-release}
folder=target/${profile/#dev/debug}
pages=target/package

rm -rf "$pages"
mkdir -p "$pages/completions"
"$folder/reveille" man --directory "$pages/man"
"$folder/reveille" completions bash >"$pages/completions/reveille"
"$folder/reveille" completions zsh >"$pages/completions/_reveille"
"$folder/reveille" completions fish >"$pages/completions/reveille.fish"
cargo deb --package reveille --no-build --profile "$profile"
