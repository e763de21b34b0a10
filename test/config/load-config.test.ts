import assert from 'node:assert/strict';
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { allSections } from '../../src/config/read-config.ts';
import { formatList } from '../../src/keys/basics/text.ts';
import { needsRoot } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

const code = (wanted: string, message: RegExp) => (error: Error & { code?: string }) => {
  assert.equal(error.code, wanted, error.message);
  assert.match(error.message, message);
  return true;
};

describe('the configuration', () => {
  let folder: string;
  let file: string;
  const write = (text: string | Uint8Array) => writeFileSync(file, text);
  const load = () => loadConfig({ file, env: {} });
  /** The faults of a file, without its path. */
  const faults = async (text: string) => {
    write(text);
    try {
      await load();
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'CONFIG_INVALID');
      return (error as Error).message.replaceAll(`${file}:`, '').split('\n');
    }
    return [];
  };
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder, 'svc-api.yaml');
  });

  it('is the default one where there is no file', async () => {
    const { trust, ...others } = await loadConfig({ env: { XDG_CONFIG_HOME: folder } });
    assert.deepEqual(others, {
      file: undefined,
      resources: [],
      builtinResources: 'shown',
      roles: {},
      credentials: ['bearer'],
      upstreams: [],
      routes: [],
      expect: [],
      cors: { origins: [] },
      tls: undefined,
      server: {},
      limits: { default: [], failedCredentials: '20/m' },
      policy: {},
      people: undefined,
      federation: [],
      audit: { keep: null },
      notices: undefined,
      introspection: 'on',
      publicUrl: undefined,
      title: undefined,
      added: {},
      consent: undefined,
      clients: [],
      clientDocuments: 'off',
      dynamicRegistration: false,
      refresh: { leeway: 1_800_000, lifetime: null },
      signIn: undefined,
      feed: undefined,
    });
    assert.deepEqual(
      ['127.9.9.9', '::1', '10.0.0.1'].map((address) => trust.includes(address)),
      [true, true, false],
    );
  });

  it('has all that the file says', async () => {
    write(`
$schema: ./config.schema.json
resources: [WIKI, { name: VAULT_ITEM, credentials: true }]
roles: { EDITOR: [WIKI:READ_ANY, wiki:update_any, WIKI:READ_ANY], KEEPER: [VAULT_ITEM:READ_OWN, BACKUP:READ_ANY] }
credentials: [bearer, { header: X-Api-Key }, basic]
trust: [10.0.0.0/8, "fd00::/8"]
routes:
  - { host: Wiki.Example.org, path: /api/**, methods: [GET, HEAD, GET], allow: wiki:read_any, preflight: open }
  - { host: wiki.example.org, path: /api/**, allow: [WIKI:READ_ANY, WIKI:UPDATE_ANY] }
  - { host: "*.example.org", path: /backup/, allow: { any: [BACKUP:READ_ANY, ME:READ_OWN] } }
  - { host: "*", path: /public/*, allow: open, to: wiki }
expect: [GET https://wiki.example.org/api/7 with WIKI:READ_ANY is allowed]
upstreams:
  wiki: http://127.0.0.1:3000
  files: { url: http+unix:///run/files.sock, basic: { user: "a b", password: { file: /run/secrets/files } }, rewriteHost: true }
  sonarr:
    url: https://sonarr.internal:8989
    passHeaders: [X-Forwarded-User, x-auth-request-email]
    ranges: true
    send: { X-Api-Key: { file: secrets/sonarr }, Authorization: { file: /run/token, scheme: Bearer } }
    query: { apikey: { file: secrets/sonarr } }
cors: { origins: ["https://app.example.org", "http://localhost:3000", "capacitor://localhost"] }
tls: { cert: tls/cert.pem, key: /etc/tls/key.pem }
limits: { default: [100/m, 5000/month], failedCredentials: 5/h }
policy:
  maxLifetime: 90d
  requireExpiry: true
  grantableByKeys: [viewer, EDITOR, wiki:update_any, BACKUP:READ_ANY, VIEWER]
  maxKeysPerCreator: 50
  disableUnused: 8w
people:
  oidc: { issuer: https://id.example.org/realms/a, client-id: keys, client-secret: { file: oidc.secret }, groups: roles }
  grant: { admins: [role:admin, role:EDITOR], "*": [wiki:read_any] }
audit: { keep: 400d }
notices: { url: "https://hooks.example.org/n", secretFile: n.secret, events: [key.ended], refusedOften: 7 }
server: { keepAlive: 90, maxConnections: 500, maxConnectionsPerAddress: 1, maxVerifiedKeys: 1000000, metricsHost: '::1' }
introspection: permitted
publicUrl: https://keys.example.org
title: Acme keys
builtinResources: hidden
consent: both
clients:
  registered: [{ id: wiki-sync, name: Wiki sync, redirects: ["http://127.0.0.1/done"] }, { id: tv, name: TV, refreshes: true }]
  metadata-documents: [claude.ai, "apps.example.org:8443"]
  dynamic-registration: true
  refresh: { leeway: 5m, lifetime: 90d }
sign-in: on
feed: { nats: { servers: ["nats://10.0.0.1:4222", "tls://nats"], credentials: { file: n.creds }, name: keys } }
`);
    const { trust, ...others } = await loadConfig({ file, env: {}, resources: ['BACKUP'] });
    assert.deepEqual(others, {
      file,
      resources: [{ name: 'WIKI' }, { name: 'VAULT_ITEM', credentials: true }],
      builtinResources: 'hidden',
      roles: { EDITOR: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'], KEEPER: ['VAULT_ITEM:READ_OWN', 'BACKUP:READ_ANY'] },
      credentials: ['bearer', { header: 'x-api-key' }, 'basic'],
      routes: [
        {
          host: 'wiki.example.org',
          path: '/api/**',
          methods: ['GET', 'HEAD'],
          allow: { kind: 'all', permissions: ['WIKI:READ_ANY'] },
          preflightOpen: true,
          line: 8,
        },
        {
          host: 'wiki.example.org',
          path: '/api/**',
          allow: { kind: 'all', permissions: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'] },
          preflightOpen: false,
          line: 9,
        },
        {
          host: '*.example.org',
          path: '/backup',
          allow: { kind: 'any', permissions: ['BACKUP:READ_ANY', 'ME:READ_OWN'] },
          preflightOpen: false,
          line: 10,
        },
        { host: '*', path: '/public/*', allow: { kind: 'open' }, to: 'wiki', preflightOpen: false, line: 11 },
      ],
      expect: ['GET https://wiki.example.org/api/7 with WIKI:READ_ANY is allowed'],
      upstreams: [
        { name: 'wiki', address: { protocol: 'http:', host: '127.0.0.1', port: 3000 }, send: [], rewriteHost: false },
        {
          name: 'files',
          address: { protocol: 'http:', socketPath: '/run/files.sock' },
          send: [{ in: 'header', name: 'Authorization', file: '/run/secrets/files', user: 'a b' }],
          rewriteHost: true,
        },
        {
          name: 'sonarr',
          address: { protocol: 'https:', host: 'sonarr.internal', port: 8989 },
          send: [
            { in: 'header', name: 'X-Api-Key', file: join(folder, 'secrets/sonarr') },
            { in: 'header', name: 'Authorization', file: '/run/token', scheme: 'Bearer' },
            { in: 'query', name: 'apikey', file: join(folder, 'secrets/sonarr') },
          ],
          rewriteHost: false,
          passHeaders: ['x-forwarded-user', 'x-auth-request-email'],
          ranges: true,
        },
      ],
      cors: { origins: ['https://app.example.org', 'http://localhost:3000', 'capacitor://localhost'] },
      tls: { cert: join(folder, 'tls/cert.pem'), key: '/etc/tls/key.pem' },
      feed: {
        nats: {
          servers: ['nats://10.0.0.1:4222', 'tls://nats'],
          credentials: { file: join(folder, 'n.creds') },
          name: 'keys',
        },
      },
      limits: { default: ['100/m', '5000/month'], failedCredentials: '5/h' },
      policy: {
        maxLifetime: '90d',
        requireExpiry: true,
        grantableByKeys: ['VIEWER', 'EDITOR', 'WIKI:UPDATE_ANY', 'BACKUP:READ_ANY'],
        maxKeysPerCreator: 50,
        disableUnused: '8w',
      },
      people: {
        by: {
          issuer: 'https://id.example.org/realms/a',
          clientId: 'keys',
          secretFile: join(folder, 'oidc.secret'),
          groups: 'roles',
        },
        grant: { admins: ['ADMIN', 'EDITOR'], '*': ['WIKI:READ_ANY'] },
      },
      notices: {
        url: 'https://hooks.example.org/n',
        secretFile: join(folder, 'n.secret'),
        events: ['key.ended'],
        refusedOften: 7,
      },
      server: {
        keepAlive: 90,
        maxConnections: 500,
        maxConnectionsPerAddress: 1,
        maxVerifiedKeys: 1_000_000,
        metricsHost: '::1',
      },
      audit: { keep: 400 * 86_400_000 },
      federation: [],
      introspection: 'permitted',
      publicUrl: 'https://keys.example.org',
      title: 'Acme keys',
      added: {},
      consent: 'both',
      clients: [
        { id: 'wiki-sync', name: 'Wiki sync', redirects: ['http://127.0.0.1/done'] },
        { id: 'tv', name: 'TV', redirects: [], refreshes: true },
      ],
      clientDocuments: ['claude.ai', 'apps.example.org:8443'],
      dynamicRegistration: true,
      refresh: { leeway: 300_000, lifetime: 90 * 86_400_000 },
      signIn: 'on',
    });
    assert.deepEqual(trust.texts, ['10.0.0.0/8', 'fd00::/8']);
  });

  it('is that of --config, then of SVC_API_CONFIG, then of the user, and never of the working folder', async () => {
    const places: [string, NodeJS.ProcessEnv][] = [
      [join(folder, 'config/svc-api/svc-api.yaml'), { XDG_CONFIG_HOME: join(folder, 'config') }],
      [join(folder, 'home/.config/svc-api/svc-api.yaml'), { HOME: join(folder, 'home') }],
      [join(folder, 'home/.config/svc-api/svc-api.yaml'), { HOME: join(folder, 'home'), XDG_CONFIG_HOME: 'config' }],
      [join(folder, 'named.yaml'), { SVC_API_CONFIG: join(folder, 'named.yaml'), HOME: join(folder, 'home') }],
    ];
    for (const [path, env] of places) {
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, `resources: [WIKI]`);
      assert.equal((await loadConfig({ env })).file, path);
    }
    write('resources: [WIKI]');
    assert.equal((await loadConfig({ file, env: places.at(-1)![1] })).file, file);
    const before = process.cwd();
    process.chdir(folder);
    try {
      assert.equal((await loadConfig({ env: { HOME: join(folder, 'elsewhere') } })).file, undefined);
      assert.equal((await loadConfig({ env: { HOME: '' } })).file, undefined);
      assert.equal((await loadConfig({ file: 'svc-api.yaml' })).file, file);
    } finally {
      process.chdir(before);
    }
    await assert.rejects(loadConfig({ file: ' ' }), code('USAGE', /path of the configuration is empty/));
  });

  it('must be there if it is named', async () => {
    const missing = join(folder, 'missing', 'svc-api.yaml');
    const wanted = code('CONFIG_UNAVAILABLE', /svc-api\.yaml does not exist\. Check --config and SVC_API_CONFIG\.$/);
    await assert.rejects(loadConfig({ file: missing }), wanted);
    await assert.rejects(loadConfig({ env: { SVC_API_CONFIG: missing } }), wanted);
    await assert.rejects(loadConfig({ file: folder }), code('CONFIG_UNAVAILABLE', /is not a regular file/));
    await assert.rejects(loadConfig({ file: '/dev/zero' }), code('CONFIG_UNAVAILABLE', /is not a regular file/));
  });

  it('has the faults of a policy where they are', async () => {
    const found = await faults(
      'policy:\n  maxLifetime: 90D\n  requireExpiry: sometimes\n  grantableByKeys: [VIEWER, BOS, WIKI:READ_ANY]\n' +
        '  maxKeysPerCreator: 0\n  disableUnused: 12h\n  maxKeys: 1\n',
    );
    const starts = [
      '2:16: "90D" is not a duration. Units are lower case: write 90d.',
      '3:18: The field "requireExpiry" must be true or false.',
      '4:29: "BOS" is not a role.',
      '4:34: "WIKI:READ_ANY" is not a permission: "WIKI" is not a resource.',
      '5:22: 0 is not a whole number from 1 to 1000000.',
      '6:18: "12h" is too short. Choose 1d or more.',
      '7:3: "maxKeys" is not a field. Did you mean "maxKeysPerCreator"?',
    ];
    for (const [index, start] of starts.entries()) assert.ok(found[index]?.startsWith(start), found.join('\n'));
    assert.equal(found.length, starts.length);
    assert.match((await faults('policy: { maxLifetime: 11000d }'))[0]!, /"11000d" is more than ten years/);
  });

  it('may not be written by others', async () => {
    write('resources: [WIKI]');
    const link = join(folder, 'link.yaml');
    symlinkSync(file, link);
    for (const mode of [0o600, 0o644, 0o664]) {
      chmodSync(file, mode);
      assert.equal((await load()).resources.length, 1);
      assert.equal((await loadConfig({ file: link })).resources.length, 1);
    }
    chmodSync(file, 0o666);
    for (const path of [file, link])
      await assert.rejects(loadConfig({ file: path }), code('CONFIG_INSECURE', /every user.*chmod o-w/));
  });

  it('belongs to its user or to root, and so does a link to it', async function () {
    needsRoot(this);
    write('resources: [WIKI]');
    const link = join(folder, 'link.yaml');
    symlinkSync(file, link);
    const wanted = code('CONFIG_INSECURE', /belongs to another user \(65534\), who could give keys more access/);
    lchownSync(link, 65_534, 65_534);
    await assert.rejects(loadConfig({ file: link }), wanted);
    assert.equal((await load()).resources.length, 1);
    chownSync(file, 65_534, 65_534);
    await assert.rejects(load(), wanted);
  });

  it('has a limited size, and is UTF-8', async () => {
    write(`resources: [WIKI] ${'#'.repeat(4 * 1024 * 1024)}`);
    await assert.rejects(load(), code('CONFIG_INVALID', /is larger than 4 MiB/));
    write(Buffer.from([0x72, 0xff]));
    await assert.rejects(load(), code('CONFIG_INVALID', /is not UTF-8/));
  });

  it('may be empty, and may have nothing but comments', async () => {
    for (const text of ['', '# nothing yet\n', '---\n', '{}', '\uFEFF{}']) {
      write(text);
      assert.deepEqual((await load()).resources, [], JSON.stringify(text));
    }
  });

  it('names all faults with their lines and columns', async () => {
    assert.deepEqual(
      await faults(`resources: [wiki, WIKI, WIKI, { name: DOCKER, credentials: true }, 7]
roles:
  ADMIN: [WIKI:READ_ANY]
  EDITOR: [WIKI:REED_ANY]
  KEEPER: []
colour: red
credentials: [cookie, { header: Authorization }]
trust: [10.0.0.0/33]
`),
      [
        '1:13: "wiki" is not a resource name: use capital letters, digits and underscores, at most 64.',
        '1:25: "WIKI" is declared more than once.',
        '1:31: "DOCKER" is a built-in resource: its "credentials" setting cannot be changed.',
        '1:68: A resource must be a name, or a map with the field "name", and "credentials".',
        '3:3: "ADMIN" is a built-in role, which cannot be changed.',
        '4:12: "WIKI:REED_ANY" is not a permission: "REED_ANY" is not an action. Did you mean READ_ANY?',
        '5:11: The role "KEEPER" needs at least one permission.',
        `6:1: "colour" is not a field. The fields here are ${formatList(['$schema', ...(await allSections()).keys()])}. Plugins can add fields. If this field belongs to a plugin, install the plugin for this user.`,
        '7:15: "cookie" is not a place for a key. Write bearer, basic, or { header: X-Api-Key }.',
        '7:33: The header "Authorization" cannot hold a key: it is read by "bearer" and "basic".',
        '8:9: "10.0.0.0/33" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.',
      ],
    );
  });

  for (const [text, ...expected] of [
    ['[]', '1:1: The configuration must be a map of fields'],
    ['just text', '1:1: The configuration must be a map of fields'],
    ['resource: [WIKI]\nroles: { R: [WIKI:READ_ANY] }', '1:1: "resource" is not a field. Did you mean "resources"?'],
    [
      'routes: [{ host: "*", pth: /, allow: key }, { host: h, location: /x, allow: open }]',
      '1:23: "pth" is not a field. Did you mean "path"?',
      '1:56: "location" is not a field. The fields here are host, path, methods,',
    ],
    ['credentials: [{ headr: X-Api-Key }]', '1:17: "headr" is not a field. Did you mean "header"?'],
    ['notices: { ulr: "https://h.example" }', '1:12: "ulr" is not a field. Did you mean "url"?'],
    ...[
      ['observe: false, allow: key', 'The field "observe" must be true, or left out.'],
      ['observe: true, allow: open', 'An open route refuses nothing that could be observed. Leave "observe" out.'],
      [
        'observe: true, allow: key, mcp: { tools: ["*"] }',
        'With "mcp", leave out "observe": single tools are not observed.',
      ],
      [
        'observe: true, allow: key, to: s',
        'With "observe", anyone could use the credentials sent to "s". Leave it out.',
      ],
    ].map(([fields, problem]): [string, string] => [
      `routes: [{ ${fields}, host: a, path: / }]\nupstreams: { s: { url: "http://127.0.0.1:1", send: { X: { file: s } } } }`,
      `1:21: ${problem}`,
    ]),
    ['tls: { crt: a.pem, key: b.pem }', '1:8: "crt" is not a field. Did you mean "cert"?'],
    ['roles: { R: [WIKI:READ_ANY] }', '1:14: "WIKI:READ_ANY" is not a permission: "WIKI" is not a resource.'],
    [
      'people: { headr: Remote-User, grant: { a: [ADMIN] } }',
      '1:11: "headr" is not a field. Did you mean "header"?',
      '1:44: "ADMIN" is not a permission. Of a role, write role:ADMIN.',
    ],
    ['people: { header: Remote-User }', '1:9: The field "grant" is missing.', '1:19: The field "header" needs "trust"'],
    ['people: { grant: { "*": [role:GUEST] } }', '1:9: Set "header" for people signed in by a proxy'],
    [
      'people: { header: Cookie, grant: { a: [role:GUEST] } }',
      '1:19: The field "header" needs "trust", a list of the addresses of the proxy that signs people in, such as trust: [127.0.0.1].',
      '1:19: The header "Cookie" cannot identify people',
    ],
    [
      '{ trust: [], people: { header: Remote-User, grant: { a: [role:GUEST] } } }',
      '1:32: The field "header" needs "trust"',
    ],
    [
      'people: { oidc: { issuer: http://id.example.org, client-secret: x }, grant: { " a": [] } }',
      '1:17: The field "client-id" is missing.',
      '1:27: "http://id.example.org" is not an issuer. It must begin with https://, or with http:// on loopback',
      '1:65: Do not write the secret in this file. Write { file: <path> } with the path of its file.',
      '1:79: " a" is not a group',
      '1:85: The group " a" has no grants.',
    ],
    ['resources: WIKI', '1:12: The field "resources" must be a list.'],
    ['resources:', '1:11: The field "resources" must be a list.'],
    ['resources: [{ credentials: true }]', '1:13: The field "name" is missing.'],
    ['resources: [{ name: WIKI, credentials: yes }]', '1:40: The field "credentials" must be true or false.'],
    ['resources: [{ name: WIKI, secret: true }]', '1:27: "secret" is not a field.'],
    ['roles: [EDITOR]', '1:8: The field "roles" must be a map'],
    ['roles: { editor: [ME:READ_OWN] }', '1:10: "editor" is not a role name'],
    ['roles: { __proto__: [ME:READ_OWN] }', '1:10: "__proto__" is not a role name'],
    ['roles: { EDITOR: ME:READ_OWN }', '1:18: The field "EDITOR" must be a list.'],
    ['roles: { EDITOR: [VIEWER] }', '1:19: "VIEWER" is not a permission.'],
    ['credentials: []', '1:14: The list "credentials" is empty'],
    ['credentials: [basic, basic]', '1:22: basic is listed more than once.'],
    ['credentials: [{ header: X-Key }, { header: x-key }]', '1:34: the header x-key is listed more than once.'],
    ['credentials: [{ header: "X Key" }]', '1:25: The header "X Key" cannot hold a key: it is not a name'],
    ['credentials: [{ cookie: key }]', '1:15: Write bearer, basic, or { header: X-Api-Key }.'],
    ...['""', '" a"', '"a\\nb"', `"${'a'.repeat(61)}"`].map((title): [string, string] => [
      `title: ${title}`,
      '1:8: The field "title" must be one line of at most 60 characters',
    ]),
    ['publicUrl: keys.example.org', '1:12: "keys.example.org" is not an address of a service'],
    ['publicUrl: https://example.org/a/../b', '1:12: "https://example.org/a/../b" is not an address of a service'],
    ['publicUrl: https://EXAMPLE.org', '1:12: "https://EXAMPLE.org" is not an address of a service'],
    ['publicUrl: https://keys.example.org/', '1:12: "https://keys.example.org/" is not an address of a service'],
    ['consent: false', '1:10: The field "consent" must be off, device, code or both.'],
    ['consent: bth', '1:10: Did you mean both? The field "consent" must be off, device, code or both.'],
    ['consent:', '1:9: The field "consent" must be off, device, code or both.'],
    ['clients: [{ id: a, name: A }]', '1:10: Clients are declared, but "consent" is missing'],
    ['clients: { id: x }', '1:12: "id" is not a field. The fields here are registered, metadata-documents'],
    ['clients: { registered: x }', '1:24: The field "registered" must be a list.'],
    [
      '{ consent: both, clients: { metadata-documents: all } }',
      '1:49: The field "metadata-documents" must be any, off',
    ],
    [
      '{ clients: { refresh: 30m } }',
      '1:23: The field "refresh" must be a map, such as { leeway: 30m, lifetime: 90d }.',
    ],
    ['{ clients: { refresh: { leeway: 31m } } }', '1:33: A leeway is at most 30m: secrets last an hour.'],
    ['{ clients: { refresh: { leeway: 5 } } }', '1:33: The field "leeway" must be text'],
    ['{ clients: { refresh: { leeway: soon } } }', '1:33: "soon" is not a duration.'],
    ['{ clients: { refresh: { lifetime: 59m } } }', '1:35: "59m" is too short. Choose 1h or more.'],
    ['{ clients: { refresh: { life: 1d } } }', '1:25: "life" is not a field. Did you mean "lifetime"?'],
    ['{ consent: both, clients: { metadata-documents: [] } }', '1:49: The field "metadata-documents" must be any, off'],
    [
      '{ consent: both, clients: { metadata-documents: [https://a.example] } }',
      '1:50: "https://a.example" is not a host',
    ],
    ['{ consent: both, clients: { dynamic-registration: 1 } }', '1:51: The field "dynamic-registration" must be true'],
    ['{ consent: device, clients: { dynamic-registration: true } }', '1:29: Clients that are not registered use pages'],
    ['clients: [{ id: a, name: A, refreshes: 1 }]', '1:40: The field "refreshes" must be true or false.'],
    ['clients: [wiki]', '1:11: A client must be a map'],
    ['clients: [{ id: wiki }]', '1:11: The field "name" is missing.'],
    ['clients: [{ id: svc-api, name: A }]', '1:17: "svc-api" is reserved for svc-api itself.'],
    ['clients: [{ id: a b, name: A }]', '1:17: "a b" is not a valid client id'],
    ['clients: [{ id: a, name: A-B }]', '1:26: The name may only contain letters, digits and spaces'],
    ['clients: [{ id: a, name: A }, { id: a, name: B }]', '1:31: "a" is declared more than once.'],
    ['clients: [{ id: a, name: A, secret: x }]', '1:29: "secret" is not a field.'],
    ['clients: [{ id: a, name: A, redirects: [http://a.example/] }]', '1:41: "http://a.example/" is not a redirect'],
    ['trust: [localhost]', '1:9: "localhost" is not a network'],
    ['trust: [10.0.0.5/8]', '1:9: "10.0.0.5/8" has bits beyond its first 8. Write 10.0.0.0/8, or 10.0.0.5 for the'],
    ['trust: ["::ffff:10.0.0.0/104"]', '1:9: "::ffff:10.0.0.0/104" is IPv4 within IPv6.'],
    ['routes: { host: "*" }', '1:9: The field "routes" must be a list.'],
    ['routes: [7]', '1:10: A route must be a map'],
    ['routes: [{ path: /, allow: key }]', '1:10: The field "host" is missing. Write "*" for every host.'],
    ['routes: [{ host: "*", allow: key }]', '1:10: The field "path" is missing.'],
    ['routes: [{ host: "*", path: / }]', '1:10: The field "allow" is missing.'],
    ['routes: [{ host: "*", path: /, resource: WIKI }]', '1:42: "WIKI" is not a resource.'],
    ['routes: [{ host: "*", path: /, resource: "" }]', '1:42: '],
    ['routes: [{ host: "*", path: /, resource: [DOCKER] }]', '1:42: The field "resource" must be text.'],
    ['routes: [{ host: "*", path: /, resource: DOCKER, allow: key }]', '1:42: Both "allow" and "resource" are set'],
    ['routes: [{ host: "*", path: /, allow: key, cross-site: open }]', '1:56: The field "cross-site" must be allowed'],
    ['routes: [{ host: "*", path: x, allow: key }]', '1:29: "x" is not a path for a route'],
    ['routes: [{ host: a:80, path: /, allow: key }]', '1:18: "a:80" is not a host for a route'],
    ['routes: [{ host: 7, path: /, allow: key }]', '1:18: The field "host" must be text.'],
    ['routes: [{ host: "*", path: /, allow: key, methods: [] }]', '1:53: The list "methods" is empty'],
    ['routes: [{ host: "*", path: /, allow: key, methods: [get] }]', '1:54: "get" is not a method'],
    ['routes: [{ host: "*", path: /, allow: key, preflight: shut }]', '1:55: The field "preflight" must be open'],
    ['routes: [{ host: "*", path: /, allow: key, name: a }]', '1:44: "name" is not a field.'],
    ['routes: [{ host: "*", path: /, allow: [] }]', '1:39: The field "allow" has no permission.'],
    ['routes: [{ host: "*", path: /, allow: { any: [] } }]', '1:46: The field "any" has no permission.'],
    ['routes: [{ host: "*", path: /, allow: { all: [ME:READ_OWN] } }]', '1:39: The value of "allow" is unknown'],
    ['routes: [{ host: "*", path: /, allow: true }]', '1:39: The value of "allow" is unknown'],
    ['routes: [{ host: "*", path: /, allow: WIKI:READ_ANY }]', '1:39: "WIKI:READ_ANY" is not a permission'],
    ['expect: GET', '1:9: The field "expect" must be a list.'],
    ['expect: [7, GET / is nice]', '1:10: An item of this list must be text.', '1:13: "GET / is nice" is not an'],
    ['cors: ["*"]', '1:7: The field "cors" must be a map'],
    ['cors: { origins: ["https://a.example/"] }', '1:19: "https://a.example/" is not an origin. Browsers send'],
    ['cors: { origins: ["HTTPS://A.example:443"] }', '1:19: "HTTPS://A.example:443" is not an origin. Browsers'],
    ['cors: { origins: [a.example] }', '1:19: "a.example" is not an origin. Write it as https://app.example.org.'],
    ['cors: { origins: ["https://*.a.example"] }', '1:19: "https://*.a.example" is not an origin. Write it as'],
    ['cors: { origins: ["null"] }', '1:19: "null" is not an origin.'],
    ['tls: { cert: a.pem }', '1:6: The field "key" is missing.'],
    ['tls: { cert: a.pem, key: b.pem, clientCa: "" }', '1:43: The field "clientCa" must be the path of a file.'],
    ['tls: { cert: a.pem, key: "" }', '1:26: The field "key" must be the path of a file.'],
    ['limits: { default: 100/m }', '1:20: The field "default" must be a list.'],
    ['limits: { default: [100] }', '1:21: An item of this list must be text.'],
    ['limits: { default: [0/m, 1/w, 1.5/s] }', '1:21: "0/m" allows nothing.', '1:26: "1/w"', '1:31: "1.5/s"'],
    ['limits: { failedCredentials: lots }', '1:30: "lots" is not a limit.'],
    ['server: 75', '1:9: The field "server" must be a map with fields of keepAlive, maxConnections,'],
    ['server: { keepAlife: 75 }', '1:11: "keepAlife" is not a field.'],
    ['server: { keepAlive: 3601 }', '1:22: The field "keepAlive" must be a whole number from 1 to 3600.'],
    ['server: { maxConnections: "9" }', '1:27: The field "maxConnections" must be a whole number from 1 to 1000000.'],
    ['server: { metricsHost: " " }', '1:24: The field "metricsHost" is empty.'],
    ['audit: 400d', '1:8: The field "audit" must be a map with the field "keep", such as { keep: 400d }.'],
    ['audit: {}', '1:8: The field "keep" is missing.'],
    ['audit: { keeps: 400d }', '1:10: "keeps" is not a field. Did you mean "keep"?'],
    ['audit: { keep: 400 }', '1:16: The field "keep" must be text.'],
    ['audit: { keep: 23h }', '1:16: "23h" is too short. Choose 1d or more.'],
    ['audit: { keep: forever }', '1:16: "forever" is not a duration.'],
    ['upstreams: [wiki]', '1:12: The field "upstreams" must be a map of names to addresses.'],
    ['upstreams: { wi/ki: "http://a" }', '1:14: "wi/ki" is not a valid name of an upstream.'],
    ['upstreams: { wiki: 7 }', '1:20: An upstream must be an address, such as http://127.0.0.1:3000, or a map'],
    [
      'upstreams: { wiki: "a:80" }',
      '1:20: "a:80" is not the address of an upstream. Did you mean http://a? Write it as http://127.0.0.1:3000,',
    ],
    ['upstreams: { wiki: { uri: "http://a" } }', '1:22: "uri" is not a field. Did you mean "url"?'],
    ['upstreams: { wiki: { url: "http://a/b" } }', '1:27: "http://a/b" must not have a path'],
    ['upstreams: { wiki: {} }', '1:20: The field "url" is missing.'],
    [
      'upstreams: { w: { url: "http://a", send: { X-Key: s3cret } } }',
      '1:51: "X-Key" must name the file of the credential',
    ],
    ['upstreams: { w: { url: "http://a", send: {} } }', '1:42: The field "send" must be a map, such as { X-Api-Key:'],
    ['upstreams: { w: { url: "http://a", send: { X-Key: {} } } }', '1:51: The field "file" is missing.'],
    ['upstreams: { w: { url: "http://a", send: { X-Key: { file: "" } } } }', '1:59: The field "file" must be the path'],
    [
      'upstreams: { w: { url: "http://a", send: { Host: { file: f } } } }',
      '1:44: The header "Host" cannot be sent: it is',
    ],
    [
      'upstreams: { w: { url: "http://a", query: { "a&b": { file: f } } } }',
      '1:45: The parameter "a&b" cannot be sent',
    ],
    [
      'upstreams: { w: { url: "http://a", send: { a-b: { file: f }, A_B: { file: f } } } }',
      '1:17: The header A_B is sent twice.',
    ],
    ['upstreams: { w: { url: "http://a", passHeaders: Remote-User } }', '1:49: The field "passHeaders" must be a list'],
    [
      'upstreams: { w: { url: "http://a", passHeaders: [Remote-User, Cookie] } }',
      '1:63: The header "Cookie" cannot be passed on: it does not identify the caller.',
    ],
    [
      'upstreams: { w: { url: "http://a", passHeaders: [Remote_User] } }',
      '1:50: The header "Remote_User" cannot be passed on: it is not a name of letters,',
    ],
    [
      'upstreams: { w: { url: "http://a", passHeaders: [X-Auth-Roles] } }',
      '1:50: The header "X-Auth-Roles" cannot be passed on: it is written by the guard itself.',
    ],
    ['upstreams: { w: { url: "http://a", basic: { user: a } } }', '1:43: The field "password" is missing.'],
    [
      'upstreams: { w: { url: "http://a", basic: { user: "a:b", password: { file: f } } } }',
      '1:51: The field "user" has a colon',
    ],
    [
      'routes: [{ host: a, path: /, allow: key, to: b }]',
      '1:46: The upstream "b" does not exist. There is no field "upstreams".',
    ],
    ['routes: [{ host: a, path: /, allow: key, limit: 10/budget }]', '1:49: "10/budget" is not a limit.'],
    ['routes: [{ host: a, path: /, allow: key, limit: "" }]', '1:49: A limit is empty.'],
    ['routes: [{ host: a, path: /, allow: key, cost: 0 }]', '1:48: The field "cost" must be a whole number from 1'],
    ['routes: [{ host: a, path: /, allow: key, cost: 1.5 }]', '1:48: The field "cost" must be a whole number from 1'],
    [
      'routes: [{ host: a, path: /, allow: open, cost: 2 }]',
      '1:49: The field "cost" is for keys, and this route needs',
    ],
    [
      'routes: [{ host: a, path: /, allow: key, limit: 2/m, cost: 3 }]',
      '1:60: A request with the cost 3 always exceeds',
    ],
    [
      'routes: [{ host: a, path: /, allow: key, limit: 2/m }, { host: a, path: /, allow: key }]',
      '1:56: Routes 1 and 2 are both for a/ and say different things.',
    ],
    ['limits: { default: [5/budget] }', '1:21: "5/budget" is not a limit.'],
    ['routes: [{ host: a, path: /, allow: key, mcp: [] }]', '1:47: The field "mcp" must be a map with at least one of'],
    ['routes: [{ host: a, path: /, allow: key, mcp: {} }]', '1:47: The field "mcp" must be a map with at least one of'],
    [
      'routes: [{ host: a, path: /, allow: key, mcp: { tool: [a] } }]',
      '1:49: "tool" is not a field. Did you mean "tools"?',
    ],
    ['routes: [{ host: a, path: /, allow: key, mcp: { tools: [] } }]', '1:56: The list "tools" is empty.'],
    ['routes: [{ host: a, path: /, allow: key, mcp: { tools: [""] } }]', '1:57: An item of this list is empty.'],
    ['routes: [{ host: a, path: /, allow: open, mcp: { tools: [a] } }]', '1:48: With "mcp", the field "allow" must be'],
    [
      'routes: [{ host: a, path: /, allow: key, methods: [POST], mcp: { tools: [a] } }]',
      '1:51: With "mcp", leave out "methods"',
    ],
    [
      'upstreams: { wiki: "http://a" }\nroutes: [{ host: a, path: /, allow: key, to: wikki }]',
      '2:46: Did you mean wiki? The upstream "wikki" does not exist. The upstreams are wiki.',
    ],
    ['sign-in: true', '1:10: The field "sign-in" must be on or off.'],
    ['sign-in:', '1:9: The field "sign-in" must be on or off.'],
    ['sign-in: { url: "https://keys.example.org" }', '1:10: The field "sign-in" must be on or off.'],
    ['introspection: true', '1:16: The field "introspection" must be on, off or permitted.'],
    ['$schema: 7', '1:10: The field "$schema" must be text.'],
    ['resources: [WIKI]\nresources: []', '2:1: The field "resources" is given more than once.'],
    ['resources: [WIKI', '1:'],
    ['a: 1\n---\nb: 2', '2:1: A second document starts here'],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, async () => {
      const found = await faults(text);
      for (const [index, message] of expected.entries())
        assert.ok(found[index]?.startsWith(message), `${found.join('\n')}, not ${message}`);
      // Nothing follows from a misspelled field.
      if (expected[0].includes('is not a field. Did you mean')) assert.equal(found.length, expected.length);
    });
  }

  it('is refused if its routes contradict one another, with both lines, or are not as expected', async () => {
    assert.deepEqual(
      await faults(`routes:
  - { host: example.org, path: /a, allow: key }
  - { host: example.org, path: /b, allow: open }
  - { host: EXAMPLE.org, path: /a/, allow: open }
expect:
  - GET https://example.org/b without a key is allowed
  - GET https://example.org/c with any key is allowed
`),
      [
        '4:5: Routes 1 and 3 are both for example.org/a and say different things. Keep one of them. ' +
          'The other one is in line 2.',
        '7:5: "GET https://example.org/c with any key is allowed" is not so: it is forbidden, as no route matches.',
      ],
    );
  });

  it('has a feed by NATS with servers, without secrets in their addresses', async () => {
    const wrong: [text: string, message: RegExp][] = [
      ['feed: {}', /"nats"/],
      ['feed: { nats: {} }', /"servers"/],
      ['feed: { nats: { servers: [] } }', /"servers" is empty/],
      ['feed: { nats: { servers: [https://x] } }', /"https:\/\/x" is not a server/],
      ['feed: { nats: { servers: ["nats://a:b@x"] } }', /is not a server/],
      ['feed: { nats: { servers: [nats://x/y] } }', /is not a server/],
      ['feed: { nats: { servers: [nats://x], name: a.b } }', /"name"/],
      ['feed: { nats: { servers: [nats://x], credentials: x } }', /"credentials"/],
      ['feed: { nats: { servers: [nats://x], credentials: {} } }', /"file"/],
      ['feed: { nats: { servers: [nats://x], credentials: { file: "" } } }', /"file"/],
      ['feed: { nats: { servers: [nats://x], server: y } }', /"server"/],
      ['feed: { kafka: {} }', /"kafka"/],
    ];
    for (const [text, message] of wrong) assert.match((await faults(text)).join('\n'), message, text);
    write('feed: { nats: { servers: [nats://x] } }');
    assert.deepEqual((await load()).feed, { nats: { servers: ['nats://x'], credentials: undefined, name: 'svc-api' } });
  });
});
