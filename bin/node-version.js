import { readFileSync } from 'node:fs';

/** What to tell who runs this on a version of Node on which a dependency would crash; nothing on a good one. Plain JavaScript that any Node can read. */
export function unsupportedNode() {
  if (isSupported(process.versions.node)) return undefined;
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return `svc-api needs Node ${engines.node}; this is ${process.versions.node}. Install one of those versions, or run "npx svc-api" in a checkout, which brings its own.`;
}

/** Ends the process on such a version. */
export function refuseUnsupportedNode() {
  const reason = unsupportedNode();
  if (reason === undefined) return;
  process.stderr.write(`Error: ${reason}\n`);
  process.exit(1);
}

/** `^22.22.2 || ^24.15.0 || >=26`, as in package.json. */
function isSupported(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  if (major === 22) return minor > 22 || (minor === 22 && patch >= 2);
  if (major === 24) return minor >= 15;
  return major >= 26;
}
