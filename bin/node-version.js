import { createRequire } from 'node:module';

/**
 * The message for a Node version on which a dependency would crash; undefined on a supported one. This file is plain
 * JavaScript that any Node can run.
 */
export function unsupportedNode() {
  if (isSupported(process.versions.node)) return undefined;
  const { engines } = createRequire(import.meta.url)('../package.json');
  return `svc-api needs Node ${engines.node}; this is ${process.versions.node}. Install one of those versions`;
}

/** Exits on an unsupported version. */
export function refuseUnsupportedNode() {
  const reason = unsupportedNode();
  if (reason === undefined) return;
  process.stderr.write(`Error: ${reason}, or run "npx svc-api" in a checkout, which brings its own.\n`);
  process.exit(1);
}

/** `^22.22.2 || ^24.15.0 || >=26`, as in package.json. */
function isSupported(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  if (major === 22) return minor > 22 || (minor === 22 && patch >= 2);
  if (major === 24) return minor >= 15;
  return major >= 26;
}
