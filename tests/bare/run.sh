#!/usr/bin/env bash
# A newcomer's first minutes on a bare Debian or Ubuntu, in a chroot; needs root and the network.
#
#   debootstrap --variant=minbase bookworm ROOT      (Ubuntu: --components=main,universe resolute)
#   tests/bare/run.sh ROOT [TOOLCHAIN]
#
# CARGO_TMA=PATH takes a program that another run has installed, instead of compiling it again.
#
# ROOT gets the Rust of TOOLCHAIN (default: the one in use here), and what Rust itself asks for: a
# linker and certificates. Everything else is what `cargo tma doctor` names. There is no CUDA, and
# the feature `cuda` builds all the same. The last part checks that a package with kept PTX builds
# and runs without LLVM, and that a changed kernel is refused.
set -euo pipefail
root=$(realpath "${1:?the folder of a bare system}")
toolchain=$(realpath "${2:-$(rustc --print sysroot)}")
project=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")

in_root() { chroot "$root" /usr/bin/env -i HOME=/newcomer LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/newcomer/.cargo/bin:/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -euo pipefail -c "$1"; }
release() { for mounted in opt/rust proc dev; do umount -l "$root/$mounted" 2>/dev/null || true; done; }
trap release EXIT

release
mkdir -p "$root/opt/rust" "$root/project"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind "$toolchain" "$root/opt/rust"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
rm -rf "$root/project" "$root/newcomer" && mkdir -p "$root/project" "$root/newcomer"
git -C "$project" ls-files -z | tar -C "$project" --null -T - -c | tar -C "$root/project" -x

echo "== What Rust asks for"
. "$root/etc/os-release"
echo "$PRETTY_NAME"
# As Debian's installer and images have it; debootstrap leaves it out.
[ "$ID" != debian ] || echo "deb http://deb.debian.org/debian-security $VERSION_CODENAME-security main" \
    >"$root/etc/apt/sources.list.d/security.list"
in_root "apt-get update -qq && apt-get install -qq --no-install-recommends gcc libc6-dev ca-certificates >/dev/null"
in_root "apt-get remove -qq libllvm22 >/dev/null 2>&1 || true"
# A machine behind a proxy has certificates of its own.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

start=$SECONDS
# On a machine with other work the time on the clock says little; that of the processors does.
TIMEFORMAT='== %R s, %U s of processor time'
echo "== cargo install"
if [ -n "${CARGO_TMA:-}" ]; then
    echo "== not done: $CARGO_TMA is taken"
    install -D "$CARGO_TMA" "$root/newcomer/.cargo/bin/cargo-tma"
else
    time in_root "cd /project && cargo install --quiet --path cargo-tma"
fi

echo "== cargo tma doctor"
if in_root "cargo tma doctor"; then echo "the doctor misses nothing, without LLVM"; exit 1; fi
advice=$(in_root "cargo tma doctor --format json" | python3 -c '
import json, sys
missing = [check for check in json.load(sys.stdin) if check["state"] == "missing"]
assert [check["what"] for check in missing] == ["LLVM 22"], missing
print(missing[0]["advice"])' || true)
echo "== ${advice:?the doctor names no command}"
time in_root "$advice" >/dev/null
in_root "cargo tma doctor"

echo "== cargo tma new hello && cargo test"
time in_root "cd && cargo tma new hello && cd hello && cargo test"
echo "== $((SECONDS - start)) s from cargo install to a green test"

echo "== The feature cuda, without CUDA"
time in_root "cd ~/hello && cargo run --features cuda"

echo "== Kept PTX, without LLVM"
in_root "cd ~/hello && sed -i 's|back\" }|back\", default-features = false }|;
    s|^\[features\]|&\nllvm = [\"tma-codegen/llvm\"]|' Cargo.toml && cargo tma ptx --keep --features llvm"
in_root "apt-get remove -qq libllvm22 >/dev/null && rm -rf ~/hello/target"
in_root "cd ~/hello && cargo test"
in_root "cd ~/hello && sed -i 's/factor \* tile/2.0 * factor * tile/' src/lib.rs"
if refusal=$(in_root "cd ~/hello && cargo test" 2>&1); then
    echo "a changed kernel was not refused"; exit 1
fi
echo "$refusal" | grep "TMA0905: the PTX of \`scale\`" || { echo "$refusal"; exit 1; }
echo "== passed"
