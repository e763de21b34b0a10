import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { cleanEnv, finished, ROOT } from '../support/process.ts';
import { freePort } from '../support/port.ts';
import { tempFolder } from '../support/temp.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const blocks = Array.from(README.matchAll(/^```sh\n(.*?)^```$/gms), (match) => match[1]!);
/** Run elsewhere: these two by `.ci/run` and by the packed tests, the plugin's in a host by the packed tests. */
const elsewhere = (block: string) => block.startsWith('npm ci') || block.includes('acme');

/** Makes one shell script of the tour: `serve` runs beside the rest, and is waited for. Once is enough for npx, which is slow. */
function scriptOf(tour: readonly string[], port: number): string {
  const npx = 'npx() { shift; node bin/run.js "$@"; }';
  const serve = `svc_serve() {
    node bin/run.js serve & server=$!
    trap 'kill $server' EXIT
    until node -e 'fetch(process.argv[1]).then(() => process.exit(0), () => process.exit(1))' http://127.0.0.1:${port}/healthz; do sleep 0.1; done
  }`;
  const [first, ...others] = tour.map((block) => {
    const step = block.startsWith('npx svc-api serve')
      ? 'svc_serve'
      : block.replaceAll('127.0.0.1:4000', `127.0.0.1:${port}`);
    // What a key was used for is written within seconds: nobody types as fast as this script does.
    const patient = step.replace(/^npx svc-api apikey suggest .*$/m, 'until $& | grep .; do sleep 0.1; done');
    return `${patient}\necho; echo "-- next"`;
  });
  return ['set -eu', first, npx, serve, ...others].join('\n');
}

describe('the README', () => {
  it('has the two commands as they are run', () => {
    assert.deepEqual(
      blocks.filter((block) => block.startsWith('npm ci')),
      ['npm ci && npm start\n', 'npm ci && npm test\n'],
    );
    assert.match(readFileSync(join(ROOT, '.ci/run'), 'utf8'), /grep -m1 -x 'npm ci && npm test' README\.md/);
  });

  it('has a tour whose every line works, typed in order', async () => {
    const port = await freePort();
    const home = tempFolder();
    const tour = blocks.filter((block) => !elsewhere(block));
    assert.ok(tour.length >= 9);
    // Last in the path: a curl of our own for machines that have none.
    const path = [process.env['PATH'], join(ROOT, 'test/support/bin')].join(delimiter);
    const shell = spawn('sh', ['-c', scriptOf(tour, port)], {
      cwd: ROOT,
      env: cleanEnv({ PATH: path, XDG_DATA_HOME: home, SVC_API_PORT: String(port), LOG_LEVEL: 'error' }),
    });
    const { stdout, stderr, code } = await finished(shell);
    assert.equal(code, 0, stderr);
    const outputs = stdout.split('-- next').map((output) => output.trim());
    const [created, json, managed, applied, served, used, executed, rotated, replaced, child, deleted] = outputs;
    assert.equal(created, '');
    assert.match(json!, /"key": "svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}"/);
    assert.match(
      managed!,
      /^svc_\S+\nCI deploy\tACTIVE\tVIEWER\t.*\nDocker bot\t.*\nContractor\tACTIVE\t.*\nAPI key "Contractor" is disabled$/,
    );
    assert.match(
      applied!,
      /\nPlan: 3 to create, 1 to update, 0 to delete, 0 unchanged\.\n.*\nApplied: 3 created, 1 updated, 0 deleted, 0 unchanged\.\nApplied: 0 created, 0 updated, 0 deleted, 4 unchanged\.$/s,
    );
    assert.match(served!, new RegExp(`^Listening on http://127.0.0.1:${port}$`));
    const reply = JSON.parse(used!) as {
      data: { me: object; apiKeys: null };
      errors: { path: string[]; extensions: object }[];
    };
    assert.deepEqual(reply.data.me, { name: 'CI deploy', roles: ['VIEWER'] });
    assert.deepEqual(reply.errors[0]!.extensions, { code: 'FORBIDDEN', missing: ['API_KEY:READ_OWN'] });
    const temporary = (JSON.parse(executed!) as { data: { me: { description: string; expiresAt: string } } }).data.me;
    assert.equal(temporary.description, 'Temporary, for the command "sh". Deleted when it ends.');
    assert.ok(Date.parse(temporary.expiresAt) > Date.now());
    assert.match(
      rotated!,
      /^1\t.*\tCREATE\t.*\n\d+\t.*\tUPDATE\t.*\n\d+\t.*\tROTATE\t.*\nyes: role VIEWER\n--permissions INFO:READ_ANY,ME:READ_OWN$/,
    );
    assert.equal(replaced, '');
    assert.match(child!, /"key":"svc_/);
    assert.match(deleted!, /^Successfully deleted 1 API key\n\{\n {2}"deleted": 2,/);
    assert.ok(existsSync(join(home, 'svc-api/keys.sqlite')));
  });
});
