import { readFileSync } from 'node:fs';

/** Ends the process on a version of Node on which a dependency would crash. Plain JavaScript that any Node can read. */
export function refuseUnsupportedNode() {
  if (isSupported(process.versions.node)) return;
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  process.stderr.write(
    `Error: svc-api needs Node ${engines.node}; this is ${process.versions.node}. Install one of those versions, or run "npx svc-api" in a checkout, which brings its own.\n`,
  );
  process.exit(1);
}

/** `^22.22.2 || ^24.15.0 || >=26`, as in package.json. */
function isSupported(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  if (major === 22) return minor > 22 || (minor === 22 && patch >= 2);
  if (major === 24) return minor >= 15;
  return major >= 26;
}
