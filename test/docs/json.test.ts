import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, print, visit } from 'graphql';
import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { digestSecret } from '../../src/keys/secret/secret.ts';
import { ownCommands } from '../support/cli-here.ts';
import { SECRET, testCli } from '../support/cli.ts';
import { APP } from '../features/consent/support/consent.ts';
import { createPrincipal } from '../support/keys.ts';
import { ROOT } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';
import { Receiver, stopReceivers } from '../support/webhook.ts';
import { Consent } from '../../src/features/consent/consent.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
/** The part about commands, and the part about objects that several of them print. */
const [COMMANDS, OBJECTS] = read('docs/json.md').split('\n## Objects\n') as [string, string];
const DOCUMENTS = Array.from(COMMANDS.matchAll(/^```text\n(.*?)^```$/gms), ([, block]) => block!).join('');
const commands = await ownCommands();
/** Waits for approval, and prints no key. */
const WAITING = 'login';

/** A document that a command printed. */
interface Printed {
  id: string;
  document: object;
}

describe('docs/json.md', () => {
  let printed: Printed[];
  before(async () => {
    printed = await printAll();
  });
  after(stopReceivers);

  it('has every field that the commands print', () => {
    const withJson = Object.keys(commands).filter(
      (id) => commands[id]!.flags.json && !commands[id]!.hidden && id !== WAITING,
    );
    assert.deepEqual([...new Set(printed.map(({ id }) => id))].toSorted(), withJson.toSorted());
    const sections = sectionsOf(DOCUMENTS);
    const shared = namesIn(OBJECTS);
    const missing = printed.flatMap(({ id, document }) => {
      const verb = id.replace(/^apikey:/, '').replace(':', ' ');
      const own = sections.filter(({ verbs }) => id === 'apikey' || verbs.includes(verb) || verbs.includes('any'));
      const names = new Set([...shared, ...own.flatMap((section) => section.names)]);
      return namesOf(document).flatMap((name) => (names.has(name) ? [] : [`${name} of ${verb}`]));
    });
    assert.deepEqual(missing, []);
  });

  it('calls a secret "key", and a key without its secret "apiKey", as the commands do', () => {
    assert.ok(
      printed.some(({ document }) => 'key' in document) && printed.some(({ document }) => 'apiKey' in document),
    );
    assert.deepEqual(
      printed.flatMap(({ id, document }) => misnamed(document).map((field) => `${field} of ${id}`)),
      [],
    );
    const lines = DOCUMENTS.replaceAll(/^\/\/.*$/gm, '');
    const secrets = Array.from(lines.matchAll(/"key":? *(\S+)/g), ([, value]) => value);
    assert.deepEqual(new Set(secrets), new Set(['"svc_…",']));
    const keys = Array.from(lines.matchAll(/(\S+) KEY\b/g), ([, field]) => field);
    assert.deepEqual(new Set(keys), new Set(['"apiKey":', '[']));
  });
});

describe('docs/schema.graphql', () => {
  it('calls a secret "key", and nothing else', () => {
    const named: string[] = [];
    visit(parse(read('docs/schema.graphql')), {
      FieldDefinition: ({ name, type }) => void (name.value === 'key' && named.push(print(type))),
      InputValueDefinition: ({ name }) => void (name.value === 'key' && named.push('an argument')),
    });
    assert.deepEqual(
      named,
      ['String!', 'String!', 'String!'],
      'CreatedApiKey.key, RotatedApiKey.key and NewSecret.key',
    );
  });
});

