import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { upstreamPort } from '../guard.ts';
import { storePath } from '../stores.ts';
import { folder } from './common.ts';

/** The command, as users start it. */
const cli = fileURLToPath(new URL('../../bin/run.js', import.meta.url));
const upstream = `http://127.0.0.1:${upstreamPort(folder)}`;
const mode = process.argv[3];
const asked = mode === undefined ? [upstream, '--permission', 'DASHBOARD:READ_ANY'] : ['--config', configOf(mode)];
process.argv.splice(1, Infinity, cli, 'guard', ...asked, '--port', '0', '--database', storePath(folder));
await import(cli);

/** A configuration with a hundred services, or with one that has tools. */
function configOf(mode: string): string {
  const secret = join(folder, 'upstream-key');
  writeFileSync(secret, 'c2VjcmV0', { mode: 0o600 });
  const send = mode === 'swap' ? { send: { 'X-Api-Key': { file: secret } } } : {};
  const names = Array.from({ length: mode === 'swap' || mode === 'open' ? 100 : 1 }, (_, index) => `service${index}`);
  const allow = mode === 'open' ? 'open' : 'DASHBOARD:READ_ANY';
  const mcp = mode === 'mcp' ? { mcp: { tools: ['read_*'] } } : {};
  const path = (name: string) => (names.length > 1 ? `/${name}/**` : '/mcp');
  const file = join(folder, `guard-${mode}.yaml`);
  const config = {
    upstreams: Object.fromEntries(names.map((name) => [name, { url: upstream, ...send }])),
    routes: names.map((name) => ({ host: '*', path: path(name), allow, to: name, ...mcp })),
  };
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
