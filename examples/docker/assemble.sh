#!/bin/sh
# Makes the root file system of the image: Node's program with its libraries, and svc-api.
# usage: assemble.sh <svc-api-…-image.tgz> <folder>
# It needs node, strip and ldd. The folder must not exist yet.
set -eu
package=$1 root=$2
app=$root/opt/svc-api

umask 022
mkdir -p "$app" "$root/bin" "$root/etc" "$root/proc" "$root/tmp" "$root/var/lib"
tar -xzf "$package" -C "$app" --no-same-owner
chmod -R go=u-w "$app"
# The driver of SQLite for this machine, not for others.
driver=$(node -p '`${process.platform}-${process.arch}.node`')
find "$app/dist/better-sqlite3/prebuilds" -type f ! -name "$driver" -exec rm {} +

node=$(node -p process.execPath)
cp "$node" "$root/bin/node"
ldd "$node" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
# What only debuggers read.
strip --strip-unneeded "$root/bin/node" "$app/dist/better-sqlite3/prebuilds/$driver"
# DNS is asked by what /etc/resolv.conf says, which the container gets; names of users have these.
echo 'svc-api:x:65532:65532::/var/lib/svc-api:/nonexistent' > "$root/etc/passwd"
echo 'svc-api:x:65532:' > "$root/etc/group"
