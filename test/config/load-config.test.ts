import assert from 'node:assert/strict';
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { allSections } from '../../src/config/read-config.ts';
import { formatList } from '../../src/keys/basics/text.ts';
import { faultsIn, itRefuses } from '../support/config-faults.ts';
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
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder, 'svc-api.yaml');
  });

  it('is the default one where there is no file', async () => {
    const { trust, ...others } = await loadConfig({ env: { XDG_CONFIG_HOME: folder } });
    const expected = {
      file: undefined,
      resources: [],
      actions: [],
      prefix: undefined,
      builtinResources: 'shown',
      roles: {},
      credentials: ['bearer'],
      cors: { origins: [] },
      tls: undefined,
      server: {},
      limits: { default: [], failedCredentials: '20/m' },
      policy: {},
      audit: { keep: null },
      introspection: 'on',
      publicUrl: undefined,
      title: undefined,
      added: {},
    };
    assert.deepEqual({ ...others, ...expected }, others);
    assert.deepEqual(
      ['127.9.9.9', '::1', '10.0.0.1'].map((address) => trust.includes(address)),
      [true, true, false],
    );
  });

  it('has all that the file says', async () => {
    write(`
$schema: ./config.schema.json
resources: [WIKI, { name: VAULT_ITEM, credentials: true }]
actions: [PUBLISH]
prefix: acme
roles: { EDITOR: [WIKI:READ_ANY, wiki:update_any, WIKI:READ_ANY], KEEPER: [VAULT_ITEM:READ_OWN, BACKUP:READ_ANY] }
credentials: [bearer, { header: X-Api-Key }, basic]
trust: [10.0.0.0/8, "fd00::/8"]
cors: { origins: ["https://app.example.org", "http://localhost:3000", "capacitor://localhost"] }
tls: { cert: tls/cert.pem, key: /etc/tls/key.pem }
limits: { default: [100/m, 5000/month], failedCredentials: 5/h }
policy:
  maxLifetime: 90d
  requireExpiry: true
  grantableByKeys: [viewer, EDITOR, wiki:update_any, BACKUP:READ_ANY, VIEWER]
  maxKeysPerCreator: 50
  disableUnused: 8w
audit: { keep: 400d }
server: { keepAlive: 90, maxConnections: 500, maxConnectionsPerAddress: 1, maxVerifiedKeys: 1000000, metricsHost: '::1' }
introspection: permitted
publicUrl: https://keys.example.org
title: Acme keys
builtinResources: hidden
`);
    const { trust: _, ...defaults } = await loadConfig({ env: { XDG_CONFIG_HOME: folder } });
    const { trust, ...others } = await loadConfig({ file, env: {}, resources: ['BACKUP'] });
    assert.deepEqual(others, {
      ...defaults,
      file,
      resources: [{ name: 'WIKI' }, { name: 'VAULT_ITEM', credentials: true }],
      actions: ['PUBLISH'],
      prefix: 'acme',
      builtinResources: 'hidden',
      roles: { EDITOR: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'], KEEPER: ['VAULT_ITEM:READ_OWN', 'BACKUP:READ_ANY'] },
      credentials: ['bearer', { header: 'x-api-key' }, 'basic'],
      cors: { origins: ['https://app.example.org', 'http://localhost:3000', 'capacitor://localhost'] },
      tls: { cert: join(folder, 'tls/cert.pem'), key: '/etc/tls/key.pem' },
      limits: { default: ['100/m', '5000/month'], failedCredentials: '5/h' },
      policy: {
        maxLifetime: '90d',
        requireExpiry: true,
        grantableByKeys: ['VIEWER', 'EDITOR', 'WIKI:UPDATE_ANY', 'BACKUP:READ_ANY'],
        maxKeysPerCreator: 50,
        disableUnused: '8w',
      },
      server: {
        keepAlive: 90,
        maxConnections: 500,
        maxConnectionsPerAddress: 1,
        maxVerifiedKeys: 1_000_000,
        metricsHost: '::1',
      },
      audit: { keep: 400 * 86_400_000 },
      introspection: 'permitted',
      publicUrl: 'https://keys.example.org',
      title: 'Acme keys',
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
    const found = await faultsIn(
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
    assert.match((await faultsIn('policy: { maxLifetime: 11000d }'))[0]!, /"11000d" is more than ten years/);
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
      await faultsIn(`resources: [wiki, WIKI, WIKI, { name: DOCKER, credentials: true }, 7]
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
        `6:1: "colour" is not a field. The fields here are ${formatList(['$schema', ...(await allSections()).keys()])}. Remove this field. If it belongs to a plugin, you can also install the plugin for this user, or add it to your program with addFeatures.`,
        '7:15: "cookie" is not a place for a key. Write bearer, basic, or { header: X-Api-Key }.',
        '7:33: The header "Authorization" cannot hold a key: it is read by "bearer" and "basic".',
        '8:9: "10.0.0.0/33" is not a network: write it as 10.0.0.0/8 or 2001:db8::/32.',
      ],
    );
  });

  itRefuses([
    ['[]', '1:1: The configuration must be a map of fields'],
    ['just text', '1:1: The configuration must be a map of fields'],
    ['resource: [WIKI]\nroles: { R: [WIKI:READ_ANY] }', '1:1: "resource" is not a field. Did you mean "resources"?'],
    ['credentials: [{ headr: X-Api-Key }]', '1:17: "headr" is not a field. Did you mean "header"?'],
    ['tls: { crt: a.pem, key: b.pem }', '1:8: "crt" is not a field. Did you mean "cert"?'],
    ['roles: { R: [WIKI:READ_ANY] }', '1:14: "WIKI:READ_ANY" is not a permission: "WIKI" is not a resource.'],
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
    ['trust: [localhost]', '1:9: "localhost" is not a network'],
    ['trust: [10.0.0.5/8]', '1:9: "10.0.0.5/8" has bits beyond its first 8. Write 10.0.0.0/8, or 10.0.0.5 for the'],
    ['trust: ["::ffff:10.0.0.0/104"]', '1:9: "::ffff:10.0.0.0/104" is IPv4 within IPv6.'],
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
    ['limits: { default: [5/budget] }', '1:21: "5/budget" is not a limit.'],
    ['introspection: true', '1:16: The field "introspection" must be on, off or permitted.'],
    ['$schema: 7', '1:10: The field "$schema" must be text.'],
    ['resources: [WIKI]\nresources: []', '2:1: The field "resources" is given more than once.'],
    ['resources: [WIKI', '1:'],
    ['a: 1\n---\nb: 2', '2:1: A second document starts here'],
  ]);
});
