import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { digestCode } from '../../src/features/consent/codes.ts';
import { CONSENTS } from '../../src/features/consent/consent-request.ts';
import { openKeys } from '../../src/service/open-keys.ts';
import { openStore } from '../../src/store/open.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { ownCommands } from '../support/cli-here.ts';
import { type CreatedKey, type TestCli, testCli } from '../support/cli.ts';
import { APP } from '../features/consent/support/consent.ts';
import { documentedPages, examplesOf } from '../support/help-pages.ts';
import { postgresStore } from '../support/postgres.ts';
import { BIN, cleanEnv, type Finished, finished, ROOT, runCli } from '../support/process.ts';
import { startIssuer, type TestIssuer } from '../support/issuer.ts';
import { KEYS, TerminalSession } from '../support/pty.ts';
import { startServe } from '../support/serve.ts';
import { tempFolder } from '../support/temp.ts';
import { Receiver } from '../support/webhook.ts';
import { Consent } from '../../src/features/consent/consent.ts';
import { STORES } from '../support/features.ts';

/** The set-up in which a page's examples run. */
interface Desk {
  folder: string;
  cli: TestCli;
  /** The server for the examples, if the page needs one. */
  server?: { url: string; stop(): Promise<unknown> };
  /** Variables of a CI platform. */
  env?: NodeJS.ProcessEnv;
  /** The key in most examples. Its secret is in API_KEY and on stdin. */
  key: CreatedKey;
}

/** The trusted issuer of a page. */
let issuer: TestIssuer | undefined;

const ROUTES = `resources: [GRAFANA]
routes: [{ host: grafana.example.org, path: /**, allow: GRAFANA:READ_ANY }]
`;

/** Set-up before the examples of a page, besides a key named "CI deploy". */
const GIVEN: Record<string, (desk: Desk) => void | Promise<void>> = {
  'apikey --create': deleteKey,
  'apikey create': deleteKey,
  'requests approve': askForKey,
  'requests deny': askForKey,
  'apikey apply': ({ folder }) => copyFileSync(join(ROOT, 'examples/keys.yaml'), join(folder, 'keys.yaml')),
  'apikey delete': async ({ cli }) => void (await cli.given('Report')),
  'apikey exec': async (desk) => {
    const token = await federate(desk, ROUTES);
    const config = join(desk.folder, 'new.yaml');
    const server = await startServe(desk.cli.database, ['--port', '0', '--config', config]);
    desk.server = { url: server.url, stop: () => Promise.all([server.stop(), issuer?.stop()]) };
    desk.env = { SVC_API_ID_TOKEN: token };
    writeFileSync(join(desk.folder, 'deploy.sh'), '#!/bin/sh\ntest -n "$API_KEY"\n', { mode: 0o755 });
    writeFileSync(join(desk.folder, 'report.sh'), '#!/bin/sh\ntest -n "$API_KEY"\n', { mode: 0o755 });
    writeFileSync(join(desk.folder, 'query.json'), '{"query":"{me{name}}"}');
    writeFileSync(join(desk.folder, 'package.json'), '{"scripts":{"deploy":"test -n \\"$SVC_TOKEN\\""}}');
  },
  'apikey import': ({ folder }) => {
    const line = { name: 'Imported', sha256: 'ab'.repeat(32), roles: ['VIEWER'] };
    writeFileSync(join(folder, 'keys.jsonl'), `${JSON.stringify(line)}\n`);
  },
  'apikey log': async ({ folder, cli }) => {
    const { stdout } = await cli.run(['apikey', 'log', '--verify', '--json']);
    writeFileSync(join(folder, 'audit-head.txt'), (JSON.parse(stdout) as { head: string }).head);
  },
  'apikey scan': async ({ folder, key }) => {
    const git = 'git init --quiet && git -c user.name=a -c user.email=a@b commit --quiet --allow-empty --message first';
    assert.equal((await finished(spawn('sh', ['-c', git], { cwd: folder }))).code, 0);
    mkdirSync(join(folder, 'logs'));
    writeFileSync(join(folder, 'logs/service.log'), `key=${key.key}\n`);
    appendFileSync(join(folder, '.git/info/exclude'), 'logs\n');
  },
  restore: async ({ folder, cli }) => {
    assert.equal((await cli.run(['backup', join(folder, 'keys-2026-01-31.sqlite')])).code, 0);
    await deleteKey({ cli });
  },
  guard: (desk) => {
    const routes = '{ host: grafana.example.org, path: /**, allow: GRAFANA:READ_ANY, to: grafana }';
    const upstreams = '{ grafana: "http://127.0.0.1:3000" }';
    declareInFiles(desk, `resources: [GRAFANA, SONARR]\nupstreams: ${upstreams}\nroutes: [${routes}]\n`);
    writeFileSync(join(desk.folder, 'sonarr.key'), '0123456789abcdef', { mode: 0o600 });
    putCertificate(desk);
  },
  serve: putCertificate,
  edge: async (desk) => {
    const { key } = await desk.cli.given('Edge 1', { permissions: ['EDGE:READ_ANY'] });
    writeFileSync(join(desk.folder, 'edge.key'), key, { mode: 0o600 });
    desk.server = await startServe(desk.cli.database);
  },
  'notices test': async (desk) => {
    const receiver = await Receiver.start();
    desk.server = receiver;
    writeFileSync(join(desk.folder, 'notices.secret'), receiver.secret, { mode: 0o600 });
    const secretFile = join(desk.folder, 'notices.secret');
    declareInFiles(desk, `notices: { url: "${receiver.url}", secretFile: ${secretFile} }\n`);
  },
  'plugins install': givePlugin,
  'plugins uninstall': (desk) => {
    givePlugin(desk);
    const installed = { oclif: { plugins: [{ name: 'svc-api-team', type: 'user' }] } };
    mkdirSync(join(desk.folder, 'svc-api'), { recursive: true });
    writeFileSync(join(desk.folder, 'svc-api/package.json'), JSON.stringify(installed));
  },
  'routes check': declareRoutes,
  explain: async (desk) => {
    writeFileSync(join(desk.folder, 'token'), await federate(desk, ROUTES));
    desk.server = { url: '', stop: async () => issuer?.stop() };
  },
  login: async (desk) => void (desk.server = await startServe(desk.cli.database)),
  'apikey suggest': useKey,
  'apikey usage': useKey,
};

