import assert from 'node:assert/strict';
import { getIntrospectionQuery } from 'graphql';
import { defaultConfig } from '../../src/config/default-config.ts';
import { createApp } from '../../src/service/create-app.ts';
import type { IntrospectionMode } from '../../src/http/graphql-errors.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query } from '../support/server.ts';

/** Documents that request the schema. */
const ASKING: [what: string, document: string][] = [
  ['as tools ask', getIntrospectionQuery()],
  ['for one type', '{ __type(name: "ApiKey") { name } }'],
  ['under an alias', '{ online harmless: __schema { queryType { name } } }'],
  ['in a fragment', '{ ...F } fragment F on Query { ...G } fragment G on Query { __type(name: "ApiKey") { name } }'],
  ['in an inline fragment', '{ ... { ... on Query { __schema { types { name } } } } }'],
  ['behind a condition', '{ online @skip(if: false) __schema @include(if: true) { types { name } } }'],
  ['in another operation', 'query Harmless { online } query Other { __schema { types { name } } }'],
  ['without a space', '{online,__schema{types{name}}}'],
];
const NOT_ASKING = [
  '{ __typename online }',
  '# __schema\n{ online }',
  '{ apiKey(name: "__schema") { __typename name } }',
];

describe('introspection of the schema', () => {
  let test: TestKeys;
  let knowing: string;
  let other: string;
  const servers = new Map<IntrospectionMode, RunningServer>();

  before(async () => {
    test = await openTestKeys();
    const permissions = ['ONLINE:READ_ANY', 'API_KEY:READ_ANY'];
    const known = [...permissions, 'PERMISSION:READ_ANY'];
    ({ secret: other } = await createPrincipal(test.keys, { name: 'Other', permissions }));
    ({ secret: knowing } = await createPrincipal(test.keys, { name: 'Knowing', permissions: known }));
    for (const introspection of ['on', 'off', 'permitted'] as const) {
      const app = await createApp({ keys: test.keys, introspection });
      servers.set(introspection, await listen({ app, host: '127.0.0.1', port: 0 }));
    }
  });
  after(async () => {
    await Promise.all([...servers.values()].map((server) => server.stop(0)));
    await test.store.close();
  });

  /** The answers to POST and GET. */
  async function ask(mode: IntrospectionMode, secret: string, document: string) {
    const { url } = servers.get(mode)!;
    const operation = document.includes('query Harmless') ? '&operationName=Other' : '';
    const search = `?query=${encodeURIComponent(document)}${operation}`;
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ query: document, ...(operation && { operationName: 'Other' }) });
    const replies = [
      await fetch(`${url}/graphql`, { method: 'POST', headers, body }),
      await fetch(`${url}/graphql${search}`, { headers }),
    ];
    type Body = Awaited<ReturnType<typeof query>>['body'];
    const [posted, got] = await Promise.all(replies.map((reply) => reply.json() as Promise<Body>));
    assert.deepEqual(got, posted);
    return posted!;
  }

  for (const [what, document] of ASKING) {
    it(`${what} is refused where it is off, or the key lacks the permission, prepared or not`, async () => {
      for (let time = 0; time < 3; time += 1) {
        for (const [mode, secret] of [
          ['on', other],
          ['permitted', knowing],
        ] as const)
          assert.equal((await ask(mode, secret, document)).errors, undefined, mode);
        for (const secret of [knowing, other]) {
          const message = 'Introspection is off: this server does not answer __schema and __type.';
          const errors = [{ message, extensions: { code: 'INTROSPECTION_OFF' } }];
          assert.deepEqual(await ask('off', secret, document), { errors });
        }
        const message = 'To ask for the schema, this key lacks PERMISSION:READ_ANY.';
        const errors = [{ message, extensions: { code: 'FORBIDDEN', missing: ['PERMISSION:READ_ANY'] } }];
        assert.deepEqual(await ask('permitted', other, document), { errors });
      }
    });
  }

  it('is not what only looks like it, and __typename is always answered', async () => {
    for (const document of NOT_ASKING)
      for (const mode of servers.keys())
        for (const secret of [other, knowing])
          assert.equal((await ask(mode, secret, document)).errors, undefined, mode);
  });

  it('is not replaced by errors with suggestions from the schema', async () => {
    for (const document of [
      '{ onlin }',
      '{ apiKeys }',
      '{ apiKey(nam: "x") { id } }',
      '{ apiKeys(roles: [ADMI]) { __typename } }',
      'query ($r: [Rol!]) { apiKeys(roles: $r) { __typename } }',
    ]) {
      for (const [mode, secret, isTold] of [
        ['on', other, true],
        ['permitted', knowing, true],
        ['permitted', other, false],
        ['off', knowing, false],
      ] as const) {
        const [error] = (await ask(mode, secret, document)).errors!;
        assert.equal(error!.message.includes('Did you mean'), isTold, `${mode} ${document}: ${error!.message}`);
      }
    }
    const { url } = servers.get('off')!;
    const variables = await query(url, other, 'query ($r: [Role!]) { apiKeys(roles: $r) { __typename } }', {
      r: ['ADMI'],
    });
    assert.doesNotMatch(variables.body.errors![0]!.message, /ADMIN/);
  });

  it('is as configured, unless an option of createApp overrides that', async () => {
    const config = { ...defaultConfig(), introspection: 'off' as const };
    for (const [options, isAnswered] of [
      [{}, false],
      [{ introspection: 'on' }, true],
    ] as const) {
      const app = await createApp({ keys: test.keys, config, ...options });
      const headers = { authorization: `Bearer ${other}` };
      const reply = await app.request('/graphql?query={__schema{queryType{name}}}', { headers });
      assert.equal((await reply.text()).includes('"name":"Query"'), isAnswered);
    }
  });

  it('that is permitted counts as a use of the permission, and one that is refused as a refusal', async () => {
    await test.keys.finishActivity();
    const known = await test.keys.findByName('Knowing', OPERATOR);
    assert.ok(test.usedGrants.of(known!.id).includes('PERMISSION:READ_ANY'));
    const refusals = await test.keys.audit.read({ action: 'refuse', first: 500 }, OPERATOR);
    assert.ok(
      refusals.some(
        ({ actor, after }) => actor.name === 'Other' && JSON.stringify(after).includes('PERMISSION:READ_ANY'),
      ),
    );
  });
});
