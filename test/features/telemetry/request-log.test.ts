import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { GraphQLError } from 'graphql';
import { createApp } from '../../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../../src/http/listen.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type Step, STEPS } from '../../../src/keys/basics/steps.ts';
import type { Log } from '../../../src/log.ts';
import { requestDebugLog, requestLog } from '../../../src/features/telemetry/request-log.ts';
import { insertKeys, keyWithSecret } from '../../support/insert-keys.ts';
import { openTestKeys, type TestKeys } from '../../support/keys.ts';
import { collectingLog, withoutRequestId } from '../../support/log.ts';
import { sendAndCut, sendRaw } from '../../support/raw-http.ts';
import { query } from '../../support/server.ts';
import { until } from '../../support/until.ts';

type Fields = Record<string, unknown> & { requestId: string; durationMs: number };

const { log: others, lines: otherLines } = collectingLog();
const lines: string[] = [];
/** A log of lines at level info, as JSON. */
const log: Log = { ...others, info: (fields, msg) => void lines.push(`${JSON.stringify({ ...fields, msg })}\n`) };
const TYPE = 'Content-Type: application/json';
/** Returns the lines so far, and clears them. */
const taken = async (count: number): Promise<Fields[]> => {
  await until(() => lines.length >= count);
  assert.deepEqual(otherLines, []);
  return lines.splice(0).map((line) => {
    // Safe to print in a terminal.
    assert.match(line, /^[ -~]*\n$/);
    const { msg, ...fields } = JSON.parse(line) as Fields;
    assert.equal(msg, 'request');
    return fields;
  });
};
/** A line without the variable parts. */
const steady = (fields: Fields) => {
  const { durationMs: _, ...others } = withoutRequestId(fields) as Fields;
  return others;
};

describe('the request log', () => {
  let test: TestKeys;
  let server: RunningServer;
  let secret: string;
  let keyId: string;

  before(async () => {
    test = await openTestKeys({ asServer: true });
    const { key: made, apiKey: key } = await test.keys.create({ name: 'Läufer', roles: ['ADMIN'] }, OPERATOR);
    [secret, keyId] = [made, key.id];
    const app = await createApp({ keys: test.keys });
    server = await listen({ app, host: '127.0.0.1', port: 0, watchers: [requestLog(log)] });
  });
  after(async () => {
    await server.stop(0);
    await test.store.close();
  });
  beforeEach(() => void (lines.length = 0));
  const raw = (...head: string[]) => sendRaw(server.url, [...head, '', ''].join('\r\n'));

  it('has a line for each request: the caller, the request, and the result', async () => {
    const { headers } = await query(server.url, secret, 'query Who { me { name } }');
    const [line, ...others] = await taken(1);
    const operation = { type: 'query', name: 'Who' };
    assert.deepEqual(others, []);
    assert.deepEqual(steady(line!), {
      endpoint: 'graphql',
      method: 'POST',
      status: 200,
      keyId,
      operation,
      address: '127.0.0.1',
    });
    assert.equal(line!.requestId, headers.get('x-request-id'));
    assert.ok(line!.durationMs > 0);
    const mutation = 'mutation { enableApiKeys(ids: ["x"]) { id } }';
    await query(server.url, secret, mutation);
    const [failed] = await taken(1);
    assert.deepEqual([failed!['operation'], failed!['errors']], [{ type: 'mutation' }, 1]);
  });

  it('names the endpoint without a URL, also of refused requests and invalid HTTP', async () => {
    await query(server.url, 'nonsense', '{ online }');
    await raw('GET /healthz HTTP/1.1', 'Host: a');
    await raw('GET /nothing/here?x=1 HTTP/1.1', 'Host: a', 'X-Forwarded-For: 203.0.113.7');
    await raw('GET /auth/nginx HTTP/1.1', 'Host: a');
    await raw('POST /oauth/token HTTP/1.1', 'Host: a', 'Content-Length: 0');
    await raw('GET / HTTP/1.1', 'Host: a', 'Expect: else');
    await raw('NONSENSE');
    const found = (await taken(7)).map(({ endpoint, status, address }) => [endpoint, status, address]);
    assert.deepEqual(found, [
      ['graphql', 401, '127.0.0.1'],
      ['health', 200, '127.0.0.1'],
      ['other', 404, '203.0.113.7'],
      ['forward-auth', 403, 'unknown'],
      ['consent', 415, '127.0.0.1'],
      ['home', 417, '127.0.0.1'],
      ['other', 400, '127.0.0.1'],
    ]);
  });

  it('says that a client was gone before its answer', async () => {
    const head = [
      'POST /graphql HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${secret}`,
      TYPE,
      'Content-Length: 9',
      '',
      '{',
    ];
    await sendAndCut(server.url, head.join('\r\n'));
    const [line] = await taken(1);
    assert.deepEqual([line!['status'], line!['cutOff'], line!['keyId']], [undefined, true, keyId]);
  });

  it('never has a secret, wherever a client puts it, nor the name of a key', async () => {
    const imported = 'sk_live_0123456789abcdefghij';
    await insertKeys(test.keys, [keyWithSecret('Imported', imported, { roles: ['ADMIN'] })]);
    for (const own of [secret, imported]) {
      const document = `query Q_${own} { me { name } }`;
      const answer = await query(server.url, own, document);
      assert.equal(answer.status, 200);
      await query(server.url, own, `query ${'x'.repeat(95)}${own} { me { name } }`);
      const authorization = `Authorization: Bearer ${own}`;
      await raw(`GET /graphql?query={online}&key=${own} HTTP/1.1`, 'Host: a', authorization);
      await raw(`GET /${own}?${own} HTTP/1.1`, 'Host: a', authorization, `User-Agent: ${own}`, `Referer: ${own}`);
      await raw(`GET /auth/nginx?permission=${own} HTTP/1.1`, 'Host: a', `X-Original-URI: /${own}`, authorization);
      await raw(`${own} /graphql HTTP/1.1`, 'Host: a');
      await raw('GET /healthz HTTP/1.1', 'Host: a', `X-Forwarded-For: ${own}`, `Forwarded: for="${own}"`);
      const written = JSON.stringify(await taken(7));
      assert.ok(!written.includes(own), written);
      // Not even a truncated part, which would no longer be recognized as a secret.
      assert.ok(!written.includes(own.slice(0, 20)), written);
      assert.doesNotMatch(written, /Läufer|Imported/);
    }
    // A request id that contains a secret is replaced.
    await raw('GET /healthz HTTP/1.1', 'Host: a', `X-Request-Id: ${secret}`);
    assert.ok(!JSON.stringify(await taken(1)).includes(secret));
  });
});

