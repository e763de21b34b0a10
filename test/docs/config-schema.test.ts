import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load-config.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { ROOT } from '../support/process.ts';

const schema = JSON.parse(readFileSync(join(ROOT, 'schemas/config.schema.json'), 'utf8')) as object;
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false, strictTypes: false });
const isValid = ajv.compile(schema);
const EXAMPLE = join(ROOT, 'examples/svc-api.yaml');

const isRead = async (value: unknown) =>
  'config' in (await readConfig(value, { file: '/etc/svc-api.yaml', ofHost: { resources: ['BACKUP'] } }));
const route = (fields: object) => ({ routes: [{ host: '*', path: '/', allow: 'key', ...fields }] });

const provider = (oidc: object) => ({
  oidc: { issuer: 'https://id.example.org', 'client-id': 'keys', 'client-secret': { file: 'secret' }, ...oidc },
  grant: { '*': ['role:VIEWER'] },
});

const client = (fields: object) => ({ consent: 'both', clients: [{ id: 'wiki-sync', name: 'Wiki sync', ...fields }] });

const TAKEN: unknown[] = [
  null,
  {},
  { $schema: './config.schema.json' },
  ...[[], ['WIKI'], ['W', 'A_1', 'DOCKER'], [{ name: 'WIKI' }, { name: 'VAULT', credentials: true }]].map(
    (resources) => ({ resources }),
  ),
  ...['shown', 'hidden'].map((builtinResources) => ({ builtinResources })),
  ...[{}, { EDITOR: ['ME:READ_OWN', ' backup : Read_Any '] }].map((roles) => ({ roles })),
  ...[['bearer'], ['basic', 'bearer'], [{ header: 'X-Api-Key' }, { header: 'x' }]].map((credentials) => ({
    credentials,
  })),
  ...[[], ['10.0.0.0/8', '10.1.2.3', '::1', 'FD00::/8']].map((trust) => ({ trust })),
  { routes: [] },
  route({}),
  ...['*', 'example.org', '*.Example.org', '192.0.2.1', '[::1]', 'bücher.example'].map((host) => route({ host })),
  ...['/', '/a/', '/*/b/**', '/%2A', '/é'].map((path) => route({ path })),
  ...[['GET'], ['GET', 'HEAD'], ['M-SEARCH'], ['GET', 'GET']].map((methods) => route({ methods })),
  ...['open', 'me:read_own', ['ME:READ_OWN', 'BACKUP:READ_ANY'], { any: ['ME:READ_OWN'] }].map((allow) =>
    route({ allow }),
  ),
  route({ preflight: 'open' }),
  route({ observe: true }),
  { expect: [] },
  ...['Remote-User', 'X-Forwarded-User', 'X-authentik-username'].map((header) => ({
    trust: ['127.0.0.1'],
    people: { header, grant: { admins: ['role:ADMIN', ' role: viewer '], '*': ['BACKUP:READ_ANY'] } },
  })),
  { trust: ['::1'], people: { header: 'Remote-User', groups: 'Remote-Groups', grant: { 'a b': ['role:ADMIN'] } } },
  ...[{}, { groups: 'roles' }, { issuer: 'http://127.0.0.1:8080/realms/a' }].map((oidc) => ({
    people: provider(oidc),
  })),
  { expect: ['GET https://example.org/ without a key is forbidden'] },
  ...[[], ['*'], ['https://a.example', 'http://localhost:3000', 'https://[::1]:8080', 'tauri://localhost']].map(
    (origins) => ({ cors: { origins } }),
  ),
  { cors: {} },
  { tls: { cert: 'cert.pem', key: '/etc/key.pem' } },
  ...[
    {},
    { default: [] },
    { default: ['1/s', '100/m', '5/h', '9/d', '100000/month'] },
    { failedCredentials: '5/h' },
  ].map((limits) => ({ limits })),
  ...[
    {},
    { keepAlive: 1, maxConnections: 1_000_000, maxConnectionsPerAddress: 9, maxVerifiedKeys: 9, metricsHost: '::' },
  ].map((server) => ({ server })),
  ...[
    {},
    { maxLifetime: '90d', requireExpiry: true, grantableByKeys: [], maxKeysPerCreator: 1, disableUnused: '60d' },
    { maxLifetime: '90s', requireExpiry: false, maxKeysPerCreator: 1_000_000, disableUnused: '24h' },
    { grantableByKeys: ['VIEWER', 'guest', 'docker:update_any', 'BACKUP:READ_ANY'] },
  ].map((policy) => ({ policy })),
  ...['A', 'Acme keys & more'].map((title) => ({ title })),
  ...['on', 'off', 'permitted'].map((introspection) => ({ introspection })),
  ...['https://keys.example.org', 'http://192.0.2.1:4000', 'https://example.org/a/keys'].map((publicUrl) => ({
    publicUrl,
  })),
  { clients: [] },
  { consent: 'code', clients: { 'metadata-documents': ['claude.ai'], 'dynamic-registration': true, registered: [] } },
  { consent: 'both', clients: { 'metadata-documents': 'any' } },
  ...['off', 'device', 'code', 'both'].map((consent) => ({ consent })),
  client({}),
  client({ redirects: [] }),
  client({ redirects: ['https://app.example.org/done', 'http://127.0.0.1/done', 'com.example.app:/done'] }),
];

