// An external data source: reads a query as JSON from stdin, and prints an object of strings to stdout, or an error to
// stderr with an exit code other than 0. It returns no secrets.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const { name = '' } = JSON.parse(readFileSync(0, 'utf8'));
const { error, status, stdout, stderr } = spawnSync('svc-api', ['apikey', 'show', `--name=${name}`, '--json'], {
  encoding: 'utf8',
});
if (error) fail(`svc-api cannot be run: ${error.message}`);
if (status !== 0) fail(stdout.startsWith('{') ? JSON.parse(stdout).error : stderr);
const { id, prefix, status: state, expiresAt, roles, permissions } = JSON.parse(stdout);
const facts = { id, name, prefix, status: state, expiresAt: expiresAt ?? 'never' };
process.stdout.write(JSON.stringify({ ...facts, roles: roles.join(','), permissions: permissions.join(',') }));
