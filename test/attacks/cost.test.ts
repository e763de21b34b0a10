import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { getIntrospectionQuery } from 'graphql';
import type { SchemaExtension } from '../../src/graphql/extension.ts';
import type { BudgetLimits } from '../../src/graphql/index.ts';
import { USED_GRANTS } from '../../src/features/usage/suggest.ts';
import { USE } from '../../src/keys/key/use.ts';
import type { KeyRepository } from '../../src/keys/repository/repository.ts';
import { REQUESTS } from '../../src/features/apply/requests.ts';
import { createPrincipal, openTestKeys, type TestKeys, withPort } from '../support/keys.ts';
import { FEATURES } from '../../src/features/index.ts';
import { createSchema } from '../../src/graphql/schema.ts';
import { costlyDocument, operationNameIn } from '../support/costly-document.ts';
import { costlyQuery } from '../support/costly-query.ts';
import { type Caller, largeStore } from '../support/large-store.ts';
import { Random } from '../support/random.ts';
import { query, startServer, startTestService, type TestServer, type TestService } from '../support/server.ts';
import {
  DEVICE_GRANT,
  RESOURCES,
  startAttacked,
  type StrangerRequest,
  strangerRequest,
  TRIVIAL,
  UNKNOWN_KEY,
} from '../support/strangers.ts';
import { workOf } from '../support/work.ts';

const times = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i)).join(' ');
/** The server's time. */
const NOW = Date.UTC(2030, 0, 1);
const MARKS = '\u0301\u0323'.repeat(24_000);
const WELCOME = '@requires(resource: WELCOME, action: READ_OWN)';

/** Fields of a host, as expensive as the client likes. */
const host = { started: 0, aborted: 0 };
const extension: SchemaExtension = {
  typeDefs: `
    type Item { value: Int! values: [Int!]! slow: Int! }
    extend type Query {
      numbers(count: Int!): [Int!]! ${WELCOME}
      items(count: Int!): [Item!]! ${WELCOME}
      never: Int ${WELCOME}
      echo(text: String): Int ${WELCOME}
    }`,
  resolvers: {
    Query: {
      numbers: (_: unknown, { count }: { count: number }) => Array.from({ length: count }, (__, index) => index),
      items: (_: unknown, { count }: { count: number }) => Array.from({ length: count }, (__, value) => ({ value })),
      never: (_: unknown, __: unknown, { signal }: { signal: AbortSignal }) => {
        signal.addEventListener('abort', () => (host.aborted += 1));
        return new Promise(() => {});
      },
      echo: (_: unknown, { text }: { text?: string }) => text?.length,
    },
    Item: {
      values: () => Array.from({ length: 1000 }, (_, index) => index),
      slow: async () => {
        host.started += 1;
        const end = performance.now() + 2;
        while (performance.now() < end);
        return 1;
      },
    },
  },
};

