import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { configFile } from '../../support/config-file.ts';
import { testCli } from '../../support/cli.ts';
import { readDirectly } from '../../support/direct.ts';
import { finished, startCli } from '../../support/process.ts';
import { startServe } from '../../support/serve.ts';
import { migratedStore, tempFolder } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

describe('exec --learn', () => {
  /**
   * Runs a script with `exec --learn`. It runs until a server has recorded this many grants.
   * @param exitCode an expression, which can be a promise
   */
  const learn = async (database: string, exitCode: string, grants: number, program = process.execPath) => {
    const script = `Promise.resolve(${exitCode}).then((code) => process.stdin.resume().on('end', () => process.exit(code)))`;
    const args = ['apikey', 'exec', '--learn', '--database', database, '--', program, '-e', script];
    const child = startCli(args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const result = finished(child);
    const written = () => readDirectly(database, 'select * from used_grants');
    await Promise.race([until(async () => (await written()).length >= grants), result]);
    child.stdin!.end();
    const { code, stderr } = await result;
    return { code, stderr };
  };

  /** The same for a command that calls a server. @returns also the remaining keys */
  const learnFrom = async (script: (url: string) => string, grants: number, config = '', program?: string) => {
    const database = await migratedStore();
    const server = await startServe(database, ['--port', '0', '--config', configFile(config)]);
    try {
      const learned = await learn(database, script(server.url), grants, program);
      const { stdout } = await testCli(database).run(['apikey', 'list', '--json']);
      return { ...learned, keys: (JSON.parse(stdout) as { keys: unknown[] }).keys };
    } finally {
      await server.stop();
    }
  };

  let [asked, routed]: Awaited<ReturnType<typeof learnFrom>>[] = [];
  let unused: Awaited<ReturnType<typeof learn>>;
  before(async () => {
    const program = join(tempFolder(), '42');
    symlinkSync(process.execPath, program);
    const query = JSON.stringify({ query: '{ info { name } apiKeys { edges { node { name } } } }' });
    // Concurrently, because each waits some seconds for servers to finish writing.
    [asked, routed, unused] = await Promise.all([
      learnFrom(
        (url) => `fetch('${url}/graphql', {
          method: 'POST',
          headers: { authorization: 'Bearer ' + process.env.API_KEY, 'content-type': 'application/json' },
          body: ${JSON.stringify(query)},
        }).then(async (answer) => (await answer.json()).errors ? 9 : 3)`,
        2,
        '',
        program,
      ),
      learnFrom(
        (url) => `Promise.all(['/api/pages/1', '/api/pages/2', '/home'].map((path) => fetch('${url}/auth/traefik', {
          headers: { authorization: 'Bearer ' + process.env.API_KEY, 'x-forwarded-method': 'GET',
            'x-forwarded-proto': 'https', 'x-forwarded-host': 'wiki.example.org', 'x-forwarded-uri': path,
            'x-forwarded-for': '192.0.2.1' },
        }).then(({ status }) => status))).then((all) => all.join() === '200,200,200' ? 3 : 9)`,
        3,
        `routes:
  - { host: wiki.example.org, path: /api/**, methods: [GET], allow: key }
  - { host: wiki.example.org, path: /**, allow: DOCKER:READ_ANY, observe: true }
  - { host: wiki.example.org, path: /other, allow: key }
`,
      ),
      learn(await migratedStore(), '0', 0),
    ]);
  });

  it('says which permissions a command used, as flags and as an entry of a file, and deletes its key', () => {
    const { code, stderr, keys } = asked!;
    assert.equal(code, 3, stderr);
    const [, flags, entry] = /:\n {2}(.*)\nFor a file for apply:\n([^]*)$/.exec(stderr)!;
    assert.equal(flags, '--permissions API_KEY:READ_ANY,INFO:READ_ANY');
    // YAML would read this name as a number, so it is quoted.
    assert.deepEqual(parse(entry!), [{ name: '42', permissions: ['API_KEY:READ_ANY', 'INFO:READ_ANY'] }]);
    assert.deepEqual(keys, []);
  });

  it('names the routes that let its requests pass, in any way', () => {
    const { code, stderr } = routed!;
    assert.equal(code, 3, stderr);
    assert.match(stderr, /--permissions DOCKER:READ_ANY\n/);
    assert.match(
      stderr,
      /Routes that let it pass:\n {2}GET wiki\.example\.org\/api\/\*\*\n {2}wiki\.example\.org\/\*\*\n$/,
    );
  });

  it('reports that no server has seen the key', () => {
    assert.deepEqual([unused.code, unused.stderr], [0, '"node" did not use its key: no server received it.\n']);
  });
});
