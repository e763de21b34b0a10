import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { bearerAuth as forNode } from '../../src/express.ts';
import { bearerAuth as forFastify } from '../../src/fastify.ts';
import {
  bearerAuth as forHono,
  createApp,
  listen,
  loadConfig,
  OPERATOR,
  openKeys as openLibrary,
  openLog,
} from '../../src/index.ts';
import { type OpenKeys, openKeys } from '../../src/service/open-keys.ts';
import { migratedStore, tempFolder } from '../support/temp.ts';

const NAMED = 'Leave it out, or give it a value.';

describe('options of the library', () => {
  let keys: OpenKeys;
  let database: string;
  before(async () => {
    database = await migratedStore();
    keys = await openKeys({ database, resources: ['INVOICE'], roles: { CLERK: ['INVOICE:READ_ANY'] } });
  });
  after(() => keys.close());

  /** The error of a call, thrown or rejected. */
  async function messageOf(call: () => unknown): Promise<string> {
    try {
      await call();
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'OPTION_INVALID', String(error));
      return (error as Error).message;
    }
    throw new Error('It was taken.');
  }

  const PERMISSIONS: [given: object, message: string | RegExp][] = [
    [{ permissions: 'INVOICE:DELETE_ANY' }, '"permissions" is not an option. Did you mean permission?'],
    [{ permission: undefined }, `The option "permission" is undefined. ${NAMED}`],
    [{ permission: '' }, `The option "permission" is empty. ${NAMED}`],
    [{ permission: ' ' }, `The option "permission" is empty. ${NAMED}`],
    [{ permission: null }, 'The option "permission" is null. It must be text.'],
    [{ permission: ['INVOICE:READ_ANY'] }, 'The option "permission" is a list. It must be text.'],
    [{ scopes: ['INVOICE:READ_ANY'] }, /^"scopes" is not an option\. The options are keys, /],
    [
      { permission: 'INVOCE:READ_ANY' },
      '"INVOCE:READ_ANY" is not a permission: "INVOCE" is not a resource. Did you mean INVOICE?',
    ],
    [{ permission: 'invoice:read_any' }, '"invoice:read_any" is not a permission. Did you mean INVOICE:READ_ANY?'],
    [{ permission: 'INVOICE:READ' }, /"READ" is not an action\. Did you mean READ_ANY or READ_OWN\?$/],
    [{ permission: 'CLERK' }, /^"CLERK" is not a permission\. Write RESOURCE:ACTION/],
    [{ permission: 'INVOICE:*' }, /wildcards are not allowed/],
    [{ resource: 'INVOCE' }, '"INVOCE" is not a resource. Did you mean INVOICE?'],
    [{ resource: 'invoice' }, '"invoice" is not a resource. Did you mean INVOICE?'],
    [{ resource: 'INVOICE:READ_ANY' }, /^"INVOICE:READ_ANY" is not a resource\./],
    [{ onRefused: {} }, 'The option "onRefused" is an object. It must be a function.'],
    [{ all: [] }, 'The option "all" is an empty list. Leave it out, or give it an item.'],
    [{ any: 'INVOICE:READ_ANY' }, 'The option "any" is a string. It must be a list.'],
    [{ any: ['INVOICE:READ_ANY', undefined] }, 'The option "any" has an item that is undefined. It must be text.'],
    [{ all: undefined }, `The option "all" is undefined. ${NAMED}`],
    [
      { permission: 'INVOICE:READ_ANY', any: ['ME:READ_OWN'] },
      '"permission" and "any" are both given. Give one of permission, all, any and resource.',
    ],
  ];
  const OTHERS: [given: object, message: string | RegExp][] = [
    [{ realm: '' }, `The option "realm" is empty. ${NAMED}`],
    [{ credentials: ['baerer'] }, /^The option "credentials" is not valid: A place for credentials is "bearer"/],
    [{ credentials: [{ headers: 'X-Api-Key' }] }, '"credentials[0].headers" is not an option. Did you mean header?'],
    [{ credentials: [] }, /at least one place/],
    [{ trust: ['10.0.0.0/33'] }, /^The option "trust" is not valid: "10\.0\.0\.0\/33" is not a network/],
    [
      { trust: ['::1', '10.0.0.5/8'] },
      /^The option "trust" is not valid: "10\.0\.0\.5\/8" has bits beyond its first 8/,
    ],
    [{ trust: '10.0.0.0/8' }, 'The option "trust" is a string. It must be a list.'],
    [{ failedCredentials: '20' }, /^The option "failedCredentials" is not valid: /],
    [{ failedCredentials: true }, 'The option "failedCredentials" must be a limit, such as "20/m", or false.'],
    [{ log: console.log }, /^The option "log" is a function\. It must be a log, such as one from openLog\.$/],
  ];

  for (const [framework, bearerAuth] of Object.entries({ Hono: forHono, node: forNode, Fastify: forFastify })) {
    it(`are refused by bearerAuth for ${framework} where they are given, if they cannot be meant`, () => {
      for (const [given, message] of [...PERMISSIONS, ...OTHERS])
        assert.throws(() => bearerAuth({ keys, ...given }), {
          code: 'OPTION_INVALID',
          message: typeof message === 'string' ? `bearerAuth: ${message}` : new RegExp(message.source.replace('^', '')),
        });
    });

    it(`are refused by bearerAuth for ${framework} without an open key store`, async () => {
      const opening = openKeys({ database });
      for (const [given, message] of [
        [
          { keys: opening },
          'The option "keys" is a promise, which is not awaited. It must be an open key store: write await openKeys(…).',
        ],
        [{}, 'The option "keys" is missing.'],
        [{ keys: undefined, permission: 'INVOICE:READ_ANY' }, `The option "keys" is undefined. ${NAMED}`],
        [{ key: keys }, '"key" is not an option. Did you mean keys?'],
        [opening, 'The options are a promise'],
        [undefined, 'The options are undefined.'],
      ] as const)
        assert.throws(
          () => bearerAuth(given as never),
          (error: Error & { code: string }) =>
            error.code === 'OPTION_INVALID' && error.message.startsWith(`bearerAuth: ${message}`),
        );
      await (await opening).close();
    });
  }

  it('are refused by keys.check as by bearerAuth', async () => {
    for (const [given, message] of PERMISSIONS.filter(([options]) => !('scopes' in options))) {
      const thrown = await messageOf(() => keys.check({ secret: 'x' }, given));
      if (typeof message === 'string') assert.equal(thrown, `keys.check: ${message}`);
      else
        assert.match(
          thrown,
          message.source.startsWith('^') ? new RegExp(`^keys.check: ${message.source.slice(1)}`) : message,
        );
    }
  });

  it('of openKeys are named where a resource or an action is not declared', async () => {
    const open = await openLibrary({ database, resources: ['INVOICE'] });
    for (const [permission, field] of [
      ['ARTICLES:READ_ANY', 'resources'],
      ['INVOICE:PUBLISH', 'actions'],
    ])
      assert.throws(() => forNode({ keys: open, permission: permission as never }), {
        code: 'OPTION_INVALID',
        message: new RegExp(`are declared under "${field}" in the options of openKeys\\.$`),
      });
    await open.close();
  });

  /** Calls with a misspelled option, and the start of the message. */
  const CALLS: Readonly<Record<string, readonly [call: () => unknown, message: string]>> = {
    'openKeys, a name': [
      () => openKeys({ databse: database } as never),
      'openKeys: "databse" is not an option. Did you mean database?',
    ],
    'openKeys, a variable that is not set': [
      () => openKeys({ database: process.env['NOT_SET'] }),
      'openKeys: The option "database" is undefined.',
    ],
    'openKeys, an empty one': [() => openKeys({ database: '' }), 'openKeys: The option "database" is empty.'],
    'openKeys, a word': [
      () => openKeys({ database, ifMissing: 'fial' as never }),
      'openKeys: The option "ifMissing" is "fial". Did you mean fail? It must be "create", "fail" or "empty".',
    ],
    'openKeys, a field of a resource': [
      () => openKeys({ database, resources: [{ name: 'VAULT', credential: true } as never] }),
      'openKeys: "resources[0].credential" is not an option. Did you mean credentials?',
    ],
    'openKeys, a rule of the policy': [
      () => openKeys({ database, policy: { maxLifeTime: '90d' } as never }),
      'openKeys: "policy.maxLifeTime" is not an option. Did you mean maxLifetime?',
    ],
    'createApp, a name': [
      () => createApp({ keys, introspektion: 'off' } as never),
      'createApp: "introspektion" is not an option. Did you mean introspection?',
    ],
    'createApp, one that there is not': [
      () => createApp({ keys, colour: 'red' } as never),
      'createApp: "colour" is not an option.',
    ],
    'createApp, a promise': [
      () => createApp({ keys: Promise.resolve(keys) as never }),
      'createApp: The option "keys" is a promise',
    ],
    'createApp, a limit': [
      () => createApp({ keys, limits: { costs: 5 } as never }),
      'createApp: "limits.costs" is not an option. Did you mean cost?',
    ],
    'createApp, an origin': [
      () => createApp({ keys, cors: { origin: ['https://app.example.org'] } as never }),
      'createApp: "cors.origin" is not an option. Did you mean origins?',
    ],
    'createApp, an origin that is none': [
      () => createApp({ keys, cors: { origins: ['app'] } }),
      'createApp: "app" is not an origin',
    ],
    'createApp, a word': [
      () => createApp({ keys, introspection: 'of' as never }),
      'createApp: The option "introspection" is "of". Did you mean on or off',
    ],
    'createApp, an extension': [
      () => createApp({ keys, extensions: [{ typedefs: '' } as never] }),
      'createApp: "extensions[0].typedefs" is not an option. Did you mean typeDefs?',
    ],
    'listen, a name': [
      () => listen({ app: new Hono(), hots: '127.0.0.1', port: 0 } as never),
      'listen: "hots" is not an option. Did you mean host',
    ],
    'listen, an app that is not awaited': [
      () => listen({ app: createApp({ keys }) as never, host: '127.0.0.1', port: 0 }),
      'listen: The option "app" is a promise, which is not awaited.',
    ],
    'listen, TLS': [
      () => listen({ app: new Hono(), host: '127.0.0.1', port: 0, tls: undefined }),
      'listen: The option "tls" is undefined.',
    ],
    'listen, a limit': [
      () => listen({ app: new Hono(), host: '127.0.0.1', port: 0, limits: { requestMS: 5 } as never }),
      'listen: "limits.requestMS" is not an option. Did you mean requestMs?',
    ],
    loadConfig: [
      () => loadConfig({ flie: 'svc-api.yaml' } as never),
      'loadConfig: "flie" is not an option. Did you mean file?',
    ],
    'loadConfig, a variable that is not set': [
      () => loadConfig({ file: process.env['NOT_SET'] }),
      'loadConfig: The option "file" is undefined.',
    ],
    openLog: [() => openLog('inof' as never), 'openLog: The option "level" is "inof". Did you mean info?'],
    'keys.create, a name': [
      () => keys.create({ name: 'A', roles: ['GUEST'], nope: 1 } as never, OPERATOR),
      'keys.create: "nope" is not an option. Did you mean name?',
    ],
    'keys.create, a network that is not set': [
      () => keys.create({ name: 'A', roles: ['GUEST'], allowFrom: undefined }, OPERATOR),
      'keys.create: The option "allowFrom" is undefined.',
    ],
    'keys.create, an end that is not set': [
      () => keys.create({ name: 'A', roles: ['GUEST'], expiresIn: undefined }, OPERATOR),
      'keys.create: The option "expiresIn" is undefined.',
    ],
    'keys.create, roles that are no list': [
      () => keys.create({ name: 'A', roles: 'GUEST' as never }, OPERATOR),
      'keys.create: The option "roles" is a string. It must be a list.',
    ],
    'keys.create, a delivery': [
      () => keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR, { delivers: () => {} } as never),
      'keys.create: "delivers" is not an option. Did you mean deliver?',
    ],
    'keys.preview': [
      () => keys.preview({ name: 'A', role: ['GUEST'] } as never, OPERATOR),
      'keys.preview: "role" is not an option. Did you mean roles?',
    ],
    'keys.update': [
      () => keys.update('id', { allowFrm: ['10.0.0.0/8'] } as never, OPERATOR),
      'keys.update: "allowFrm" is not an option. Did you mean allowFrom?',
    ],
    'keys.rotate': [
      () => keys.rotate('id', { garce: '0s' } as never, OPERATOR),
      'keys.rotate: "garce" is not an option. Did you mean grace?',
    ],
    'keys.list': [
      () => keys.list({ stauts: 'ACTIVE' } as never, OPERATOR),
      'keys.list: "stauts" is not an option. Did you mean status?',
    ],
    'keys.audit.read': [
      () => keys.audit.read({ sinse: '1h' } as never, OPERATOR),
      'keys.audit.read: "sinse" is not an option. Did you mean since?',
    ],
    'keys.audit.read, a place': [
      () => keys.audit.read({}, OPERATOR, { befor: 1 } as never),
      'keys.audit.read: "befor" is not an option. Did you mean before?',
    ],
    'keys.withAdditions': [
      () => keys.withAdditions({ resource: ['WIKI'] } as never),
      'keys.withAdditions: "resource" is not an option. Did you mean resources?',
    ],
  };

  for (const [what, [call, message]] of Object.entries(CALLS))
    it(`are refused by ${what}`, async () => {
      const thrown = await messageOf(call);
      assert.ok(thrown.startsWith(message), thrown);
    });

  it('are refused without an actor, by every method of an open key store that needs one', async () => {
    const open = await openLibrary({ database });
    const calls: Readonly<Record<string, (...by: [never]) => Promise<unknown>>> = {
      create: (...by) => open.create({ name: 'A', roles: ['GUEST'] }, ...by),
      get: (...by) => open.get('A', ...by),
      list: (...by) => open.list({}, ...by),
      update: (...by) => open.update('id', {}, ...by),
      disable: (...by) => open.disable('id', ...by),
      enable: (...by) => open.enable('id', ...by),
      rotate: (...by) => open.rotate('id', {}, ...by),
      finishRotation: (...by) => open.finishRotation('id', ...by),
      rollBackRotation: (...by) => open.rollBackRotation('id', ...by),
      delete: (...by) => open.delete(['id'], ...by),
      run: (...by) => open.run('operation', {}, ...by),
    };
    const methods = Object.entries(open).flatMap(([name, member]) => (typeof member === 'function' ? name : []));
    assert.deepEqual(
      [...Object.keys(calls), 'check', 'verify', 'withAdditions', 'close'].toSorted(),
      methods.toSorted(),
    );
    const { key: secret } = await open.create({ name: 'Asker', roles: ['GUEST'] }, { actor: OPERATOR });
    const checked = await open.check({ secret });
    assert.ok(checked.ok);
    const who =
      'Say who asks: { actor: OPERATOR } for this program itself, or { actor: principal } for the key of a request.';
    for (const [name, call] of Object.entries(calls)) {
      for (const [by, problem] of [
        [undefined, `The last argument is undefined. ${who}`],
        [OPERATOR, `The last argument is a string. ${who}`],
        [checked.principal, `The last argument is an object without "actor". ${who}`],
        [{ actor: undefined }, `The option "actor" is undefined. ${who}`],
        [{ actor: 'root' }, `The option "actor" is a string. ${who}`],
        [{ actor: { apiKey: {} } }, `The option "actor" is an object. ${who}`],
        [{ actor: OPERATOR, as: 'root' }, '"as" is not an option. The options are actor.'],
      ] as const)
        assert.equal(await messageOf(() => call(by as never)), `keys.${name}: ${problem}`);
    }
    // The given actor is used.
    await assert.rejects(open.create({ name: 'A', roles: ['GUEST'] }, { actor: checked.principal }), {
      code: 'FORBIDDEN',
    });
    await open.close();
  });

  it('are refused with an invalid id', async () => {
    const open = await openLibrary({ database });
    const by = { actor: OPERATOR } as const;
    const { apiKey } = await open.create({ name: 'Stays', roles: ['GUEST'] }, by);
    const { id } = apiKey;
    const calls: Readonly<Record<string, (given: never) => Promise<unknown>>> = {
      update: (given) => open.update(given, {}, by),
      disable: (given) => open.disable(given, by),
      enable: (given) => open.enable(given, by),
      rotate: (given) => open.rotate(given, {}, by),
      finishRotation: (given) => open.finishRotation(given, by),
      rollBackRotation: (given) => open.rollBackRotation(given, by),
    };
    for (const [name, call] of Object.entries(calls)) {
      assert.equal(
        await messageOf(() => call(undefined as never)),
        `keys.${name}: The argument "id" is undefined. It must be text.`,
      );
      assert.equal(
        await messageOf(() => call(apiKey as never)),
        `keys.${name}: The argument "id" is an object. It must be text.`,
      );
    }
    for (const [call, problem] of [
      [() => open.get(7 as never, by), 'get: The argument "idOrName" is 7. It must be text.'],
      [() => open.delete(apiKey as never, by), 'delete: The argument "ids" is an object. It must be a list.'],
      [
        () => open.delete([id, undefined] as never, by),
        'delete: The argument "ids" has an item that is undefined. It must be text.',
      ],
    ] as const)
      assert.equal(await messageOf(call), `keys.${problem}`);
    assert.equal((await open.get('Stays', by))?.disabledAt, null);
    await open.close();
  });

  it('are refused where they name what cannot be declared', async () => {
    const problem = '"pet" is not a resource name: use capital letters, digits and underscores, at most 64.';
    assert.equal(await messageOf(() => openLibrary({ database, resources: ['pet'] })), `openKeys: ${problem}`);
    const open = await openLibrary({ database });
    assert.equal(await messageOf(() => open.withAdditions({ resources: ['pet'] })), `keys.withAdditions: ${problem}`);
    assert.match(
      await messageOf(() => open.withAdditions({ policy: { maxLifetime: 'long' } })),
      /^keys\.withAdditions: .*long/,
    );
    await open.close();
  });

  it('do not matter once the store is closed, which is the error', async () => {
    const open = await openLibrary({ database });
    const same = open.withAdditions({ resources: ['WIKI'] });
    await open.close();
    const message = `The key store ${open.location} is closed. Open it again, or close it once nothing uses it.`;
    for (const closed of [open, same])
      await assert.rejects(closed.list({}, { actor: OPERATOR }), { code: 'STORE_UNAVAILABLE', message });
  });

  it('are refused where they are inherited, and would be checked and then not used', async () => {
    class Options {
      get permission() {
        return 'INVOICE:READ_ANY';
      }
      get keys() {
        return keys;
      }
    }
    const plain = /an object of a class\. Give a plain object with /;
    assert.match(await messageOf(() => forHono(new Options() as never)), plain);
    assert.match(await messageOf(() => forNode(Object.create({ keys }) as never)), plain);
    assert.match(await messageOf(() => keys.check({}, new Options() as never)), plain);
    assert.match(await messageOf(() => keys.check(Object.create({ secret: 'x' }) as never)), plain);
    assert.match(await messageOf(() => openKeys(Object.create({ database }) as never)), plain);
    const hidden = { keys, introspection: 'off' };
    assert.match(await messageOf(() => createApp(Object.create(hidden) as never)), plain);
    forHono(Object.assign(Object.create(null) as object, { keys }));
  });

  it('are refused where they could only fail later', async () => {
    for (const realm of ['a\r\nb', 'a"b', 'a\\b', 'ä'])
      assert.match(await messageOf(() => forHono({ keys, realm })), /"realm" has a character/);
    assert.match(await messageOf(() => openKeys({ database, roles: [] as never })), /"roles" is a list/);
    assert.match(await messageOf(() => openKeys({ database, maxVerifiedKeys: 0.5 })), /whole number/);
    const app = new Hono();
    const at = { app, host: '127.0.0.1', port: 0 };
    assert.match(await messageOf(() => listen({ ...at, keepAliveMs: Infinity })), /milliseconds from 0 to/);
    assert.match(await messageOf(() => listen({ ...at, socket: '/tmp/x' } as never)), /exclude one another/);
  });

  it('are no mistake of the caller of keys.check if the values come from a client', async () => {
    const { key: secret } = await keys.create({ name: 'Caller', roles: ['GUEST'] }, OPERATOR);
    const bearer = `Bearer ${secret}`;
    const statusOf = async (headers: unknown) => {
      const checked = await keys.check({ headers: headers as never, address: '127.0.0.1' });
      return checked.ok ? 200 : checked.status;
    };
    for (const headers of [null, 'x', 7, [], { authorization: { toString: 1 } }, { authorization: [7, null] }])
      assert.equal(await statusOf(headers), 401, JSON.stringify(headers));
    const long = { authorization: bearer, 'x-forwarded-for': { length: 1e9 } };
    assert.equal(await statusOf(long), 200);
    const asMap = new Map([['Authorization', bearer]]);
    const asMetadata = { getMap: () => ({ authorization: bearer }), get: () => [bearer] };
    for (const headers of [asMap, asMetadata, new Headers([...asMap]), [...asMap]])
      assert.equal(await statusOf(headers), 200);
  });

  it('are taken as a configuration gives them', async () => {
    const file = join(tempFolder(), 'svc-api.yaml');
    const resources = '[WIKI, { name: VAULT, credentials: true }]';
    writeFileSync(file, `resources: ${resources}\npolicy: { maxLifetime: 90d }\nlimits: { default: [100/m] }\n`);
    const config = await loadConfig({ file });
    const { roles, limits, policy } = config;
    const opened = await openKeys({
      database: await migratedStore(),
      resources: config.resources,
      roles,
      defaultLimits: limits.default,
      policy,
      timer: undefined,
    });
    const app = await createApp({ keys: opened, config });
    const server = await listen({ app, host: '127.0.0.1', port: 0, watchers: [] });
    await server.stop(0);
    await opened.close();
  });
});
