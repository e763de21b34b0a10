#!/bin/sh
# Makes the root file system of the image: Node's program with its libraries, and svc-api with what it needs.
# usage: assemble.sh <svc-api-….tgz> <package-lock.json> <folder>
# It needs node, npm, strip and ldd. The folder must not exist yet.
set -eu
package=$1 lockfile=$2 root=$3
app=$root/opt/svc-api

umask 022
mkdir -p "$app" "$root/bin" "$root/etc" "$root/proc" "$root/tmp" "$root/var/lib"
tar -xzf "$package" -C "$app" --strip-components=1 --no-same-owner
cp "$lockfile" "$app/package-lock.json"

# The versions of the lockfile, without what is for development alone; the driver of PostgreSQL among them.
(
  cd "$app"
  npm pkg delete devDependencies scripts
  npm pkg set 'dependencies.pg=^8.16.0'
  npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
)
# What the program never reads: documentation, declarations, source maps, and drivers for other machines.
driver=$(node -p '`${process.platform}-${process.arch}.node`')
rm -rf "$app/docs" "$app/examples"
find "$app" -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -exec rm {} +
find "$app/dist/better-sqlite3/prebuilds" -type f ! -name "$driver" -exec rm {} +

node=$(node -p process.execPath)
cp "$node" "$root/bin/node"
strip "$root/bin/node"
ldd "$node" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
# DNS is asked by what /etc/resolv.conf says, which the container gets; names of users have these.
echo 'svc-api:x:65532:65532::/var/lib/svc-api:/nonexistent' > "$root/etc/passwd"
echo 'svc-api:x:65532:' > "$root/etc/group"