const REFUSED: unknown[] = [
  { builtinResources: 'none' },
  ...['keys.example.org', 'https://keys.example.org/', 'https://example.org/keys/', 'https://example.org/a?b', 7].map(
    (publicUrl) => ({ publicUrl }),
  ),
  ...[true, 'on', null].map((consent) => ({ consent })),
  { clients: {} },
  { consent: 'both', clients: { 'metadata-documents': 'all' } },
  { consent: 'both', clients: { 'metadata-documents': [] } },
  { consent: 'both', clients: { 'dynamic-registration': 'yes' } },
  client({ refreshes: 1 }),
  { clients: ['wiki-sync'] },
  { clients: [{ id: 'wiki-sync' }] },
  client({ id: 'svc-api' }),
  client({ id: 'wiki sync' }),
  client({ name: '' }),
  client({ name: 'x'.repeat(61) }),
  client({ secret: 'x' }),
  client({ redirects: 'https://app.example.org/' }),
  client({ redirects: ['app.example.org'] }),
  [],
  'resources',
  7,
  { colour: 'red' },
  { $schema: 7 },
  ...[null, 'WIKI', {}, ['wiki'], [''], ['1A'], ['A'.repeat(65)], [7], [{}], [{ name: 'wiki' }]].map((resources) => ({
    resources,
  })),
  ...[[{ name: 'WIKI', credentials: 'yes' }], [{ name: 'WIKI', secret: true }], [['WIKI']]].map((resources) => ({
    resources,
  })),
  ...[null, 'PUBLISH', ['READ_ANY'], ['publish'], [''], [7], Array.from({ length: 33 }, (_, at) => `A${at}`)].map(
    (actions) => ({
      actions,
    }),
  ),
  { resources: Array.from({ length: 1001 }, (_, index) => `R${index}`) },
  ...[null, [], { editor: ['ME:READ_OWN'] }, { ADMIN: ['ME:READ_OWN'] }, { EDITOR: [] }, { EDITOR: 'ME:READ_OWN' }].map(
    (roles) => ({ roles }),
  ),
  ...[{ EDITOR: ['VIEWER'] }, { EDITOR: ['ME:F-LY'] }, { EDITOR: [7] }, { EDITOR: null }].map((roles) => ({ roles })),
  ...[null, [], 'bearer', ['Bearer'], ['cookie'], [{ header: 'X Key' }], [{ header: '' }], [{}], [7]].map(
    (credentials) => ({ credentials }),
  ),
  ...[[{ header: 'X', value: 1 }], [{ header: 'X_Key' }]].map((credentials) => ({
    credentials,
  })),
  ...[null, '10.0.0.0/8', ['localhost'], ['10.0.0.0/'], ['10.0.0.0/1234'], [''], [7]].map((trust) => ({ trust })),
  ...[null, {}, ['/'], [{}], [{ host: '*', path: '/' }], [{ host: '*', allow: 'key' }]].map((routes) => ({ routes })),
  ...['a', '', 7].map((path) => route({ path })),
  route({ host: 7 }),
  ...[[], 'GET', ['get'], ['Get'], [''], [7], null].map((methods) => route({ methods })),
  ...['everybody', '', [], null, true, {}, { any: [] }, { all: ['ME:READ_OWN'] }, { any: ['ME'] }, ['key']].map(
    (allow) => route({ allow }),
  ),
  ...['closed', true, null].map((preflight) => route({ preflight })),
  route({ name: 'a' }),
  ...[null, 'GET', [7]].map((expect) => ({ expect })),
  ...[
    null,
    ['*'],
    { origin: '*' },
    { origins: '*' },
    { origins: ['a.example'] },
    { origins: ['https://a.example/'] },
  ].map((cors) => ({ cors })),
  ...[null, {}, { cert: 'a' }, { cert: 'a', key: '' }, { cert: 'a', key: 7 }, { cert: 'a', key: 'b', ca: 'c' }].map(
    (tls) => ({ tls }),
  ),
  ...[null, { keepAlive: 0 }, { keepAlive: 3601 }, { maxVerifiedKeys: 1.5 }, { metricsHost: '' }, { port: 1 }].map(
    (server) => ({ server }),
  ),
  ...[null, { default: '1/s' }, { default: ['1/w'] }, { default: ['x'] }, { failedCredentials: 20 }, { max: 1 }].map(
    (limits) => ({ limits }),
  ),
  ...[null, [], '90d', { maxlifetime: '90d' }].map((policy) => ({ policy })),
  ...[90, '90', '3 months', '90D', '-1d', ''].map((maxLifetime) => ({ policy: { maxLifetime } })),
  ...['yes', 1, null].map((requireExpiry) => ({ policy: { requireExpiry } })),
  ...['VIEWER', ['VIEWER '.repeat(2)], [7], ['DOCKER:F-LY'], null].map((grantableByKeys) => ({
    policy: { grantableByKeys },
  })),
  ...[0, -1, 1.5, 1_000_001, '50'].map((maxKeysPerCreator) => ({ policy: { maxKeysPerCreator } })),
  ...[60, '60', null].map((disableUnused) => ({ policy: { disableUnused } })),
  ...[
    null,
    [],
    {},
    { header: 'Remote-User' },
    { grant: { '*': ['role:VIEWER'] } },
    { header: 'Remote User', grant: { '*': ['role:VIEWER'] } },
    { header: 'Remote-User', grant: {} },
    { header: 'Remote-User', grant: { admins: [] } },
    { header: 'Remote-User', grant: { admins: 'role:ADMIN' } },
    { header: 'Remote-User', grant: { 'a,b': ['role:ADMIN'] } },
    { header: 'Remote-User', grant: { ' a': ['role:ADMIN'] } },
    { header: 'Remote-User', grant: { a: ['ADMIN'] } },
    { header: 'Remote-User', grant: { a: ['DOCKER:F-LY'] } },
    { ...provider({}), header: 'Remote-User' },
    { ...provider({}), groups: 'Remote-Groups' },
    provider({ issuer: 'id.example.org' }),
    provider({ issuer: undefined }),
    provider({ 'client-id': '' }),
    provider({ 'client-secret': 'secret' }),
    provider({ 'client-secret': {} }),
    provider({ 'client-secret': { file: '' } }),
    provider({ scope: 'openid' }),
  ].map((people) => ({ trust: ['127.0.0.1'], people })),
  { people: { header: 'Remote-User', grant: { admins: ['role:ADMIN'] } } },
  { trust: [], people: { header: 'Remote-User', grant: { admins: ['role:ADMIN'] } } },
  ...['', ' a', 'a'.repeat(61), 1].map((title) => ({ title })),
  ...[null, true, 'yes', 'ON'].map((introspection) => ({ introspection })),
];