describe('a costly request', () => {
  let test: TestKeys;
  let server: TestServer;
  let secrets: Record<Caller, string>;
  let calls: string[];

  before(async () => {
    const store = await largeStore({ keys: 3000, entries: 20_000, now: NOW });
    ({ secrets } = store);
    calls = [];
    const repository = (real: KeyRepository): KeyRepository => ({
      ...withPort(
        withPort(real, USE, (use) => ({ totals: (ids) => (calls.push('usage'), use.totals(ids)) })),
        USED_GRANTS,
        (used) => ({ of: (ids) => (calls.push('used'), used.of(ids)) }),
      ),
      findAncestors: (ids) => (calls.push('ancestors'), real.findAncestors(ids)),
    });
    test = await openTestKeys({ database: store.path, repository });
    server = await startServer(test.keys, { extensions: [extension] });
  });
  after(async () => {
    await server.stop();
    await test.store.close();
  });

  const ask = async (caller: Caller, document: string, variables?: Record<string, unknown>) =>
    (await query(server.url, secrets[caller], document, variables)).body;
  const codesOf = ({ errors = [] }: Awaited<ReturnType<typeof ask>>) => [
    ...new Set(errors.map(({ extensions }) => extensions['code'])),
  ];

  const refused: [what: string, caller: Caller, document: string, code: string, variables?: Record<string, unknown>][] =
    [
      [
        '100 pages of the audit log',
        'VIEWER',
        `{ ${times(100, (i) => `a${i}: auditLog(first: 500) { edges { cursor } }`)} }`,
        'COST_EXCEEDED',
      ],
      [
        '100 pages of which nothing is shown',
        'VIEWER',
        `{ ${times(100, (i) => `a${i}: auditLog(first: 500) { __typename }`)} }`,
        'COST_EXCEEDED',
      ],
      [
        '100 suggestions for each key',
        'ADMIN',
        `{ apiKeys(first: 500) { edges { node { ${times(100, (i) => `a${i}: suggestedPermissions { resource }`)} } } } }`,
        'COST_EXCEEDED',
      ],
      [
        'the same in a fragment',
        'ADMIN',
        `{ apiKeys(first: 500) { edges { node { ...A } } } } fragment A on ApiKey { ${times(100, (i) => `a${i}: suggestedPermissions { resource }`)} }`,
        'COST_EXCEEDED',
      ],
      [
        'a page whose size is a variable',
        'ADMIN',
        `query ($n: Int = 500) { apiKeys(first: $n) { edges { node { ${times(9, (i) => `a${i}: suggestedPermissions { resource }`)} } } } }`,
        'COST_EXCEEDED',
      ],
      [
        '330 rotations of a guest',
        'GUEST',
        `{ ${times(330, () => 'me { rotation { previousLastUsedAt } }')} }`,
        'LIMIT_EXCEEDED',
      ],
      [
        '20 searches',
        'ADMIN',
        `{ ${times(20, (i) => `a${i}: apiKeys(first: 1, search: "x${i}") { __typename }`)} }`,
        'COST_EXCEEDED',
      ],
      [
        'two lists by a role',
        'ADMIN',
        '{ a: apiKeys(first: 1, roles: [GUEST]) { __typename } b: apiKeys(first: 1, roles: [VIEWER]) { __typename } }',
        'COST_EXCEEDED',
      ],
      [
        '20 filters of the log',
        'VIEWER',
        `{ ${times(20, (i) => `a${i}: auditLog(first: 1, actor: "x${i}") { __typename }`)} }`,
        'COST_EXCEEDED',
      ],
      [
        '500 ids in each of 5 fields',
        'ADMIN',
        `mutation ($ids: [ID!]!) { ${times(5, (i) => `a${i}: deleteApiKeys(ids: $ids) { deleted }`)} }`,
        'COST_EXCEEDED',
        { ids: Array.from({ length: 500 }, (_, i) => `x${i}`) },
      ],
      [
        'one long text in 50 fields',
        'ADMIN',
        `query ($text: String) { ${times(50, (i) => `a${i}: echo(text: $text)`)} }`,
        'COST_EXCEEDED',
        { text: 'x'.repeat(900_000) },
      ],
      [
        'types of types of the schema',
        'GUEST',
        '{ __schema { types { fields { type { fields { type { fields { name args { name } type { name } } } } } } } } }',
        'COST_EXCEEDED',
      ],
    ];
  for (const [what, caller, document, code, variables] of refused) {
    it(`of ${what} is refused before it runs, however often it is sent`, async () => {
      for (let time = 0; time < 3; time += 1) {
        calls = [];
        const { data, errors } = await ask(caller, document, variables);
        assert.deepEqual([data, errors?.map(({ extensions }) => extensions['code']), calls], [undefined, [code], []]);
      }
    });
  }

  it('is refused with its cost and the limit', async () => {
    const { errors } = await ask(
      'VIEWER',
      `{ ${times(100, (i) => `a${i}: auditLog(first: 500) { edges { cursor } }`)} }`,
    );
    const { cost, limit, code } = errors![0]!.extensions;
    assert.deepEqual([code, limit], ['COST_EXCEEDED', 30_000]);
    assert.equal(
      errors![0]!.message,
      `The request costs ${String(cost)}; at most 30000 is allowed. Ask for smaller pages or fewer fields.`,
    );
  });

  it('is refused with a prepared operation as well: the variables count', async () => {
    const document = 'query ($n: Int!) { numbers(count: $n) }';
    for (let time = 0; time < 3; time += 1)
      assert.deepEqual((await ask('ADMIN', document, { n: 2 })).data, { numbers: [0, 1] });
    assert.deepEqual(codesOf(await ask('ADMIN', document, { n: 1_000_000 })), ['COST_EXCEEDED']);
    const page =
      'query ($n: Int!) { apiKeys(first: $n) { edges { node { a: suggestedPermissions { resource } b: suggestedPermissions { resource } c: suggestedPermissions { resource } } } } }';
    for (let time = 0; time < 3; time += 1) assert.deepEqual(codesOf(await ask('ADMIN', page, { n: 1 })), []);
    assert.deepEqual(codesOf(await ask('ADMIN', page, { n: 500 })), ['COST_EXCEEDED']);
  });

  for (const [what, document] of [
    ['a list of a host with a million items', '{ items(count: 1000000) { value } online }'],
    ['long lists in a list of a host', '{ items(count: 100) { values } online }'],
  ] as const) {
    it(`is stopped at ${what}, and the other fields answer`, async () => {
      const body = await ask('ADMIN', document);
      assert.deepEqual(codesOf(body), ['COST_EXCEEDED']);
      assert.equal(body.data?.['online'], true);
    });
  }

  it('whose answer is too long is stopped before it is written', async () => {
    const body = await ask(
      'ADMIN',
      `{ apiKeys(first: 500) { edges { node { ${times(20, (i) => `a${i}: description`)} } } } }`,
    );
    assert.deepEqual([body.data, codesOf(body)], [null, ['COST_EXCEEDED']]);
    assert.match(body.errors![0]!.message, /more than 4000000 characters/);
  });

  describe('with 96 KB of combining marks', () => {
    const doors: [door: string, document: string, code: string][] = [
      ['a search', 'query ($t: String!) { apiKeys(search: $t) { __typename } }', 'INPUT_INVALID'],
      ['a key to look up', 'query ($t: String!) { apiKey(name: $t) { id } }', 'INPUT_INVALID'],
      ['a key of the audit log', 'query ($t: String!) { auditLog(apiKey: $t) { __typename } }', 'INPUT_INVALID'],
      ['an actor of the audit log', 'query ($t: String!) { auditLog(actor: $t) { __typename } }', 'INPUT_INVALID'],
      [
        'a new name',
        'mutation ($t: String!) { createApiKey(input: { name: $t, roles: [GUEST] }) { key } }',
        'NAME_INVALID',
      ],
      [
        'a new description',
        'mutation ($t: String!) { createApiKey(input: { name: "X", description: $t, roles: [GUEST] }) { key } }',
        'DESCRIPTION_INVALID',
      ],
      [
        'a changed name',
        'mutation ($t: String!) { updateApiKey(input: { id: "x", name: $t }) { id } }',
        'NAME_INVALID',
      ],
      [
        'a changed description',
        'mutation ($t: String!) { updateApiKey(input: { id: "x", description: $t }) { id } }',
        'DESCRIPTION_INVALID',
      ],
      [
        'a declared name',
        'mutation ($t: String!) { applyApiKeys(input: { keys: [{ name: $t, roles: [GUEST] }] }) { unchanged } }',
        'DECLARATION_INVALID',
      ],
      [
        'a declared description',
        'mutation ($t: String!) { applyApiKeys(input: { keys: [{ name: "X", description: $t, roles: [GUEST] }] }) { unchanged } }',
        'DECLARATION_INVALID',
      ],
    ];
    for (const [door, document, code] of doors) {
      // Normalizing this takes a thousand times as long as normalizing letters.
      it(`as ${door} is refused before it is normalized`, async () => {
        const normalize = mock.method(String.prototype, 'normalize');
        try {
          assert.deepEqual(codesOf(await ask('ADMIN', document, { t: `x${MARKS}` })), [code]);
        } finally {
          normalize.mock.restore();
        }
        const longest = Math.max(0, ...normalize.mock.calls.map((call) => String(call.this).length));
        assert.ok(longest < MARKS.length, `${longest} characters`);
      });
    }
  });

  for (const [what, caller, document] of [
    [
      'the introspection of common tools',
      'GUEST',
      getIntrospectionQuery({ specifiedByUrl: true, inputValueDeprecation: true }),
    ],
    [
      '500 keys with all their plain fields',
      'ADMIN',
      '{ apiKeys(first: 500) { edges { cursor node { id name description roles permissions { resource actions } prefix createdAt createdBy status expiresAt managed uses lastUsedAt } } pageInfo { hasNextPage endCursor } } }',
    ],
    [
      'a list by a text, roles and a status',
      'ADMIN',
      '{ apiKeys(search: "key", roles: [ADMIN, VIEWER], status: ACTIVE) { edges { node { id name } } } }',
    ],
    [
      '500 audit entries with all their fields',
      'VIEWER',
      '{ auditLog(first: 500) { edges { cursor node { number at actor { kind keyId name } action keyId keyName changes { field before after } hash } } pageInfo { hasNextPage endCursor } } }',
    ],
    [
      '50 keys with all that they may do',
      'ADMIN',
      '{ apiKeys { edges { node { name effectivePermissions { resource actions } usedPermissions { resource actions } suggestedPermissions { resource actions } limitedBy { keyId name } rotation { previousLastUsedAt } } } } }',
    ],
  ] as const) {
    it(`is not what ${what} are`, async () => {
      const body = await ask(caller, document);
      assert.deepEqual(body.errors, undefined);
    });
  }

  it('asks the store once for many keys, and not again for the same ones', async () => {
    calls = [];
    const fields =
      'uses lastUsedAt usedPermissions { resource } suggestedPermissions { resource } status rotation { previousLastUsedAt }';
    const again = 'a: uses b: usedPermissions { resource } c: unusedPermissions { resource } d: status';
    const { errors } = await ask('ADMIN', `{ apiKeys(first: 100) { edges { node { ${fields} ${again} } } } }`);
    assert.equal(errors, undefined);
    // In batches of 50, or down to 20 where the list waits for its turn on a busy machine.
    for (const what of ['ancestors', 'usage', 'used']) {
      const count = calls.filter((call) => call === what).length;
      assert.ok(count >= 2 && count <= 5, `${count} of ${calls.length} calls are for ${what}`);
    }
  });

  it('of any shape takes no more than a few pages of keys: 100 made up, and 100 that attack validation', async () => {
    const cpuOf = async (document: string) => {
      const before = process.cpuUsage();
      await query(server.url, secrets.ADMIN, document, undefined, operationNameIn(document));
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    const least = async (document: string, limit: number) => {
      let cpu = await cpuOf(document);
      // Measure again: other programs use the processor too.
      for (let again = 0; again < 20 && cpu > limit; again += 1) cpu = Math.min(cpu, await cpuOf(document));
      return cpu;
    };
    const page = '{ apiKeys(first: 500) { edges { node { id name description status uses roles } } } }';
    let cpuOfPage = Infinity;
    for (let again = 0; again < 6; again += 1) cpuOfPage = Math.min(cpuOfPage, await cpuOf(page));
    const limit = 10 * cpuOfPage;
    const schema = await createSchema(test.keys, { name: 'x', version: '1', startedAt: 0 }, { features: FEATURES });
    const random = new Random(Number(process.env['SVC_API_TEST_SEEDS']?.split(',')[0] ?? 1));
    for (let count = 0; count < 200; count += 1) {
      const document = count < 100 ? costlyQuery(schema, random, test.time.now) : costlyDocument(random);
      const cpu = await least(document, limit);
      assert.ok(cpu < limit, `${cpu / limit} times the limit: ${document}`);
    }
  });

  for (const [requests, least] of [
    [1, 1],
    [5, 3],
  ] as const) {
    it(`${requests} at once: lets others have their turns`, async () => {
      const order: string[] = [];
      const page = '{ apiKeys(first: 150) { edges { node { effectivePermissions { resource actions } } } } }';
      const asked = Array.from({ length: requests }, () => ask('ADMIN', page));
      const costly = Promise.all(asked).finally(() => order.push('costly'));
      while (!order.includes('costly')) {
        await (await fetch(`${server.url}/healthz`)).text();
        order.push('other');
      }
      for (const { errors } of await costly) assert.equal(errors, undefined);
      assert.ok(order.indexOf('costly') >= least, `${order.indexOf('costly')} others were answered meanwhile`);
    });
  }
});

describe('a request without a key, of 1,000 resources and 7,000 routes', () => {
  /** The maximum cost, in health checks. */
  const MOST = 20;
  /** The maximum cost of an accepted request for a key, which a separate thread writes. */
  const MOST_TAKEN = 50;
  let attacked: Awaited<ReturnType<typeof startAttacked>>;

  /** Alternates both measurements, so that other programs slow both alike. */
  const isCheap = async (asked: StrangerRequest) => {
    let [trivial, ratio] = [Infinity, Infinity];
    // The store occasionally does other work.
    for (let time = 0; time < 20 && ratio > 1; time += 1) {
      trivial = Math.min(trivial, (await attacked.strangers.cpuOf(TRIVIAL, 20)).cpuMs);
      const { cpuMs, status } = await attacked.strangers.cpuOf(asked, 5);
      const isTaken = status === 200 && /^\/oauth\/(device_authorization|authorize)\b/.test(asked.path);
      ratio = Math.min(ratio, cpuMs / trivial / (isTaken ? MOST_TAKEN : MOST));
    }
    assert.ok(ratio <= 1, `${ratio} times what it may take: ${JSON.stringify(asked).slice(0, 500)}`);
  };

  before(async () => {
    attacked = await startAttacked();
    await attacked.strangers.cpuOf(TRIVIAL, 1000);
  });
  after(() => attacked.stop());

  const form = (path: string, body: string): StrangerRequest => ({
    to: 'service',
    method: 'POST',
    path,
    headers: ['X-Forwarded-For', 'ADDRESS', 'Content-Type', 'application/x-www-form-urlencoded'],
    body,
  });
  const page = (path: string, headers: string[] = []): StrangerRequest => ({
    to: 'service',
    method: 'GET',
    path,
    headers: ['X-Forwarded-For', 'ADDRESS', ...headers],
  });
  const NGINX = ['X-Forwarded-Host', 'x', 'X-Original-Method', 'GET', 'X-Original-URI', '/x'];
  const device = (scope: string) => form('/oauth/device_authorization', `client_id=grafana-sync&scope=${scope}`);
  for (const [what, asked] of [
    ['a scope of one long word', device('RESOURC_'.repeat(1000))],
    ['a scope of a word like all resources', device('RESOURC_12:READ_ANY')],
    ['a scope of many words', device('A+'.repeat(7000))],
    ['a scope that is encoded twice', device('x%25C3%25A4a%3D'.repeat(1000))],
    ['a scope of much that can be granted', device(RESOURCES.slice(0, 600).join('%3AREAD_ANY+'))],
    [
      'a form of parameters that are not UTF-8',
      form('/oauth/revoke', `client_id=svc-api&token=x${'&/a%ff'.repeat(2500)}`),
    ],
    ['a form of many parameters', form('/oauth/token', 'client_id=svc-api&'.repeat(850))],
    ['a query that is not UTF-8', page(`/device?user_code=${'&&%ff'.repeat(2800)}`)],
    ['an application that sends one', page(`/oauth/authorize?${'&&%ff'.repeat(2800)}`)],
    ['a way to the sign-in page that is not UTF-8', page(`/console/sign-in?${'&&%ff'.repeat(2800)}`)],
    ['a path that is not UTF-8', page(`/.well-known/oauth-authorization-server/${'a%ff'.repeat(3500)}`)],
    [
      'a proxy that is asked with a query',
      page(`/auth/nginx?${'permission=RESOURC_1ADDRESS:READ_AN&'.repeat(100)}`, NGINX),
    ],
    ['a proxy that is asked with one that is not UTF-8', page(`/auth/nginx?ADDRESS${'&&%ff'.repeat(2000)}`, NGINX)],
    ['a path of a hundred segments', page(`/auth/envoy/${'a/'.repeat(100)}x`, ['Host', 'wide.example.org'])],
  ] as const) {
    it(`is cheap with ${what}`, () => isCheap(asked));
  }

  for (const [what, path, body, status] of [
    ['a key that is none', '/oauth/revoke', `token=${UNKNOWN_KEY}`, 429],
    ['a key of all that is read', '/oauth/revoke', `token=${'x'.repeat(16_000)}`, 429],
    ['a code that is none', '/oauth/token', `grant_type=${DEVICE_GRANT}&device_code=${'x'.repeat(43)}`, 429],
    ['a code that is asked with too often', '/oauth/token', `grant_type=${DEVICE_GRANT}&device_code=CODE`, 400],
  ] as const) {
    it(`is cheap from an address that has sent too much, with ${what}`, async () => {
      const { body: named, ...asked } = form(path, `client_id=grafana-sync&${body}`);
      const headers = asked.headers.with(1, '203.0.113.7');
      const sent = { ...asked, headers, body: named!.replace('CODE', attacked.deviceCode) };
      assert.equal((await attacked.strangers.cpuOf(sent, 40)).status, status);
      await isCheap(sent);
    });
  }

  it('is cheap however long and strange it is: 150 that are made up', async () => {
    const random = new Random(Number(process.env['SVC_API_TEST_SEEDS']?.split(',')[0] ?? 1));
    for (let count = 0; count < 150; count += 1) await isCheap(strangerRequest(random));
  });
});

describe('a request that takes long', () => {
  let test: TestKeys;
  let server: TestServer;
  let secret: string;

  const start = async (limits: Partial<BudgetLimits>) => {
    const store = await largeStore({ keys: 0, entries: 0 });
    test = await openTestKeys({ database: store.path });
    secret = store.secrets.ADMIN;
    server = await startServer(test.keys, { extensions: [extension], limits });
    host.started = 0;
    host.aborted = 0;
  };
  afterEach(async () => {
    await server.stop();
    await test.store.close();
  });

  it('is abandoned when its time is up, the first time and later, and its signal says so', async () => {
    await start({ timeMs: 50 });
    for (let time = 1; time <= 4; time += 1) {
      const { body } = await query(server.url, secret, '{ never }');
      assert.deepEqual(
        body.errors?.map(({ extensions }) => extensions),
        [{ code: 'TIME_EXCEEDED', limitMs: 50 }],
      );
      assert.equal(body.data, null);
      assert.equal(host.aborted, time);
    }
  });

  it('starts no more resolvers once its time is up', async () => {
    await start({ timeMs: 50 });
    const { body } = await query(server.url, secret, '{ items(count: 2000) { slow } }');
    assert.equal(body.errors?.[0]?.extensions['code'], 'TIME_EXCEEDED');
    const started = host.started;
    await query(server.url, secret, '{ online }');
    assert.ok(started < 2000 && host.started === started, `${started} of 2000, then ${host.started}`);
  });

  it('ends when its client has gone', async () => {
    await start({});
    const controller = new AbortController();
    const sent = fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ items(count: 2000) { slow } }' }),
      signal: controller.signal,
    });
    while (host.started === 0) await (await fetch(`${server.url}/healthz`)).text();
    controller.abort();
    await assert.rejects(sent, { name: 'AbortError' });
    let before: number;
    do {
      before = host.started;
      await (await fetch(`${server.url}/healthz`)).text();
    } while (host.started > before);
    assert.ok(host.started < 2000, `${host.started} of 2000 resolvers were started`);
  });
});

