import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openConnection } from '../../src/store/open.ts';
import { shortId } from '../../src/cli/short-id.ts';
import { testCli } from '../support/cli.ts';
import { APP } from '../features/consent/support/consent.ts';
import { postgresStore } from '../support/postgres.ts';
import { cleanEnv, finished, ROOT, startCli } from '../support/process.ts';
import { runProgramHere } from '../support/program-here.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';
import { Receiver, stopReceivers } from '../support/webhook.ts';
import { authenticate } from '../support/keys.ts';
import { Consent } from '../../src/features/consent/consent.ts';

interface Line extends Record<string, unknown> {
  level: number;
  msg: string;
}

interface Ran {
  stdout: string;
  lines: Line[];
  code: number | null;
}

const LEVELS = { debug: 20, trace: 10 } as const;
type Level = keyof typeof LEVELS;

/** Logged for every store that is opened. */
const STORE = 'the store was opened';
const CHANGE = 'a transaction ended';
const FILE = 'a file was opened for this process alone';
const CONNECTED = 'a connection to PostgreSQL was opened';
/** SQL statements can follow each of these. */
const OPENED = [STORE, FILE, CONNECTED];

/** A command, how to run it, and what it must log. */
interface Run {
  args: string[];
  says: string[];
  code?: number;
  env?: NodeJS.ProcessEnv;
  input?: string;
}
type Runs = Record<string, Run | Run[]>;

const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, { id: string; isAtTop?: boolean }>;
};

/** A store and other set-up in which each command has something to do. */
class World {
  readonly folder = tempFolder();
  readonly cli = testCli(join(this.folder, 'keys.sqlite'));
  /** Texts that must not be logged. */
  readonly hidden = new Set<string>();

  hide(secret: string): string {
    this.hidden.add(secret);
    // The part after the public id.
    this.hidden.add(secret.slice(17));
    const digest = createHash('sha256').update(secret).digest();
    for (const form of ['hex', 'base64', 'base64url'] as const) this.hidden.add(digest.toString(form));
    return secret;
  }

  async key(name: string, fields = {}): Promise<string> {
    return this.hide((await this.cli.given(name, fields)).key);
  }

