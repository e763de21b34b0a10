import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { testCli } from '../../support/cli.ts';
import { ROUTES, startConfiguredService } from '../../support/configured-service.ts';
import { createPrincipal } from '../../support/keys.ts';
import { type GraphQLReply, query, type TestService } from '../../support/server.ts';

const EXPLAIN = `query ($method: String, $url: String!, $preflight: Boolean, $keyId: ID, $keyName: String) {
  explainRequest(method: $method, url: $url, preflight: $preflight, keyId: $keyId, keyName: $keyName) {
    outcome reason request { method host path } preflightFor route { number requires } used missing
    otherCaseOf { number } after { route { number } because } otherMethods { number } apiKey { id name status } } }`;

describe('an explanation of a request, over GraphQL,', () => {
  let test: TestService & { file: string };
  let reader: string;
  let bare: string;
  before(async () => {
    test = await startConfiguredService(ROUTES);
    const permissions = ['CONFIG:READ_ANY', 'API_KEY:READ_ANY'];
    reader = (await createPrincipal(test.keys, { name: 'Reader', permissions })).secret;
    bare = (await createPrincipal(test.keys, { name: 'Bare', permissions: ['CONFIG:READ_ANY'] })).secret;
  });
  after(() => test.stop());

  const ask = async (key: string, document: string, variables: object = {}) =>
    (await query(test.url, key, document, variables as Record<string, unknown>)).body;
  const explain = async (url: string, variables: object = {}) => {
    const { data, errors } = await ask(reader, EXPLAIN, { url, ...variables });
    assert.equal(errors, undefined);
    return data!['explainRequest'] as Record<string, unknown> & { reason: string; outcome: string };
  };
  const codeOf = ({ errors }: GraphQLReply['body']) => errors?.[0]?.extensions['code'];

  it('says which route decides, and why others do not', async () => {
    assert.deepEqual(await explain('https://G.example:443/%61pi/boards/7/?q'), {
      outcome: 'REFUSED',
      reason: 'it has no valid key',
      request: { method: 'GET', host: 'g.example', path: '/api/boards/7' },
      preflightFor: null,
      route: { number: 1, requires: 'GRAFANA:READ_ANY' },
      used: [],
      missing: [],
      otherCaseOf: null,
      after: [
        { route: { number: 2 }, because: 'segment 2, boards, is more specific than **' },
        { route: { number: 3 }, because: 'g.example is more specific than *' },
      ],
      otherMethods: [{ number: 6 }],
      apiKey: null,
    });
    const open = await explain('https://h/public/x.css', { method: 'POST' });
    assert.deepEqual([open.outcome, open.reason], ['ALLOWED', 'it requires no key']);
    const upper = await explain('https://g.example/API/x');
    assert.deepEqual([upper.outcome, upper['route'], upper['otherCaseOf']], ['FORBIDDEN', null, { number: 2 }]);
    const preflight = await explain('https://g.example/api/x', { method: 'POST', preflight: true });
    assert.deepEqual(
      [preflight.outcome, preflight.reason, preflight['preflightFor']],
      ['ALLOWED', 'a preflight for POST needs no key here', 'POST'],
    );
  });

  it('says whether a key may pass, and why not', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'Board bot', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const allowed = await explain('https://g.example/api/boards/7', { keyId: key.id });
    assert.deepEqual(
      [allowed.outcome, allowed.reason, allowed['used'], allowed['apiKey']],
      [
        'ALLOWED',
        'the key has GRAFANA:READ_ANY',
        ['GRAFANA:READ_ANY'],
        { id: key.id, name: 'Board bot', status: 'ACTIVE' },
      ],
    );
    const lacking = await explain('https://g.example/api/x', { keyName: 'Board bot' });
    assert.deepEqual(
      [lacking.outcome, lacking.reason, lacking['missing']],
      ['FORBIDDEN', 'the key lacks GRAFANA:UPDATE_ANY and ME:READ_OWN', ['GRAFANA:UPDATE_ANY', 'ME:READ_OWN']],
    );
    await test.keys.setEnabled(key.id, false, OPERATOR);
    const disabled = await explain('https://g.example/api/boards/7', { keyName: 'Board bot' });
    assert.deepEqual([disabled.outcome, disabled.reason], ['REFUSED', 'API key "Board bot" is DISABLED']);
    const open = await explain('https://h/public/x', { keyName: 'Board bot' });
    assert.equal(open.outcome, 'ALLOWED', 'an open route needs no key');
  });

  it('reveals nothing about keys that the caller may not read, not even whether they exist', async () => {
    const url = 'https://g.example/api/x';
    const forbidden = await ask(bare, EXPLAIN, { url, keyName: 'Reader' });
    assert.equal(codeOf(forbidden), 'FORBIDDEN');
    assert.deepEqual(forbidden.errors![0]!.extensions['missing'], ['API_KEY:READ_OWN']);
    const permissions = ['CONFIG:READ_ANY', 'API_KEY:READ_OWN'];
    const { secret } = await createPrincipal(test.keys, { name: 'Own only', permissions });
    const [others, unknown] = [
      await ask(secret, EXPLAIN, { url, keyName: 'Reader' }),
      await ask(secret, EXPLAIN, { url, keyName: 'Nobody' }),
    ];
    assert.deepEqual([codeOf(others), codeOf(unknown)], ['NOT_FOUND', 'NOT_FOUND']);
    assert.equal(others.errors![0]!.message.replace('Reader', 'Nobody'), unknown.errors![0]!.message);
    const own = await ask(secret, EXPLAIN, { url, keyName: 'Own only' });
    assert.equal((own.data!['explainRequest'] as { outcome: string }).outcome, 'FORBIDDEN');
    const both = await ask(reader, EXPLAIN, { url, keyName: 'Reader', keyId: 'x' });
    assert.equal(codeOf(both), 'INPUT_INVALID');
    assert.equal(codeOf(await ask(reader, EXPLAIN, { url, keyId: '\0'.repeat(100_000) })), 'INPUT_INVALID');
  });

  it('is what the command says, in the same words', async () => {
    await test.keys.create({ name: 'Docker bot', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    const cli = testCli(test.database);
    const env = { SVC_API_CONFIG: test.file };
    const asked = [
      ['GET', 'https://g.example/api/boards/7'],
      ['PUT', 'https://g.example/api/boards/7'],
      ['DELETE', 'https://g.example/api//x'],
      ['POST', 'https://g.example/x', '--key', 'Docker bot'],
      ['POST', 'https://g.example/api/x', '--key', 'Docker bot'],
      ['POST', 'https://g.example/api/x', '--preflight'],
    ];
    for (const [method, url, flag, keyName] of asked) {
      const args = ['explain', method!, url!, ...(flag ? [flag] : []), ...(keyName ? [keyName] : [])];
      const explained = await explain(url!, { method, keyName, preflight: flag === '--preflight' });
      const [line] = (await cli.run(args, { env })).stdout.split('\n');
      const json = JSON.parse((await cli.run([...args, '--json'], { env })).stdout) as Record<string, never[]>;
      assert.ok(line!.endsWith(` is ${explained.outcome.toLowerCase()}: ${explained.reason}`), line);
      const numbers = (routes: { number: number }[]) => routes.map(({ number }) => number);
      assert.deepEqual(
        [explained['request'], explained['used'], explained['missing'], explained['preflightFor']],
        [json['request'], json['used'], json['missing'], json['preflightFor']],
      );
      assert.deepEqual(
        (explained['after'] as { route: { number: number }; because: string }[]).map(({ route, because }) => ({
          number: route.number,
          because,
        })),
        json['after']!.map(({ number, because }) => ({ number, because })),
      );
      assert.deepEqual(numbers(explained['otherMethods'] as []), numbers(json['otherMethods']!));
    }
  });

  const NOT_CANONICAL: Record<string, string> = {
    'https://g.example/api//x': 'the path has an empty segment',
    'https://g.example/public/../api': 'the path has a "." or ".." segment',
    'https://g.example/public/%2e%2e/api': 'the path has an encoded dot',
    'https://g.example/api%2fboards': 'the path has an encoded slash',
    'https://g.example/api;x': 'the path has a ";"',
    'https://g.example/%2561pi': 'the path has double encoding',
    'https://g.example/%ff': 'the path has encoded bytes that are not UTF-8',
    'https://g.example/x?a#b': 'the query has a "#", a space or a control character',
    'https://g.example/\ud800': 'the path has bytes that are not ASCII',
  };
  for (const [url, reason] of Object.entries(NOT_CANONICAL))
    it(`says that ${JSON.stringify(url)} is forbidden for its form`, async () => {
      const { outcome, reason: given, request, route } = await explain(url);
      assert.deepEqual([outcome, given, request, route], ['FORBIDDEN', reason, null, null]);
    });

  const NOT_REQUESTS: Record<string, object> = {
    'without a scheme': { url: 'g.example/x' },
    'of another scheme': { url: 'javascript:alert(1)' },
    'without a host': { url: 'https:///x' },
    'of a host with a user': { url: 'https://a@g.example/x' },
    'of a host that is a number': { url: 'https://0x7f000001/' },
    'that is empty': { url: '' },
    'with control characters': { url: 'https://\r\n\u202e/' },
    'of a method in lower case': { url: 'https://h/', method: 'get' },
    'of a method with a space': { url: 'https://h/', method: 'GET /x' },
    'of a method that is too long': { url: 'https://h/', method: 'A'.repeat(101) },
    'that is too long': { url: `https://h/${'a'.repeat(8192)}` },
    'that is much too long': { url: `https://h/${'ä'.repeat(300_000)}` },
  };
  for (const [what, variables] of Object.entries(NOT_REQUESTS))
    it(`is none for a request ${what}`, async () => {
      const { data, errors } = await ask(reader, EXPLAIN, variables);
      assert.deepEqual(data, { explainRequest: null });
      assert.equal(errors![0]!.extensions['code'], 'INPUT_INVALID');
      assert.ok(errors![0]!.message.length < 600, errors![0]!.message);
      assert.doesNotMatch(errors![0]!.message, /[\r\n\u202e]/);
    });
});
