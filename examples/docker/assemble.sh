#!/bin/sh
# Makes the root file system of the image: Node's program with its libraries, and svc-api.
# usage: assemble.sh <svc-api-…-image.tgz> <folder>
# It needs node, strip, ldd and gzip, and Debian's files of licenses. The folder must not exist yet.
set -eu
package=$1 root=$2
app=$root/opt/svc-api

umask 022
mkdir -p "$app" "$root/bin" "$root/etc" "$root/proc" "$root/tmp" "$root/var/lib"
tar -xzf "$package" -C "$app" --no-same-owner
chmod -R go=u-w "$app"
# The driver of SQLite for this machine, not for others.
driver=$(node -p '`${process.platform}-${process.arch}.node`')
find "$app/node_modules/better-sqlite3/prebuilds" -type f ! -name "$driver" -exec rm {} +

node=$(node -p process.execPath)
cp "$node" "$root/bin/node"
ldd "$node" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
# The licenses of both: who passes the image on passes these on. libgcc_s has that of libstdc++.
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

# What only debuggers read.
strip --strip-unneeded "$root/bin/node" "$app/node_modules/better-sqlite3/prebuilds/$driver"
# DNS is asked by what /etc/resolv.conf says, which the container gets; names of users have these.
echo 'svc-api:x:65532:65532::/var/lib/svc-api:/nonexistent' > "$root/etc/passwd"
echo 'svc-api:x:65532:' > "$root/etc/group"