  file(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  /** An application's request for a key. @returns its code */
  async asks(): Promise<string> {
    const asked = await withKeys({ database: this.cli.database }, (keys) =>
      keys
        .feature(Consent)
        .ask({ client: APP, roles: ['GUEST'], permissions: [], address: '192.0.2.7', keyExpiresIn: '12h' }),
    );
    this.hide(asked.deviceCode!);
    return asked.handle;
  }

  /** Hides the digests of keys whose secrets only the command knew. */
  async hideDigests(): Promise<void> {
    const connection = await openConnection({ database: this.cli.database, busyTimeoutMs: 100 });
    const rows = await connection.run((db) =>
      db.selectFrom('api_keys').select(['digest', 'previous_digest', 'checksum']).execute(),
    );
    await connection.close();
    for (const { digest, previous_digest: previous } of rows)
      for (const stored of [digest, previous])
        if (stored) {
          const bare = stored.replace(/^[^:$]*[:$]/, '');
          this.hidden.add(stored).add(bare);
          if (/^[0-9a-f]{64}$/.test(bare)) this.hidden.add(Buffer.from(bare, 'hex').toString('base64'));
        }
  }
}

/** Finds the log in stderr, and checks that none of it is in stdout. */
function read({ stdout, stderr, code }: { stdout: string; stderr: string; code: number | null }): Ran {
  assert.ok(!/"level":\d0/.test(stdout), stdout);
  const lines = stderr.split('\n').filter((line) => line.startsWith('{"level":'));
  return { stdout, code, lines: lines.map((line) => JSON.parse(line) as Line) };
}

/** Asserts the lines that every command writes at a level, and those that none writes. */
function check(command: string, level: Level, ran: Ran, { says, code = 0 }: Run, hidden: Set<string>): void {
  const { lines } = ran;
  const text = lines.map((line) => JSON.stringify(line)).join('\n');
  const about = (message: string) => `${command} at ${level}: ${message}\n${text}\n${ran.stdout}`;
  const found = (msg: string) => lines.find((line) => line.msg === msg);
  const begins = found('the command begins');
  assert.equal(begins?.['command'], `svc-api ${command.replaceAll(':', ' ')}`, about('it begins'));
  assert.deepEqual([begins['node'], begins.level], [process.version, 20]);
  const ended = found('the command ended');
  assert.deepEqual([ended?.['exit'], typeof ended?.['durationMs'], ran.code], [code, 'number', code], about('it ends'));
  assert.ok(found('the arguments were read')?.['storeFrom'], about('which store it is'));
  for (const said of says) assert.ok(found(said), about(said));
  if (says.includes(STORE)) assert.equal(typeof found(STORE)!['schema'], 'number', about('the schema'));
  if (says.includes(CHANGE))
    assert.ok(
      lines.some(({ msg, changed, durationMs }) => msg === CHANGE && Number(changed) > 0 && Number(durationMs) > 0),
      about('rows are changed'),
    );
  const statements = lines.filter(({ level: at, msg }) => at === 10 && msg === 'statement');
  assert.equal(
    statements.length > 0,
    level === 'trace' && OPENED.some((said) => says.includes(said)),
    about('statements'),
  );
  for (const secret of hidden) assert.ok(secret === '' || !text.includes(secret), about(`it shows ${secret}`));
  assert.doesNotMatch(text, /svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{20}/, about('a secret'));
}

/** All commands except those that serve and `login`, which waits for approval. */
async function runsIn(world: World, webhook: Receiver): Promise<Runs> {
  const { folder, cli } = world;
  world.hide(webhook.secret.slice('whsec_'.length));
  const anna = await world.key('Anna', { roles: ['ADMIN'] });
  await withKeys({ database: cli.database }, async (keys) => {
    const authenticated = await authenticate(keys, anna);
    assert.ok('principal' in authenticated);
    const { key: secret } = await keys.create({ name: 'Of Anna', roles: ['GUEST'] }, authenticated.principal);
    world.hide(secret);
  });
  for (const name of ['Off', 'On', 'Old', 'Gone', 'Leaked']) await world.key(name, { roles: ['GUEST'] });
  const imported = world.hide(`legacy-${'x'.repeat(40)}`);
  const config = world.file(
    'svc-api.yaml',
    `routes: [{ host: '*', path: /x, allow: DOCKER:READ_ANY }]\nnotices: { url: "${webhook.url}" }\n`,
  );
  const keys = world.file('keys.yaml', 'keys: [{ name: Declared, roles: [GUEST] }]\n');
  const lines = world.file(
    'keys.jsonl',
    `${JSON.stringify({ name: 'Imported', secret: imported, roles: ['GUEST'] })}\n`,
  );
  const found = world.file('found.txt', `key = ${anna}\n`);
  const [approved, denied] = [await world.asks(), await world.asks()];
  const changes = [STORE, CHANGE, 'a checkpoint was made'];
  const reads = [STORE, 'the store was read'];
  const hook = 'the hooks of the host were asked';
  const kept = { SVC_API_CONFIG: config, SVC_API_NOTICES_SECRET: webhook.secret };
  return {
    apikey: {
      args: ['--create', '--name', 'Made', '--roles', 'GUEST'],
      says: [...changes, 'the fields of a key were validated', 'the hooks of the host were not asked'],
    },
    'apikey:create': {
      args: ['Created', '--roles', 'VIEWER', '--json'],
      says: [...changes, 'the configuration was read', hook, 'the fields of a key were validated'],
      env: kept,
    },
    'apikey:apply': { args: ['-f', keys, '--secrets-dir', join(folder, 'secrets')], says: [...changes, hook] },
    'requests:approve': { args: [approved, '--yes'], says: [...changes, hook] },
    'requests:deny': { args: [denied, '--yes'], says: changes },
    explain: [
      { args: ['Anna', 'DOCKER:READ_ANY'], says: [...reads, hook] },
      { args: ['GET', 'http://a/x'], says: ['the configuration was read', hook], env: kept },
      // No rules exist; the token is not shown.
      { args: ['-'], says: ['the configuration was read'], env: kept, input: anna, code: 1 },
    ],
    autocomplete: [
      { args: ['bash'], says: [] },
      {
        args: ['bash', '--complete'],
        says: reads,
        env: { COMP_LINE: 'svc-api apikey show A', COMP_POINT: '21' },
      },
    ],
    'apikey:delete': { args: ['Gone', '--yes'], says: changes },
    'apikey:disable': { args: ['Off'], says: changes },
    'apikey:revoke': { args: ['Leaked', '--undo-changes', '--yes'], says: changes },
    'apikey:enable': { args: ['Off'], says: changes },
    'apikey:exec': { args: ['--roles', 'GUEST', '--', 'true'], says: [...changes, 'another command was run'] },
    'apikey:export': [
      { args: ['--with-digests'], says: reads },
      { args: ['--to', join(folder, 'copy.sqlite')], says: changes },
    ],
    'apikey:help': { args: [], says: [] },
    'apikey:import': { args: [lines], says: changes },
    'apikey:list': [
      { args: [], says: [...reads, hook] },
      { args: ['--review', '--attest', 'All are in use.'], says: [...changes, hook] },
    ],
    'apikey:log': { args: ['--verify'], says: reads },
    'requests:list': { args: [], says: reads },
    'apikey:rotate': { args: ['Old', '--grace', '1h'], says: changes },
    'apikey:scan': { args: [found], says: ['the store was asked for the key of a secret', STORE, CHANGE], code: 3 },
    'apikey:show': { args: ['Anna'], says: [...reads, hook] },
    'apikey:suggest': { args: ['Anna'], says: reads },
    'apikey:update': [
      { args: ['On', '--description', 'Changed'], says: changes },
      { args: ['Of Anna', '--detach'], says: changes },
    ],
    'apikey:usage': { args: ['Anna'], says: reads },
    'apikey:verify': { args: ['-'], says: ['the store was asked for the key of a secret', STORE], input: anna },
    backup: {
      args: [join(folder, 'backup.sqlite')],
      says: [STORE, 'the file of the store was copied', FILE],
    },
    restore: { args: [join(folder, 'backup.sqlite'), '--yes'], says: [...changes.slice(0, 1), CHANGE] },
    doctor: [
      { args: [], says: [FILE] },
      { args: ['--fix'], says: [FILE, STORE] },
    ],
    'notices:test': { args: [], says: ['a notice was sent', 'the configuration was read'], env: kept },
    plugins: { args: [], says: [] },
    'plugins:install': { args: [join(folder, 'nothing.tgz')], says: [], env: { XDG_DATA_HOME: folder }, code: 1 },
    'plugins:uninstall': { args: ['nothing'], says: [], code: 2 },
    'routes:check': { args: ['--observed'], says: ['the configuration was read', hook, STORE], env: kept },
    proxy: { args: ['nginx', '--resource', 'INFO', '--upstream', 'http://a'], says: [] },
    'routes:template': { args: ['sonarr'], says: [] },
  };
}

/** A command that runs until it is stopped. */
class Serving {
  readonly child: ChildProcess;
  readonly url: Promise<string>;
  #stderr = '';
  #stdout = '';

