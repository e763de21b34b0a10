#!/bin/sh
# Makes the root file system of the image: Node's program with its libraries, and svc-api.
# usage: assemble.sh <svc-api-…-image.tgz> <folder>
# Needs node, strip, ldd and gzip, and Debian's license files. The folder must not exist yet.
set -eu
package=$1 root=$2
app=$root/opt/svc-api

umask 022
mkdir -p "$app" "$root/bin" "$root/etc" "$root/proc" "$root/tmp" "$root/var/lib"
tar -xzf "$package" -C "$app" --no-same-owner
chmod -R go=u-w "$app"
# Keep only the SQLite driver for this machine.
driver=$(node -p '`${process.platform}-${process.arch}.node`')
find "$app/node_modules/better-sqlite3/prebuilds" -type f ! -name "$driver" -exec rm {} +

node=$(node -p process.execPath)
cp "$node" "$root/bin/node"
ldd "$node" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
# The licenses of Node and its libraries, which must be passed on with the image. libgcc_s has that of libstdc++.
licenses=$root/usr/share/doc
mkdir -p "$licenses/node" "$root/usr/share/common-licenses"
prefix=$(dirname "$(dirname "$node")")
for license in "$prefix/LICENSE" "$prefix"/node_modules/node-*/LICENSE "$prefix/share/doc/nodejs/copyright"; do
  if [ -f "$license" ] && [ ! -e "$licenses/node/LICENSE.gz" ]; then gzip -9nc "$license" >"$licenses/node/LICENSE.gz"; fi
done
[ -e "$licenses/node/LICENSE.gz" ] || { echo "assemble.sh: there is no license beside $node" >&2; exit 1; }
for package in libc6 libstdc++6; do
  mkdir "$licenses/$package"
  cp -L "/usr/share/doc/$package/copyright" "$licenses/$package/copyright"
done
cp -L /usr/share/common-licenses/LGPL-2.1 /usr/share/common-licenses/GPL-3 "$root/usr/share/common-licenses/"

# Remove symbols, which only debuggers read.
strip --strip-unneeded "$root/bin/node" "$app/node_modules/better-sqlite3/prebuilds/$driver"
# Names of users. For DNS, the container gets an /etc/resolv.conf.
echo 'svc-api:x:65532:65532::/var/lib/svc-api:/nonexistent' > "$root/etc/passwd"
echo 'svc-api:x:65532:' > "$root/etc/group"
