import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { type Context, Hono } from 'hono';
import { bearerAuth } from '../../src/http/bearer-auth.ts';
import { requestCheck, type CheckedRequest, type RequestCheck } from '../../src/http/request-check.ts';
import type { RequiredPermissions } from '../../src/http/bearer-options.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { CredentialPlace } from '../../src/keys/secret/secret.ts';
import { describeOnEach } from '../support/dialects.ts';
import { GUARDED_SERVERS } from '../support/guarded-servers.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';

/** The answer in a common form: a status, and a code if refused. */
type Answer = string;
/** Sends a request with these headers. */
type Send = (headers: Readonly<Record<string, string>>) => Promise<Answer>;
interface Door {
  send: Send;
  stop(): Promise<unknown>;
}

/** The doors of the library. Each sees requests from 127.0.0.1, and trusts that proxy for the client's address. */
const DOORS: Readonly<Record<string, (keys: TestKeys['keys'], required: RequiredPermissions) => Promise<Door>>> = {
  ...Object.fromEntries(
    Object.entries(GUARDED_SERVERS).map(([name, start]) => [
      `bearerAuth for ${name}`,
      async (keys: TestKeys['keys'], required: RequiredPermissions) => {
        const server = await start({ keys, ...required });
        const send: Send = async (headers) => {
          const response = await fetch(server.url, { headers });
          const text = await response.text();
          return answerOf(response.status, response.ok ? undefined : text);
        };
        return { send, stop: () => server.stop() };
      },
    ]),
  ),
  'keys.check of a request of Node': async (keys, required) => {
    const check = requestCheck(keys);
    const server = createServer(async (incoming: IncomingMessage, outgoing) => {
      const checked = await check(incoming, required);
      if (checked.ok) outgoing.end(checked.principal.apiKey.name);
      else outgoing.writeHead(checked.status, checked.headers).end(checked.body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const send: Send = async (headers) => {
      const response = await fetch(url, { headers });
      const text = await response.text();
      return answerOf(response.status, response.ok ? undefined : text);
    };
    return { send, stop: async () => (server.close(), server.closeAllConnections()) };
  },
  'keys.check of a Request, with the address beside it': (keys, required) =>
    checking(keys, (check, headers) => {
      const { 'x-forwarded-for': address = '127.0.0.1', ...others } = headers;
      return check(new Request('http://127.0.0.1/', { headers: others }), { ...required, address });
    }),
  'keys.check of plain headers': (keys, required) =>
    checking(keys, (check, headers) => check({ method: 'GET', headers, address: '127.0.0.1' }, required)),
  'keys.check of a secret': (keys, required) =>
    checking(keys, (check, { authorization, 'x-forwarded-for': address = '127.0.0.1' }) =>
      check({ method: 'GET', secret: authorization?.replace('Bearer ', ''), address }, required),
    ),
};

async function checking(
  keys: TestKeys['keys'],
  check: (check: RequestCheck, headers: Readonly<Record<string, string>>) => Promise<CheckedRequest>,
): Promise<Door> {
  const made = requestCheck(keys);
  const send: Send = async (headers) => {
    const checked = await check(made, headers);
    if (checked.ok) return answerOf(200);
    const response = checked.response();
    assert.deepEqual([response.status, Object.fromEntries(response.headers)], [checked.status, checked.headers]);
    assert.equal(await response.text(), checked.body);
    return answerOf(checked.status, checked.body);
  };
  return { send, stop: async () => {} };
}

function answerOf(status: number, refusal?: string): Answer {
  if (refusal === undefined) return `${status}`;
  return `${status} ${(JSON.parse(refusal) as { code: string }).code}`;
}

const OK = '200';
const UNAUTHENTICATED = '401 UNAUTHENTICATED';
const FORBIDDEN = '403 FORBIDDEN';
const LIMITED = '429 RATE_LIMITED';
const SPENT = '429 BUDGET_SPENT';
const FOREIGN = '203.0.113.7';

/** A secret and an address, what happened before, the requirement, and the expected answers in turn. */
interface Case {
  key?: Partial<NewKey>;
  /** A change of the key after its creation. */
  after?: (test: TestKeys, id: string) => unknown;
  secret?: (secret: string) => string | undefined;
  from?: string;
  required?: RequiredPermissions;
  answers: readonly Answer[];
}

const CASES: Readonly<Record<string, Case>> = {
  'lets a valid key in': { answers: [OK] },
  'refuses a request without a key': { secret: () => undefined, answers: [UNAUTHENTICATED] },
  'refuses a wrong key': { secret: () => 'nonsense', answers: [UNAUTHENTICATED] },
  'refuses a mistyped key': { secret: (secret) => `${secret}x`, answers: [UNAUTHENTICATED] },
  'refuses a disabled key': {
    after: ({ keys }, id) => keys.setEnabled(id, false, OPERATOR),
    answers: [UNAUTHENTICATED],
  },
  'refuses an expired key': {
    key: { expiresIn: '1h' },
    after: ({ time }) => (time.now += 3_600_000),
    answers: [UNAUTHENTICATED],
  },
  'refuses a deleted key': { after: ({ keys }, id) => keys.delete([id], OPERATOR), answers: [UNAUTHENTICATED] },
  'refuses a key in a foreign network': { key: { allowFrom: ['10.0.0.0/8'] }, from: FOREIGN, answers: [FORBIDDEN] },
  'lets a key in from its network': { key: { allowFrom: ['203.0.113.0/24'] }, from: FOREIGN, answers: [OK] },
  'holds a key to its limit': { key: { limits: ['2/h'] }, answers: [OK, OK, LIMITED, LIMITED] },
  'holds a key to its budget': { key: { limits: ['2/budget'] }, answers: [OK, OK, SPENT, SPENT] },
  'lets a key work once': { key: { limits: ['9/m', '1/uses'] }, answers: [OK, SPENT] },
  'refuses a key that lacks the permission': { required: { permission: 'DOCKER:READ_ANY' }, answers: [FORBIDDEN] },
  'lets a key in that has the permission': { required: { permission: 'ME:READ_OWN' }, answers: [OK] },
  'refuses a key that lacks one of all permissions': {
    required: { all: ['ME:READ_OWN', 'DOCKER:READ_ANY'] },
    answers: [FORBIDDEN],
  },
  'lets a key in that has all permissions': { required: { all: ['ME:READ_OWN', 'ONLINE:READ_ANY'] }, answers: [OK] },
  'refuses a key that has none of any permissions': {
    required: { any: ['VMS:READ_ANY', 'DOCKER:READ_ANY'] },
    answers: [FORBIDDEN],
  },
  'lets a key in that has one of any permissions': {
    required: { any: ['DOCKER:READ_ANY', 'ME:READ_OWN'] },
    answers: [OK],
  },
  'lets a key in that may read, by GET, where a resource is named': {
    key: { permissions: ['DOCKER:READ_ANY'] },
    required: { resource: 'DOCKER' },
    answers: [OK],
  },
  'refuses a key that may only change, by GET, where a resource is named': {
    key: { permissions: ['DOCKER:UPDATE_ANY', 'DOCKER:CREATE_ANY', 'DOCKER:DELETE_ANY'] },
    required: { resource: 'DOCKER' },
    answers: [FORBIDDEN],
  },
  'says so after too many wrong keys from one address': {
    secret: () => 'nonsense',
    from: FOREIGN,
    answers: [...Array<Answer>(20).fill(UNAUTHENTICATED), LIMITED],
  },
};

describeOnEach('the doors of the library', () => {
  let test: TestKeys;
  let count = 0;
  before(async () => {
    test = await openTestKeys();
  });
  beforeEach(() => void (count += 1));
  // Resets limits and failed attempts.
  afterEach(() => void (test.time.now += 24 * 3_600_000));
  after(() => test.store.close());

  for (const [name, open] of Object.entries(DOORS))
    describe(name, () => {
      let door: Door | undefined;
      afterEach(() => door?.stop());

      /** Sends the requests of a case with a new key. */
      async function answersTo({ key, after: change, secret, from, required = {}, answers }: Case) {
        const input = { name: `Key ${count}`, roles: ['GUEST'], ...key };
        const { key: created, apiKey } = await test.keys.create(input, OPERATOR);
        await change?.(test, apiKey.id);
        door = await open(test.keys, required);
        const shown = secret ? secret(created) : created;
        const headers = {
          ...(shown !== undefined && { authorization: `Bearer ${shown}` }),
          ...(from !== undefined && { 'x-forwarded-for': from }),
        };
        const given: Answer[] = [];
        for (const _ of answers) given.push(await door.send(headers));
        return { given, id: apiKey.id };
      }

      for (const [what, asked] of Object.entries(CASES))
        it(what, async () => assert.deepEqual((await answersTo(asked)).given, asked.answers));

      it('lets a valid key in from an address with many wrong ones', async () => {
        const wrong = CASES['says so after too many wrong keys from one address']!;
        await answersTo(wrong);
        const { key } = await test.keys.create({ name: `Valid ${count}`, roles: ['GUEST'] }, OPERATOR);
        assert.equal(await door!.send({ authorization: `Bearer ${key}`, 'x-forwarded-for': FOREIGN }), OK);
      });

      it('refuses what the parent key no longer may', async () => {
        const parent = await createPrincipal(test.keys, { name: `Parent ${count}`, roles: ['ADMIN'] });
        const child = await test.keys.create({ name: `Child ${count}`, roles: ['VIEWER'] }, parent.principal);
        door = await open(test.keys, { permission: 'DOCKER:READ_ANY' });
        const headers = { authorization: `Bearer ${child.key}` };
        const before = await door.send(headers);
        await test.keys.update(parent.principal.apiKey.id, { roles: ['GUEST'] }, OPERATOR);
        const narrowed = await door.send(headers);
        await test.keys.setEnabled(parent.principal.apiKey.id, false, OPERATOR);
        assert.deepEqual([before, narrowed, await door.send(headers)], [OK, FORBIDDEN, UNAUTHENTICATED]);
      });

      it('counts a request that was accepted as a use, once', async () => {
        const { id } = await answersTo({ answers: [OK, OK, OK] });
        await test.keys.finishActivity();
        assert.equal((await test.keys.useOf([id])).get(id)?.uses, 3);
      });
    });
});

describe('bearerAuth for Hono', () => {
  it('shows no secret in logged variables of a request', async () => {
    const test = await openTestKeys();
    const { secret } = await createPrincipal(test.keys, { name: 'Logged', roles: ['GUEST'] });
    const app = new Hono().use(bearerAuth({ keys: test.keys }));
    app.get('/', (c) => c.text(`${JSON.stringify(c.var)} ${inspect(c.var, { depth: Infinity, showHidden: true })}`));
    const logged = await (await app.request('/', { headers: { authorization: `Bearer ${secret}` } })).text();
    assert.match(logged, /Logged/);
    assert.ok(!logged.includes(secret));
    await test.store.close();
  });
});

describe('bearerAuth for Hono, in another runtime than Node', () => {
  it("takes the client's address from the runtime, and not from a proxy's header", async () => {
    const { keys, store } = await openTestKeys();
    const input = { name: 'Bound', roles: ['GUEST'], allowFrom: ['192.0.2.0/24'] };
    const { key } = await keys.create(input, OPERATOR);
    const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': '192.0.2.1', 'x-real-ip': '192.0.2.7' };
    const statusWith = async (address?: (c: Context) => string | undefined) => {
      const app = new Hono().use(bearerAuth({ keys, ...(address && { address }) })).get('/', (c) => c.text('in'));
      return (await app.request('/', { headers })).status;
    };
    assert.equal(await statusWith((c) => c.req.header('x-real-ip')), 200);
    assert.equal(await statusWith(() => '::ffff:192.0.2.9'), 200);
    for (const address of [undefined, () => undefined, () => '127.0.0.1', () => '198.51.100.1'])
      assert.equal(await statusWith(address), 403);
    assert.throws(() => bearerAuth({ keys, address: '192.0.2.1' as never }), {
      message: 'bearerAuth: The option "address" is a string. It must be a function.',
    });
    await store.close();
  });
});

describe('keys.check', () => {
  let test: TestKeys;
  let check: RequestCheck;
  const create = async (fields: Partial<NewKey> = {}) =>
    (await test.keys.create({ name: 'Checked', roles: ['GUEST'], ...fields }, OPERATOR)).key;
  beforeEach(async () => {
    test = await openTestKeys();
    check = requestCheck(test.keys);
  });
  afterEach(() => test.store.close());

  it('reports limits, and how to send a key', async () => {
    const secret = await create({ limits: ['2/h'] });
    const checked = await check({ secret });
    assert.deepEqual(checked.headers, { 'RateLimit-Policy': '"hour";q=2;w=3600', RateLimit: '"hour";r=1;t=1800' });
    const refused = await check({ secret: undefined });
    assert.equal(refused.headers['www-authenticate'], 'Bearer realm="svc-api"');
  });

  it('lets no key in that is bound to a network where the address is not known', async () => {
    const secret = await create({ allowFrom: ['127.0.0.0/8'] });
    const headers = { authorization: `Bearer ${secret}` };
    const request = new Request('http://127.0.0.1/', { headers });
    const answers = [check(request), check({ headers }), check(request, { address: undefined }), check({ secret })];
    for (const answer of await Promise.all(answers)) assert.equal(answer.ok || answer.status, 403);
    assert.ok((await check(request, { address: '::ffff:127.0.0.1' })).ok);
  });

  it('believes no header of a proxy where the address is given', async () => {
    const secret = await create({ allowFrom: ['10.0.0.0/8'] });
    const headers = { authorization: `Bearer ${secret}`, 'x-forwarded-for': '10.0.0.1', forwarded: 'for=10.0.0.1' };
    const checked = await check(new Request('http://127.0.0.1/', { headers }), { address: '127.0.0.1' });
    assert.equal(checked.ok || checked.status, 403);
  });

  it('takes only the named secret, though headers have another', async () => {
    const secret = await create();
    const headers = { authorization: `Bearer ${secret}` };
    for (const shown of [undefined, '', null, 5, {}]) {
      const checked = await check({ headers, secret: shown as string });
      assert.equal(checked.ok || checked.status, 401);
    }
  });

  it('reads headers in any case, and refuses two', async () => {
    const secret = await create();
    const bearer = `Bearer ${secret}`;
    assert.ok((await check({ headers: { Authorization: [bearer], Cookie: undefined } })).ok);
    for (const headers of [{ Authorization: [bearer, bearer] }, { Authorization: bearer, authorization: bearer }]) {
      const checked = await check({ headers });
      assert.equal(checked.ok || checked.status, 400);
    }
  });

  it('checks again, as the key is now, and counts that as no use', async () => {
    const secret = await create({ limits: ['1/h'] });
    const checked = await check({ secret }, { permission: 'ME:READ_OWN' });
    assert.ok(checked.ok && (await checked.checkAgain()).ok);
    const { id } = checked.principal.apiKey;
    await test.keys.update(id, { permissions: ['DOCKER:READ_ANY'], roles: [] }, OPERATOR);
    const narrowed = await checked.checkAgain();
    assert.equal(narrowed.ok || narrowed.status, 403);
    await test.keys.delete([id], OPERATOR);
    const deleted = await checked.checkAgain();
    assert.equal(deleted.ok || deleted.status, 401);
  });

  it('shows no secret in logged answers', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Logged', roles: ['GUEST'] });
    const checked = await check({ headers: { authorization: `Bearer ${secret}` } });
    assert.ok(checked.ok);
    for (const each of [checked, await checked.checkAgain()]) {
      assert.deepEqual(Object.keys(each), ['ok', 'principal', 'headers', 'checkAgain']);
      for (const logged of [JSON.stringify(each), inspect(each, { depth: Infinity, showHidden: true })])
        assert.ok(!logged.includes(secret));
    }
  });

  it('requires the permission for the method on a resource', async () => {
    const key = async (name: string, permission: string) => create({ name, roles: [], permissions: [permission] });
    const keys = [
      await key('Reader', 'DOCKER:READ_ANY'),
      await key('Maker', 'DOCKER:CREATE_ANY'),
      await key('Changer', 'DOCKER:UPDATE_ANY'),
      await key('Remover', 'DOCKER:DELETE_ANY'),
      await create({ name: 'Own alone', roles: [], permissions: ['DOCKER:READ_OWN'] }),
    ];
    const allowed = async (method: string) => {
      const checks = keys.map((secret) => check({ secret, method }, { resource: 'DOCKER' }));
      return (await Promise.all(checks)).map(({ ok }) => (ok ? 1 : 0)).join('');
    };
    for (const method of ['GET', 'HEAD', 'OPTIONS']) assert.equal(await allowed(method), '10000', method);
    assert.equal(await allowed('POST'), '01000');
    for (const method of ['PUT', 'PATCH']) assert.equal(await allowed(method), '00100', method);
    assert.equal(await allowed('DELETE'), '00010');
    const admin = await create({ name: 'Admin', roles: ['ADMIN'] });
    for (const method of ['PROPFIND', 'get', '']) {
      const refused = await check({ secret: admin, method: method || 'TRACE' }, { resource: 'DOCKER' });
      assert.deepEqual(
        [refused.ok || refused.status, refused.ok || refused.message],
        [403, 'No permission on DOCKER covers this method.'],
      );
    }
    await assert.rejects(check({ secret: admin }, { resource: 'DOCKER' }), {
      code: 'OPTION_INVALID',
      message: 'keys.check: "resource" needs the method of the request, which this request does not have.',
    });
  });

  it('reports who makes the request, its permissions, and on whose behalf', async () => {
    const parent = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] });
    const child = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, parent.principal);
    const checked = await check({ secret: child.key });
    assert.ok(checked.ok);
    const { principal } = checked;
    const id = parent.principal.apiKey.id;
    assert.deepEqual([principal.apiKey.name, principal.owner, parent.principal.owner], ['Child', id, id]);
    assert.deepEqual(principal.permissions(), [
      'ME:READ_OWN',
      'ONLINE:READ_ANY',
      'ONLINE:READ_OWN',
      'WELCOME:READ_ANY',
      'WELCOME:READ_OWN',
    ]);
    assert.deepEqual([principal.can('ONLINE:READ_OWN'), principal.can('DOCKER:READ_ANY')], [true, false]);
    await test.keys.finishActivity();
    // Permissions that were needed and held count as used; a missing one is not a refusal.
    assert.deepEqual(test.usedGrants.of(child.apiKey.id), ['ONLINE:READ_OWN']);
    for (const [text, message] of [
      ['DOKER:READ_ANY', '"DOKER:READ_ANY" is not a permission: "DOKER" is not a resource. Did you mean DOCKER?'],
      ['docker:read_any', '"docker:read_any" is not a permission. Did you mean DOCKER:READ_ANY?'],
      ['ADMIN', '"ADMIN" is not a permission. Write RESOURCE:ACTION'],
      [undefined, 'A permission is undefined. Write RESOURCE:ACTION.'],
    ])
      assert.throws(
        () => principal.can(text as never),
        ({ code, message: said }: Error & { code: string }) =>
          code === 'OPTION_INVALID' && said.startsWith(`principal.can: ${message}`),
      );
  });

  it('answers 503 where the store does not', async () => {
    const secret = await create();
    await test.store.close();
    const checked = await check({ secret });
    assert.deepEqual([!checked.ok && checked.status, !checked.ok && checked.code], [503, 'SERVICE_UNAVAILABLE']);
  });

  it('rejects options and requests that cannot be meant', async () => {
    const secret = await create();
    const place: CredentialPlace = 'bearer';
    for (const [request, options, message] of [
      [{ secret }, { permissions: 'ME:READ_OWN' }, '"permissions" is not an option. Did you mean permission?'],
      [
        { secret },
        { permission: undefined },
        'The option "permission" is undefined. Leave it out, or give it a value.',
      ],
      [
        { secret },
        { credentials: [place] },
        '"credentials" is not an option. The options are permission, all, any, resource, onRefused, address and audience.',
      ],
      [{ secrets: secret }, {}, '"secrets" is not an option. Did you mean secret?'],
      [{ secret, address: '' }, {}, 'The option "address" is empty. Leave it out, or give it a value.'],
      [undefined, {}, 'The request is undefined. Give an object with method, headers, secret and address.'],
      [secret, {}, 'The request is a string. Give an object with method, headers, secret and address.'],
    ] as const)
      await assert.rejects(check(request as object, options as object), {
        code: 'OPTION_INVALID',
        message: `keys.check: ${message}`,
      });
  });
});