  constructor(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string) {
    this.child = startCli(args, { env: cleanEnv(env), cwd });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    const { promise, resolve } = Promise.withResolvers<string>();
    this.url = promise;
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
      const [, url] = /^Listening on (\S+)\n/.exec(this.#stdout) ?? [];
      if (url !== undefined) resolve(url);
    });
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Waits for a complete line of the log. */
  async says(message: string): Promise<void> {
    await until(() => this.#stderr.includes(`"msg":"${message}"}\n`) || this.child.exitCode !== null);
  }

  async ended(signal?: NodeJS.Signals): Promise<Ran> {
    const ended = finished(this.child);
    if (signal) this.child.kill(signal);
    const { code } = await ended;
    return read({ stdout: this.#stdout, stderr: this.#stderr, code });
  }
}

/** The requests in a log. */
function requestsIn(lines: readonly Line[]): Record<string, unknown>[] {
  return lines.filter(({ msg }) => msg === 'a request ended');
}

for (const level of ['debug', 'trace'] as const) {
  describe(`every command at LOG_LEVEL=${level}`, () => {
    const checked = new Set<string>();
    let world: World;
    let webhook: Receiver;
    let env: NodeJS.ProcessEnv;
    before(async () => {
      world = new World();
      webhook = await Receiver.start();
      env = { SVC_API_DATABASE: world.cli.database, XDG_DATA_HOME: world.folder, LOG_LEVEL: level };
    });
    after(stopReceivers);

    /** Runs a command and checks its log. */
    async function run(command: string, expected: Run): Promise<Ran> {
      const { args, input = '' } = expected;
      const typed = [...command.split(':'), ...args];
      const ran = read(await runProgramHere(typed, { env: { ...env, ...expected.env }, input, cwd: world.folder }));
      for (const [secret] of ran.stdout.matchAll(/svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/g)) world.hide(secret);
      await world.hideDigests();
      check(command, level, ran, expected, world.hidden);
      checked.add(command);
      return ran;
    }

    it('logs what it does: which store by which rule, in what time, and no secret', async () => {
      for (const [command, expected] of Object.entries(await runsIn(world, webhook)))
        for (const each of [expected].flat()) await run(command, each);
    });

    it('logs each request to serve, reloads, leases and listeners, and requests to other servers', async () => {
      const limited = await world.key('Limited', { roles: ['VIEWER'], limits: ['100/m'] });
      const config = world.file('served.yaml', "routes: [{ host: '*', path: /x, allow: DOCKER:READ_ANY }]\n");
      // At trace level, also test several processes that share the log.
      const workers = level === 'trace' ? ['--workers', '2'] : [];
      const serving = new Serving(['serve', '--port', '0', '--config', config, ...workers], env, world.folder);
      const url = await serving.url;
      const login = new Serving(['login', '--server', url], env, world.folder);
      const ask = async (key: string | undefined, query: string) => {
        const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
        const headers = { 'content-type': 'application/json', ...authorization };
        await (await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })).text();
      };
      const forbidden = 'mutation { deleteApiKeys(ids: ["x"]) { deleted } }';
      for (const query of ['{ me { name } }', '{ me { name } }', forbidden]) await ask(limited, query);
      await ask(undefined, '{ me { name } }');
      await ask(world.hide(limited.replace(/....$/, 'AAAA')), '{ me { name } }');
      const forwarded = { method: 'GET', proto: 'http', host: 'a.example', uri: '/x?secret=t0ken' };
      const headers = Object.entries(forwarded).map(
        ([name, value]) => [`X-Forwarded-${name}`, value] as [string, string],
      );
      await fetch(`${url}/auth/caddy`, { headers: [['Authorization', `Bearer ${limited}`], ...headers] });
      writeFileSync(config, "routes: [{ host: '*', path: /y, allow: DOCKER:READ_ANY }]\n");
      serving.child.kill('SIGHUP');
      await serving.says('the configuration was loaded');
      await until(() => /type ([B-Z]{4}-[B-Z]{4})/.test(login.stderr));
      const [, code] = /type ([B-Z]{4}-[B-Z]{4})/.exec(login.stderr)!;
      await withKeys({ database: world.cli.database }, async (keys) => {
        const consent = keys.feature(Consent);
        await consent.approve(await consent.show({ userCode: code! }), {}, OPERATOR);
      });
      const loggedIn = await login.ended();
      await world.hideDigests();
      check('login', level, loggedIn, { args: [], says: ['a server was asked'] }, world.hidden);
      const place = ['--server', url];
      const { lines: remote } = await run('apikey:list', { args: place, says: ['a server was asked'] });
      const asked = remote.find(({ msg }) => msg === 'a server was asked')!;
      assert.deepEqual([asked['operation'], asked['status'], asked['server']], ['query apiKeys', 200, url]);
      await run('logout', { args: [...place, '--yes'], says: ['a server was asked'] });
      await serving.says('a transaction ended');

      const served = await serving.ended('SIGTERM');
      await world.hideDigests();
      const says = [STORE, CHANGE, 'a listener was opened', 'limits were leased', 'a checkpoint was made'];
      check('serve', level, served, { args: [], says: [...says, 'the configuration was loaded'] }, world.hidden);
      const requests = requestsIn(served.lines);
      const prefix = `${limited.slice(0, 17)}…`;
      const graphql = requests.filter(({ endpoint }) => endpoint === 'graphql').slice(0, 5);
      assert.deepEqual(
        graphql.map(({ status, decision, code: problem, prefix: shown }) => [status, decision, problem, shown]),
        [
          [200, 'allowed', undefined, prefix],
          [200, 'allowed', undefined, prefix],
          [200, 'refused', 'FORBIDDEN', prefix],
          [401, 'refused', 'UNAUTHENTICATED', undefined],
          [401, 'refused', 'UNAUTHENTICATED', undefined],
        ],
      );
      const [first, second, third] = graphql;
      assert.deepEqual([first!['keyFrom'], first!['permissions']], ['store', ['ME:READ_OWN']]);
      if (workers.length === 0) assert.equal(second!['keyFrom'], 'cache');
      assert.deepEqual(Object.keys(first!['stages'] as object), [
        'authenticate',
        'read',
        'prepare',
        'execute',
        'answer',
      ]);
      assert.equal((third!['reason'] as { event: string }).event, 'request forbidden');
      const forward = requests.find(({ endpoint }) => endpoint === 'forward-auth');
      assert.deepEqual(
        [forward!['decision'], forward!['route'], forward!['permissions']],
        ['allowed', 'route 1 (*/x)', ['DOCKER:READ_ANY']],
      );
      assert.ok(!JSON.stringify(served.lines).includes('t0ken'));
      for (const command of ['serve', 'login']) checked.add(command);
    });

    it('logs each request to guard', async () => {
      const upstream = createServer((_, response) => void response.end('behind'));
      await new Promise<void>((resolve) => void upstream.listen(0, '127.0.0.1', resolve));
      const config = world.file('guarded.yaml', "routes: [{ host: '*', path: /a, allow: DOCKER:READ_ANY }]\n");
      const key = await world.key('Guarded');
      const behind = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
      const guarding = new Serving(['guard', behind, '--port', '0', '--config', config], env, world.folder);
      const url = await guarding.url;
      const headers = { authorization: `Bearer ${key}` };
      for (const path of ['/a?password=t0ken', '/b']) await (await fetch(url + path, { headers })).text();
      await (await fetch(`${url}/a`)).text();
      const guarded = await guarding.ended('SIGTERM');
      upstream.close();
      await world.hideDigests();
      check('guard', level, guarded, { args: [], says: [STORE, CHANGE, 'a listener was opened'] }, world.hidden);
      assert.deepEqual(
        requestsIn(guarded.lines).map(({ status, decision, code, route, prefix, keyFrom, permissions }) => ({
          status,
          decision,
          code,
          route,
          prefix,
          keyFrom,
          permissions,
        })),
        [
          {
            status: 200,
            decision: 'allowed',
            code: undefined,
            route: 'route 1 (*/a)',
            prefix: `${key.slice(0, 17)}…`,
            keyFrom: 'store',
            permissions: ['DOCKER:READ_ANY'],
          },
          { ...NOBODY, status: 403, code: 'FORBIDDEN', route: undefined },
          { ...NOBODY, status: 401, code: 'UNAUTHENTICATED', route: 'route 1 (*/a)' },
        ],
      );
      assert.ok(!JSON.stringify(guarded.lines).includes('t0ken'));
      checked.add('guard');
    });

    it('logs each request to an edge, without its token', async () => {
      const token = await world.key('Edge', { permissions: ['EDGE:READ_ANY'] });
      const key = await world.key('Followed', { roles: ['VIEWER'] });
      const serving = new Serving(['serve', '--port', '0'], env, world.folder);
      const origin = new URL(await serving.url).origin;
      const args = ['--origin', origin, '--token-file', world.file('edge.key', token), '--port', '0'];
      const following = new Serving(['edge', ...args], env, world.folder);
      const headers = { authorization: `Bearer ${key}` };
      await (await fetch(`${await following.url}/auth/traefik?permission=INFO:READ_ANY`, { headers })).text();
      const followed = await following.ended('SIGTERM');
      await serving.ended('SIGTERM');
      await world.hideDigests();
      check('edge', level, followed, { args: [], says: ['a listener was opened'] }, world.hidden);
      assert.ok(followed.lines.some(({ msg, keys }) => msg === 'the keys were loaded' && Number(keys) > 1));
      assert.equal(requestsIn(followed.lines).length, 1);
      checked.add('edge');
    });

    it('logs a store on PostgreSQL, without its password', async () => {
      const url = new URL(postgresStore());
      url.username ||= 'postgres';
      url.password ||= 'a-password-that-nobody-asks-for';
      world.hidden.add(url.password);
      const database = url.href;
      const at = { ...env, SVC_API_DATABASE: database };
      const runs: [string, string[], string[]][] = [
        ['apikey:create', ['On PostgreSQL', '--roles', 'GUEST'], [STORE, 'the store is migrated', CHANGE]],
        ['apikey:list', [], [STORE, 'the store was read', CONNECTED]],
        ['doctor', [], [CONNECTED]],
      ];
      for (const [command, args, says] of runs) {
        const ran = read(await runProgramHere([...command.split(':'), ...args], { env: at, cwd: world.folder }));
        for (const [secret] of ran.stdout.matchAll(/svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/g)) world.hide(secret);
        check(command, level, ran, { args, says }, world.hidden);
        const opened = ran.lines.find(({ msg }) => msg === STORE);
        if (opened)
          assert.deepEqual(
            [opened['dialect'], /:\/\/[^/]*:[^/]*@/.test(opened['store'] as string)],
            ['postgres', false],
          );
      }
    });

    it('leaves no command of the manifest out', () => {
      assert.deepEqual(
        [...checked].toSorted(),
        Object.values(MANIFEST.commands)
          .map((command) => shortId(command) ?? command.id)
          .toSorted(),
      );
    });
  });
}

/** A request without a known key. */
const NOBODY = { decision: 'refused', prefix: undefined, keyFrom: undefined, permissions: undefined };
