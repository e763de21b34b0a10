import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { BearerAuthOptions } from '../../src/http/bearer-options.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { CredentialPlace } from '../../src/keys/secret/secret.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { GUARDED_SERVERS, type GuardedServer } from '../support/guarded-servers.ts';
import { KeptConnection } from '../support/keep-alive.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';

type Options = Omit<BearerAuthOptions, 'keys'>;

/** A refusal: status, challenge, code and message. */
type Refused = readonly [status: string, challenge: string | undefined, code: string, message: string];

const BEARER = 'Bearer realm="svc-api"';
const BASIC = 'Basic realm="svc-api", charset="UTF-8"';
const API_KEY = 'ApiKey realm="svc-api"';
const ALL: CredentialPlace[] = ['bearer', { header: 'X-Api-Key' }, 'basic'];
const HEADER: CredentialPlace[] = [{ header: 'X-Api-Key' }];
const WAYS =
  'as "Authorization: Bearer <API key>", as "x-api-key: <API key>" or as the password of Basic authentication';

const missing = (challenge: string, ways = 'as "Authorization: Bearer <API key>"'): Refused => [
  '401 Unauthorized',
  challenge,
  'UNAUTHENTICATED',
  `Missing API key: send it ${ways}.`,
];
const invalid = (challenge: string): Refused => [
  '401 Unauthorized',
  challenge,
  'UNAUTHENTICATED',
  'The API key is not valid.',
];
const malformed = (challenge: string | undefined, message: string): Refused => [
  '400 Bad Request',
  challenge && `${challenge}, error="invalid_request"`,
  'INVALID_REQUEST',
  message,
];

/** Options, header lines (KEY stands for a key), and the refusal. */
const REFUSED: [options: Options, lines: string[], refused: Refused][] = [
  [{}, [], missing(BEARER)],
  [{}, ['X-Api-Key: KEY'], missing(BEARER)],
  [{ realm: 'Backups' }, [], missing('Bearer realm="Backups"')],
  [{}, ['Authorization: Bearer nonsense'], invalid(`${BEARER}, error="invalid_token"`)],
  [{}, ['Authorization: Bearer KEYx'], invalid(`${BEARER}, error="invalid_token"`)],
  [
    {},
    ['Authorization: Bearer KEY', 'Authorization: Bearer KEY'],
    malformed(BEARER, 'The Authorization header is malformed: send exactly one, as "Bearer <API key>".'),
  ],
  [
    { permission: 'DOCKER:READ_ANY' },
    ['Authorization: Bearer KEY'],
    [
      '403 Forbidden',
      `${BEARER}, error="insufficient_scope", scope="DOCKER:READ_ANY"`,
      'FORBIDDEN',
      'This key lacks DOCKER:READ_ANY.',
    ],
  ],
  [{ credentials: ALL }, [], missing(`${BASIC}, ${BEARER}`, WAYS)],
  [{ credentials: ALL }, ['Authorization: Basic BASE64(KEY:)'], missing(`${BASIC}, ${BEARER}`, WAYS)],
  [
    { credentials: ALL },
    ['Authorization: Basic BASE64(user:wrong)'],
    invalid(`${BASIC}, ${BEARER}, error="invalid_token"`),
  ],
  [{ credentials: ALL }, ['X-Api-Key: wrong'], invalid(`${BASIC}, ${BEARER}, error="invalid_token"`)],
  [
    { credentials: ALL },
    ['Authorization: Bearer KEY', 'X-Api-Key: KEY'],
    malformed(
      BEARER,
      'There are credentials in several headers (authorization, x-api-key): send the API key in one of them.',
    ),
  ],
  [
    { credentials: ALL },
    ['Authorization: Basic BASE64(user)'],
    malformed(
      BEARER,
      'The Authorization header is malformed: send exactly one, as "Bearer <API key>" or ' +
        '"Basic <base64 of user:API key>".',
    ),
  ],
  [
    { credentials: ['basic'] },
    ['Authorization: Bearer KEY', 'X-Api-Key: KEY'],
    missing(BASIC, 'as the password of Basic authentication'),
  ],
  [{ credentials: ['basic'] }, ['Authorization: Basic BASE64(user:wrong)'], invalid(BASIC)],
  [
    { credentials: ['basic'] },
    ['Authorization: Basic ?'],
    malformed(
      undefined,
      'The Authorization header is malformed: send exactly one, as "Basic <base64 of user:API key>".',
    ),
  ],
  [
    { credentials: ['basic'], permission: 'DOCKER:READ_ANY' },
    ['Authorization: Basic BASE64(user:KEY)'],
    ['403 Forbidden', undefined, 'FORBIDDEN', 'This key lacks DOCKER:READ_ANY.'],
  ],
  [{ credentials: HEADER }, ['Authorization: Bearer KEY'], missing(API_KEY, 'as "x-api-key: <API key>"')],
  [{ credentials: HEADER }, ['X-Api-Key: wrong'], invalid(`${API_KEY}, error="invalid_token"`)],
  [
    { credentials: HEADER },
    ['X-Api-Key: KEY', 'X-Api-Key: KEY'],
    malformed(API_KEY, 'The x-api-key header is malformed: send exactly one, with only the API key.'),
  ],
];