/** Exit codes other than 0. */
const EXITS: Record<string, number> = {
  'svc-api apikey apply -f keys.yaml --dry-run': 2,
  'svc-api apikey scan --revoke ./logs': 3,
};
/** Examples that prompt at a terminal, where they are cancelled. */
const ASKING = new Set([
  'svc-api apikey --create',
  'svc-api apikey delete',
  'svc-api requests approve WDJB-MJHT',
  'svc-api requests deny WDJB-MJHT',
  'svc-api restore keys-2026-01-31.sqlite --restore-revoked "CI deploy"',
]);
/** Examples that run until they are stopped. */
const isEndless = (example: string) => /^svc-api (serve|guard|edge)|--follow/.test(example);

/** Adds a federation rule. @returns a token that matches it */
async function federate(desk: Desk, more = ''): Promise<string> {
  issuer = await startIssuer();
  const rule = `{ name: Deploys, issuer: { url: "${issuer.url}" }, when: { sub: deploy }, grant: [role:VIEWER] }`;
  const audience = 'https://keys.example.org';
  declareInFiles(desk, `publicUrl: ${audience}\nfederation: [${rule}]\n${more}`);
  return issuer.sign({ aud: audience, sub: 'deploy', exp: Math.floor(Date.now() / 1000) + 300 });
}

function putCertificate({ folder }: Desk): void {
  writePair(pairOf('first'), folder);
}

function declareRoutes(desk: Desk): void {
  declareInFiles(desk, ROUTES);
}

