import { fileURLToPath } from 'node:url';
import { upstreamPort } from '../guard.ts';
import { storePath } from '../stores.ts';
import { folder } from './common.ts';

/** The command, as users start it. */
const cli = fileURLToPath(new URL('../../bin/run.js', import.meta.url));
const upstream = `http://127.0.0.1:${upstreamPort(folder)}`;
const options = ['--permission', 'DASHBOARD:READ_ANY', '--port', '0', '--database', storePath(folder)];
process.argv.splice(1, Infinity, cli, 'guard', upstream, ...options);
await import(cli);