describe('an apply of 1,000 keys over GraphQL', () => {
  let test: TestService;
  let secret: string;
  let round = 0;
  before(async () => {
    test = await startTestService();
    ({ secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
  });
  after(() => test.stop());

  /** Applies 1,000 new keys with the first fields, if given. @returns an apply with the other fields, to be measured */
  async function prepare(first: object | undefined, then: object): Promise<() => Promise<void>> {
    round += 1;
    const names = Array.from({ length: 1000 }, (_, index) => `Key ${round} ${index}`);
    const apply = async (fields: object) => {
      const keys = names.map((name) => ({ name, ...fields }));
      const variables = { input: { keys } };
      const { body } = await query(test.url, secret, REQUESTS.applyApiKeys.documentFor(variables), variables);
      assert.equal(body.errors, undefined);
    };
    if (first) await apply(first);
    return () => apply(then);
  }

  const permissions = [{ resource: 'DOCKER', actions: ['READ_ANY'] }];
  const more = [{ resource: 'DOCKER', actions: ['READ_ANY', 'UPDATE_ANY'] }];
  const few = { roles: ['GUEST'], permissions, limits: ['100/m'], allowFrom: ['10.1.0.0/16'] };
  const many = { roles: ['GUEST', 'VIEWER'], permissions: more, limits: ['200/m'], allowFrom: ['10.0.0.0/8'] };
  const networks = Array.from({ length: 26 }, (_, index) => `2001:db8:${index}:1:2:3:4:5`);
  for (const [what, most, first, then] of [
    ['makes them', 2500, undefined, few],
    ['makes them with as many networks as it may', 5500, undefined, { roles: ['GUEST'], allowFrom: networks }],
    ['widens them', 2200, few, many],
    ['finds them unchanged', 900, few, few],
  ] as const) {
    it(`takes little work as it ${what}`, async () => {
      const { count } = await workOf(await prepare(first, then));
      assert.ok(count < most, `${count} thousand calls`);
    });

    it(`lets others have turns as it ${what}`, async () => {
      const apply = await prepare(first, then);
      const order: string[] = [];
      const applied = apply().finally(() => order.push('applied'));
      while (!order.includes('applied')) {
        await (await fetch(`${test.url}/healthz`)).text();
        order.push('other');
      }
      await applied;
      const others = order.indexOf('applied');
      assert.ok(others >= 3, `${others} others were answered meanwhile`);
    });
  }
});