function declareInFiles({ folder }: Desk, text: string): void {
  for (const name of ['svc-api/svc-api.yaml', 'new.yaml']) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** Requests a key as an application, with the code in the examples. */
async function askForKey({ cli }: Desk): Promise<void> {
  const keys = await openKeys({ database: cli.database, resources: ['GRAFANA'] });
  const wanted = { client: APP, roles: [], permissions: ['GRAFANA:READ_ANY' as const] };
  const { request } = await keys.feature(Consent).ask(wanted);
  await keys.close();
  const store = await openStore({ database: cli.database }, { features: STORES });
  const handleDigest = digestCode('user', 'WDJB-MJHT');
  await store.repository.write((writer) => writer.port(CONSENTS).update({ ...request, handleDigest }));
  await store.close();
}

async function useKey({ cli, key }: Pick<Desk, 'cli' | 'key'>): Promise<void> {
  const server = await startServe(cli.database);
  const headers = { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' };
  await fetch(`${server.url}/graphql`, { method: 'POST', headers, body: '{"query":"{me{name}}"}' });
  await server.stop();
}

async function deleteKey({ cli }: Pick<Desk, 'cli'>): Promise<void> {
  assert.equal((await cli.run(['apikey', 'delete', 'CI deploy'])).code, 0);
}

describe('the examples of the help', () => {
  for (const { command, examples } of documentedPages()) {
    it(`work as they are typed, in their order: ${command}`, async () => {
      const desk = await newDesk();
      if (examples.some((example) => example.includes('GRAFANA:'))) {
        declareRoutes(desk);
        const { code, stderr } = await type('svc-api apikey update "CI deploy" --permissions GRAFANA:UPDATE_ANY', desk);
        assert.equal(code, 0, stderr);
      }
      await GIVEN[command]?.(desk);
      try {
        for (const example of examples) {
          const { code, stderr, stdout } = await type(example, desk);
          assert.equal(code, EXITS[example] ?? 0, `${example}\n${stdout}${stderr}`);
        }
      } finally {
        await desk.server?.stop();
      }
    });
  }

  it('are on the page of every command', async () => {
    const commands = await ownCommands();
    const visible = Object.keys(commands).filter((id) => !commands[id]!.hidden);
    const pages = documentedPages().map(({ command }) => command.replace(/ --.*/, '').replaceAll(' ', ':'));
    assert.deepEqual([...new Set(pages)].toSorted(), visible.toSorted());
  });

  it('can be pasted at every width: they are broken only between words', async () => {
    const wordsOf = (example: string) => example.replaceAll(/ \\\n\s*/g, ' ');
    for (const { command, examples } of documentedPages()) {
      for (const width of [40, 200]) {
        const { stdout } = await runCli([...command.split(' '), '--help'], { env: { OCLIF_COLUMNS: String(width) } });
        assert.deepEqual(examplesOf(stdout).map(wordsOf), examples.map(wordsOf));
      }
    }
  });
});

async function newDesk(): Promise<Desk> {
  const [folder, cli] = [tempFolder(), testCli()];
  mkdirSync(join(folder, 'bin'));
  symlinkSync(BIN, join(folder, 'bin/svc-api'));
  const key = await cli.given('CI deploy', { roles: ['VIEWER'], permissions: ['SERVICES:UPDATE_ANY'] });
  return { folder, cli, key };
}

/** Types a command into a shell. */
async function type(example: string, { folder, cli, key, server, env: given }: Desk): Promise<Partial<Finished>> {
  const path = [join(folder, 'bin'), dirname(process.execPath), process.env['PATH'], join(ROOT, 'test/support/bin')];
  const env = cleanEnv({
    PATH: path.join(delimiter),
    SVC_API_DATABASE: cli.database,
    SVC_API_PORT: '0',
    XDG_CONFIG_HOME: folder,
    XDG_DATA_HOME: folder,
    API_KEY: key.key,
    LOG_LEVEL: 'error',
    ...given,
  });
  const typed = example
    .replace(/http:\/\/127\.0\.0\.1:4000|https:\/\/keys\.example\.org/, server?.url ?? '$&')
    .replace('postgres://svc@db.internal/keys', () => `'${postgresStore()}'`)
    .replace('/run/svc-api', folder);
  if (ASKING.has(example)) return cancelled(`cd "$DESK" && ${typed}`, { ...env, DESK: folder });
  const shell = spawn('sh', ['-c', isEndless(example) ? `exec ${typed}` : typed], { cwd: folder, env });
  shell.stdin.on('error', () => {}).end(key.key);
  if (example.startsWith('svc-api login')) void agreeTo(shell, cli);
  if (isEndless(example)) once(shell.stdout, 'data').then(() => shell.kill(), assert.fail);
  const result = await finished(shell);
  return result.signal === 'SIGTERM' ? { ...result, code: 0 } : result;
}

function givePlugin({ folder }: Desk): void {
  cpSync(join(ROOT, 'examples/plugins/svc-api-team'), join(folder, 'svc-api-team'), { recursive: true });
}

/** Approves a login. */
async function agreeTo({ stderr }: ChildProcessWithoutNullStreams, cli: TestCli): Promise<void> {
  const [, code] = / and type (\S+)$/.exec(String((await once(createInterface(stderr), 'line'))[0]))!;
  assert.equal((await cli.run(['requests', 'approve', code!, '--yes'])).code, 0);
}

async function cancelled(command: string, env: NodeJS.ProcessEnv): Promise<Partial<Finished>> {
  const terminal = new TerminalSession('sh', ['-c', command], env);
  try {
    await terminal.answer('?', KEYS.ctrlC);
    assert.equal(await terminal.end(), 130);
  } finally {
    terminal.close();
  }
  return { code: 0 };
}