const ACCEPTED: [options: Options, lines: string[]][] = [
  [{}, ['Authorization: bearer  KEY']],
  [{ permission: 'ME:READ_OWN' }, ['Authorization: Bearer KEY', 'X-Api-Key: other']],
  [{ credentials: ALL }, ['Authorization: Bearer KEY']],
  [{ credentials: ALL }, ['x-api-key: KEY']],
  [{ credentials: ALL }, ['Authorization: Basic BASE64(any user:KEY)']],
  [{ credentials: HEADER }, ['X-API-Key: KEY', 'Authorization: Basic BASE64(user:other)']],
];

/** The complete answer except for what Node adds. */
function textOf(
  [status, challenge, code, message]: Refused,
  method = 'GET',
  retryAfter?: number,
  body = JSON.stringify({ code, message }),
): string {
  return [
    `HTTP/1.1 ${status}`,
    'cache-control: no-store',
    'content-type: application/json',
    ...(retryAfter === undefined ? [] : [`retry-after: ${retryAfter}`]),
    ...(challenge === undefined ? [] : [`www-authenticate: ${challenge}`]),
    'x-content-type-options: nosniff',
    ...(method === 'HEAD' ? ['', ''] : [`content-length: ${Buffer.byteLength(body)}`, '', body]),
  ].join('\r\n');
}

