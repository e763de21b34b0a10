import { fileURLToPath } from 'node:url';
import { storePath } from '../stores.ts';
import { folder } from './common.ts';

/** The command with several workers, which node:cluster starts with the arguments of this process. */
const cli = fileURLToPath(new URL('../../bin/run.js', import.meta.url));
const workers = process.argv[3]!;
process.argv.splice(1, Infinity, cli, 'serve', '--port', '0', '--workers', workers, '--database', storePath(folder));
await import(cli);