/** Runs every command with --json. */
async function printAll(): Promise<Printed[]> {
  const cli = testCli();
  const folder = tempFolder();
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const receiver = await Receiver.start();
  const routes = [
    { host: 'a.example', path: '/**', allow: ['DOCKER:READ_ANY'] },
    { host: 'a.example', path: '/x', allow: ['DOCKER:READ_ANY'] },
    { host: 'a.example', path: '/x', methods: ['PUT'], allow: 'open' },
    { host: 'a.example', path: '/x/**', allow: 'key' },
    { host: 'b.example', path: '/**', allow: 'key', observe: true },
  ];
  const config = write(
    'svc-api.yaml',
    JSON.stringify({
      notices: { url: receiver.url },
      routes,
      publicUrl: 'https://keys.example.org',
      federation: [
        {
          name: 'deploys',
          issuer: { preset: 'github', url: 'http://127.0.0.1:1' },
          when: { repository_id: '1' },
          grant: ['role:GUEST'],
        },
      ],
    }),
  );
  const env = { SVC_API_CONFIG: config, SVC_API_NOTICES_SECRET: receiver.secret };
  const printed: Printed[] = [];
  const run = async (args: readonly string[], input = '') => {
    const { stdout, stderr } = await cli.run([...args, '--json'], { env, input });
    assert.match(stdout, /^\{/, `${args.join(' ')}: ${stderr}`);
    const document = JSON.parse(stdout) as object;
    printed.push({ id: [args.slice(0, 2).join(':'), args[0]!].find((each) => commands[each])!, document });
    return document;
  };
  const apikey = (verb: string, ...args: string[]) => run(['apikey', verb, ...args]);

  const { key } = (await apikey('create', 'CI', '--roles', 'VIEWER', '--expires-in', '1h')) as { key: string };
  await apikey('create', 'CI', '--roles', 'VIEWER');
  await apikey('create', 'Dry', '--roles', 'VIEWER', '--rate', '9/m', '--allow-from', '10.0.0.0/8', '--dry-run');
  await apikey('--create', '--name', 'Flag', '--roles', 'GUEST');
  await apikey('update', 'CI', '--description', 'Deploys', '--owner', 'Ada', '--tag', 'env=prod', '--metadata', '{}');
  for (const verb of ['disable', 'delete']) await apikey(verb, '--tag', 'env=prod', '--dry-run');
  await apikey('update', '--where-tag', 'env=prod', '--owner', 'Bea', '--dry-run');
  await apikey('list', '--review');
  await apikey('rotate', 'CI');
  await apikey('show', 'CI');
  await apikey('rotate', 'CI', '--rollback');
  await apikey('rotate', 'CI');
  await apikey('rotate', 'CI', '--finish');
  await apikey('disable', 'CI');
  await apikey('enable', 'CI');
  await apikey('list', '--limit', '1');
  await apikey('suggest', 'CI');
  await apikey('usage', 'CI');
  await apikey('usage', 'CI', '--by', 'tool');
  await run(['apikey', 'verify', '-'], key);
  await run(['apikey', 'verify', '-'], 'nonsense');
  await apikey('scan', write('leak', key));
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  await run(['explain', '-'], `${encode({ alg: 'ES256' })}.${encode({ iss: 'x', exp: 1 })}.x`);
  await apikey('scan', '--rules', 'gitleaks');
  const [one, other] = await withKeys({ database: cli.database }, async (keys) => {
    const { principal } = await createPrincipal(keys, { name: 'Parent', roles: ['ADMIN'] });
    await keys.create({ name: 'Child', roles: ['VIEWER'] }, principal);
    const ask = () =>
      keys.feature(Consent).ask({ client: APP, roles: ['GUEST'], permissions: [], address: '192.0.2.7' });
    return [await ask(), await ask()];
  });
  await withKeys({ database: cli.database }, async (keys) => {
    const { principal } = await createPrincipal(keys, { name: 'Ops', roles: ['ADMIN'] });
    const { apiKey } = await keys.create({ name: 'Hit', roles: ['GUEST'] }, OPERATOR);
    await keys.update(apiKey.id, { roles: ['ADMIN'] }, principal);
    const { request } = await keys.feature(Consent).ask({ client: APP, roles: ['GUEST'], permissions: [] });
    await keys.feature(Consent).approve(request, {}, principal);
  });
  await apikey('show', 'Ops');
  await apikey('disable', 'Ops');
  await apikey('rotate', 'Ops', '--disable-created');
  await apikey('revoke', 'Ops', '--undo-changes', '--dry-run');
  await apikey('revoke', 'Ops', '--undo-changes', '--yes');
  await apikey('revoke', 'Ops');
  await apikey('update', 'Parent', '--roles', 'GUEST');
  await apikey('show', 'Child');
  await run(['explain', 'Child', 'DOCKER:READ_ANY']);
  await apikey('update', 'Child', '--detach');
  await run(['requests', 'list']);
  await run(['requests', 'approve', one.handle, '--yes']);
  await run(['requests', 'deny', other.handle, '--yes']);
  const declared = write('keys.yaml', 'keys: [{ name: Declared, roles: [GUEST] }]');
  await apikey('apply', '-f', declared, '--dry-run');
  await apikey('apply', '-f', declared);
  await apikey('import', write('lines', JSON.stringify({ name: 'Old', sha256: digestSecret('x') })));
  await apikey('import', write('more', JSON.stringify({ name: 'Old', secret: 'password', roles: ['GUEST'] })));
  await apikey('log', '--limit', '500');
  await apikey('log', '--verify');
  await apikey('log', '--prune', '--until', '1d', '--yes');
  await apikey('export', '--to', join(folder, 'copy.sqlite'));
  await apikey('export', '--to', join(folder, 'keys.jsonl'));
  await run(['backup', join(folder, 'backup.sqlite')]);
  await apikey('disable', 'CI');
  await apikey('delete', 'Flag');
  await apikey('delete', 'Flag');
  await run(['restore', join(folder, 'backup.sqlite'), '--dry-run']);
  await run(['doctor', '--fix']);
  await run(['routes', 'check']);
  await run(['explain', 'GET', 'https://a.example/x', '--key', 'CI']);
  await run(['explain', 'GET', 'https://a.example//x']);
  await run(['routes', 'check', '--observed']);
  await run(['routes', 'template', 'sonarr']);
  await run(['proxy', 'haproxy', '--resource', 'WIKI', '--upstream', 'http://127.0.0.1:3000']);
  await run(['notices', 'test']);
  await run(['logout', '--server', 'http://127.0.0.1:9']);
  return printed;
}

/** The documents on a page: their commands and field names. */
function sectionsOf(text: string): { verbs: string[]; names: string[] }[] {
  return text.split(/(?<=^(?!\/\/).*\n)(?=\/\/)/m).map((section) => {
    const [title] = section.replace(/^\/\/ /, '').split(/[:;(\n]|, if/, 1) as [string];
    const verbs = title.split(', ').map((verb) => verb.replace(/ --.*| other.*| [A-Z]{2}.*/, '').trim());
    return { verbs, names: namesIn(section) };
  });
}

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/["`](\w+)["`]/g), ([, name]) => name!);
}

/** The names of all fields. Values before and after a change have other names. */
function namesOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(namesOf);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    ['before', 'after'].includes(name) && !Array.isArray(each) ? [name] : [name, ...namesOf(each)],
  );
}

/** Fields named "key" without a secret, and fields with a key not named "apiKey". */
function misnamed(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]: [string, unknown]) => {
    const here = `${path}/${name}`;
    const isSecret = typeof each === 'string' && SECRET.test(each);
    const isKey = typeof each === 'object' && each !== null && 'prefix' in each && 'unknownGrants' in each;
    const isRight =
      isSecret === (name === 'key' && !path.includes('/issued')) &&
      (!isKey || name === 'apiKey' || Array.isArray(value));
    return [...(isRight ? [] : [here]), ...misnamed(each, here)];
  });
}