for (const [framework, start] of Object.entries(GUARDED_SERVERS)) {
  describe(`bearerAuth for ${framework}`, () => {
    let test: TestKeys;
    let secret: string;
    let id: string;
    let server: GuardedServer;

    before(async () => {
      test = await openTestKeys();
    });
    beforeEach(async () => {
      const guest = { name: 'Guest', roles: ['GUEST'], overwrite: true };
      const { key: made, apiKey: key } = await test.keys.create(guest, OPERATOR);
      [secret, id] = [made, key.id];
    });
    afterEach(() => server.stop());
    after(() => test.store.close());

    async function run(options: Options = {}): Promise<void> {
      server = await start({ keys: test.keys, ...options });
    }

    // Random secrets can contain "KEY" themselves.
    const written = (line: string) =>
      line
        .replaceAll(/\bKEY/g, secret)
        .replaceAll(/BASE64\((.*?)\)/g, (_, text: string) => Buffer.from(text).toString('base64'));
    const head = (lines: readonly string[], method: string) =>
      [`${method} / HTTP/1.1`, 'Host: localhost', 'Connection: close', ...lines.map(written), '', ''].join('\r\n');

    async function send(lines: readonly string[], method = 'GET', body = ''): Promise<string> {
      const socket = await connectTo(server.url);
      const answer = readToEnd(socket);
      socket.write(head(lines, method) + body);
      return withoutNode(await answer);
    }

    for (const [options, lines, refused] of REFUSED)
      it(`refuses ${lines.join(' + ') || 'no credentials'} with ${JSON.stringify(options)}: ${refused[0]}`, async () => {
        await run(options);
        for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE'])
          assert.equal(await send(lines, method), textOf(refused, method), method);
        assert.equal(await send([...lines, 'Content-Length: 4'], 'POST', 'text'), textOf(refused), 'POST');
        assert.equal(server.handled(), 0);
      });

    for (const [options, lines] of ACCEPTED)
      it(`accepts ${lines.join(' + ')} with ${JSON.stringify(options)}`, async () => {
        await run(options);
        assert.match(await send(lines), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nGuest$/);
        assert.match(await send([...lines, 'Content-Length: 4'], 'POST', 'text'), /^HTTP\/1\.1 200 [^]*\r\n\r\nGuest$/);
        assert.equal(server.handled(), 2);
      });

    /** Sends the head of a request, runs `between` once it was accepted, and sends the body. */
    async function sendInTwo(key: string, between: () => Promise<unknown>): Promise<string> {
      const credentials = `Authorization: Bearer ${key}`;
      // A cached key is accepted at once.
      assert.match(await send([credentials]), /^HTTP\/1\.1 200 /);
      const socket = await connectTo(server.url);
      const continued = once(socket, 'data');
      socket.write(head(['Expect: 100-continue', 'Content-Length: 4', credentials], 'POST'));
      assert.match(String((await continued)[0]), /^HTTP\/1\.1 100 /);
      const answer = readToEnd(socket);
      await between();
      socket.write('text');
      return withoutNode(await answer);
    }

    it('answers refusals as the program defines, or in its own way if the program fails', async () => {
      let isBroken = false;
      const onRefused = (refused: object) => {
        if (isBroken) throw new Error('The template is broken.');
        return { error: refused };
      };
      await run({ onRefused });
      const [status, challenge, code, message] = missing(BEARER);
      const own = JSON.stringify({ error: { status: 401, code, message } });
      assert.equal(await send([]), textOf([status, challenge, code, message], 'GET', undefined, own));
      isBroken = true;
      const warned = once(process, 'warning');
      assert.equal(await send([]), textOf(missing(BEARER)));
      assert.match(String(await warned), /The template is broken\./);
    });

    it('refuses a key that was deleted while the body arrived', async () => {
      await run();
      const answer = await sendInTwo(secret, () => test.keys.delete([id], OPERATOR));
      assert.equal(answer, textOf(invalid(`${BEARER}, error="invalid_token"`)));
    });

    it("uses the key's permissions at the time when the body has arrived", async () => {
      const reader = await test.keys.create({ name: 'Reader', permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
      await run({ permission: 'DOCKER:READ_ANY' });
      const answer = await sendInTwo(reader.key, () =>
        test.keys.update(reader.apiKey.id, { permissions: ['INFO:READ_ANY'] }, OPERATOR),
      );
      assert.match(answer, /^HTTP\/1\.1 403 /);
      await test.keys.delete([reader.apiKey.id], OPERATOR);
    });

    it('refuses all keys while the store does not answer, and logs that', async () => {
      const { log, lines } = collectingLog();
      const closed = await openTestKeys();
      await closed.store.close();
      server = await start({ keys: closed.keys, log });
      const message = 'The service cannot check keys at the moment. Try again later.';
      const refused: Refused = ['503 Service Unavailable', undefined, 'SERVICE_UNAVAILABLE', message];
      assert.equal(await send(['Authorization: Bearer KEY'], 'POST'), textOf(refused, 'POST', 1));
      assert.deepEqual([server.handled(), lines.map((line) => line.message)], [0, ['the store did not answer']]);
    });

    it('logs the address that a trusted proxy gives, and no other', async () => {
      const { log, lines } = collectingLog();
      await run({ log });
      await send(['Authorization: Bearer one', 'X-Forwarded-For: 6.6.6.6, 192.0.2.1']);
      await server.stop();
      await run({ log, trust: ['10.0.0.0/8'] });
      await send(['Authorization: Bearer two', 'X-Forwarded-For: 6.6.6.6, 192.0.2.1']);
      const addresses = lines.map(({ fields }) => (fields as { address?: string }).address);
      assert.deepEqual(addresses, ['192.0.2.1', '127.0.0.1']);
    });

    it('keeps a connection for further requests after a refusal, whose body it does not read', async () => {
      await run();
      const connection = await KeptConnection.open(server.url);
      const statuses: number[] = [];
      const requests = [
        ['wrong', 4],
        [secret, 4],
        ['wrong', 500_000],
        [secret, 0],
      ] as const;
      for (const [key, length] of requests) {
        const lines = [`Authorization: Bearer ${key}`, `Content-Length: ${length}`, '', 'x'.repeat(length)];
        connection.send(Buffer.from(['POST / HTTP/1.1', 'Host: localhost', ...lines].join('\r\n')));
        statuses.push(await connection.status());
      }
      assert.deepEqual(statuses, [401, 200, 401, 200]);
      connection.close();
    });

    it('closes the connection of a refused request whose body does not end', async () => {
      await run();
      const socket = await connectTo(server.url);
      const answer = readToEnd(socket);
      socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
      const sending = setInterval(() => socket.write('1\r\nx\r\n'), 50);
      assert.match(await answer, /^HTTP\/1\.1 401 /);
      clearInterval(sending);
    });

    it('counts one use of a key', async () => {
      await run();
      assert.match(await send(['Authorization: Bearer KEY'], 'POST'), /\r\n\r\nGuest$/);
      await test.keys.finishActivity();
      assert.equal((await test.keys.useOf([id])).get(id)?.uses, 1);
    });

    it('is refused at the start with invalid options', async () => {
      await run();
      await assert.rejects(start({ keys: test.keys, trust: ['nowhere'] }), { code: 'OPTION_INVALID' });
      await assert.rejects(start({ keys: test.keys, credentials: [{ header: 'Cookie' }] }), { code: 'OPTION_INVALID' });
    });
  });
}

function withoutNode(text: string): string {
  return text.replaceAll(/^(?:date|connection|keep-alive|x-request-id): .*\r\n/gim, '');
}