describe('the JSON Schema of the configuration', () => {
  it('accepts valid configurations', async () => {
    for (const value of TAKEN) {
      assert.equal(await isRead(value), true, `read: ${JSON.stringify(value)}`);
      assert.equal(isValid(value), true, `${JSON.stringify(value)}: ${JSON.stringify(isValid.errors)}`);
    }
  });

  it('refuses invalid ones', async () => {
    for (const value of REFUSED) {
      assert.equal(await isRead(value), false, `read: ${JSON.stringify(value)}`);
      assert.equal(isValid(value), false, JSON.stringify(value));
    }
  });

  it('accepts those whose fault it cannot express', async () => {
    for (const value of [
      { resources: ['WIKI', 'WIKI'] },
      { roles: { EDITOR: ['NOWHERE:READ_ANY'] } },
      { credentials: ['basic', 'basic'] },
      { policy: { maxLifetime: '0d' } },
      { policy: { maxLifetime: '9999d' } },
      { policy: { disableUnused: '23h' } },
      { policy: { grantableByKeys: ['BOSS'] } },
      { credentials: [{ header: 'Authorization' }] },
      { trust: ['10.0.0.0/33'] },
      { trust: ['::1'], people: { header: 'Cookie', grant: { a: ['role:ADMIN'] } } },
      { trust: ['::1'], people: { header: 'Remote-User', groups: 'remote-user', grant: { a: ['role:ADMIN'] } } },
      { trust: ['::1'], people: { header: 'Remote-User', grant: { a: ['role:BOSS'] } } },
      { people: provider({ issuer: 'http://id.example.org' }) },
      { people: provider({ issuer: 'https://id.example.org?a' }) },
      route({ host: 'a b' }),
      route({ path: '/**/a' }),
      { routes: [...route({}).routes, ...route({ allow: 'open' }).routes] },
      { expect: ['GET https://example.org/ without a key is allowed'] },
    ]) {
      assert.equal(await isRead(value), false, JSON.stringify(value));
      assert.equal(isValid(value), true, JSON.stringify(isValid.errors));
    }
  });

  it('takes the example, which names it, and is what the program takes', async () => {
    const text = readFileSync(EXAMPLE, 'utf8');
    assert.match(text, /^# yaml-language-server: \$schema=\.\.\/schemas\/config\.schema\.json\n/);
    assert.equal(isValid(parse(text)), true, JSON.stringify(isValid.errors));
    const { resources, roles, routes, expect } = await loadConfig({ file: EXAMPLE });
    assert.deepEqual([resources.length, Object.keys(roles), routes.length, expect.length], [3, ['EDITOR'], 5, 5]);
  });
});