describe('the log of requests at debug', () => {
  it('has the decision about the key, and the code of the answer', async () => {
    const steps: Record<string, unknown>[] = [];
    const follow = (step: unknown) => void steps.push((step as Step).fields as Record<string, unknown>);
    const { keys, store } = await openTestKeys({ asServer: true });
    const { key } = await keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const typeDefs = 'extend type Query { broken: String @requires(resource: ME, action: READ_OWN) }';
    const fail = () => {
      throw new GraphQLError('Broken', { extensions: { code: 'BROKEN' } });
    };
    const app = await createApp({ keys, extensions: [{ typeDefs, resolvers: { Query: { broken: fail } } }] });
    const server = await listen({ app, host: '127.0.0.1', port: 0, watchers: [requestDebugLog] });
    STEPS.debug.subscribe(follow);
    const put = { method: 'PUT', headers: { authorization: `Bearer ${key}` } };
    await query(server.url, key, '{ online }');
    await query(server.url, key, '{ broken apiKeys { edges { cursor } } }');
    await query(server.url, key, '{');
    await fetch(`${server.url}/graphql`, { ...put, method: 'POST', body: 'no JSON' });
    await fetch(`${server.url}/graphql`, put);
    await fetch(`${server.url}/healthz`);
    renameSync(store.location, `${store.location}.away`);
    await query(server.url, key, '{ online }');
    const ended = () => steps.filter((fields) => 'stages' in fields);
    await until(() => ended().length >= 7);
    STEPS.debug.unsubscribe(follow);
    await server.stop(0);
    await store.close();
    assert.deepEqual(
      ended().map(({ status, decision, code }) => [status, decision, code]),
      [
        [200, 'allowed', undefined],
        [200, 'refused', 'FORBIDDEN'],
        [200, 'allowed', 'GRAPHQL_PARSE_FAILED'],
        [415, 'allowed', 'UNSUPPORTED_MEDIA_TYPE'],
        [405, 'allowed', 'METHOD_NOT_ALLOWED'],
        [200, 'open', undefined],
        [503, undefined, 'SERVICE_UNAVAILABLE'],
      ],
    );
  });
});
