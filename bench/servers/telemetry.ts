import { fileURLToPath } from 'node:url';
import { storePath } from '../stores.ts';
import { folder } from './common.ts';

/** The command with telemetry flags, and OpenTelemetry's sampler with its argument. */
const [flags = '', sampler, ratio] = (process.argv[3] ?? '').split(';');
const cli = fileURLToPath(new URL('../../bin/run.js', import.meta.url));
process.env['LOG_LEVEL'] = 'info';
for (const name of Object.keys(process.env)) if (name.startsWith('OTEL_') && !sampler) delete process.env[name];
if (sampler) Object.assign(process.env, { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio });
process.argv.splice(1, Infinity, cli, 'serve', '--port', '0', '--database', storePath(folder), ...flags.split(' '));
process.argv = process.argv.filter((argument) => argument !== '');
await import(cli);
