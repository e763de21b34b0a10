import assert from 'node:assert/strict';
import { createServer, request as forward, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { askForKey, type KeyWanted, type ShownCode } from '../../../src/features/login/cli/ask-for-key.ts';
import { startConsentService } from '../consent/support/consent.ts';
import { freePort } from '../../support/port.ts';
import { authenticate } from '../../support/keys.ts';
import { startServer, type TestService } from '../../support/server.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

describe('asking a server for a key', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startConsentService();
  });
  afterEach(() => test.stop());

  /** Asks for a key, and calls `decide` instead of waiting. */
  async function ask(decide: (code: string, waits: number) => Promise<unknown>, wanted: Partial<KeyWanted> = {}) {
    let shown: ShownCode | undefined;
    const waited: number[] = [];
    const notes: string[] = [];
    const given = await askForKey(
      { server: test.url, scope: 'DOCKER:READ_ANY', expiresIn: '1h', ...wanted },
      {
        show: async (code) => void (shown = code),
        note: async (text) => void notes.push(text),
        now: () => test.time.now,
        wait: async (milliseconds) => {
          waited.push(milliseconds);
          test.time.now += milliseconds;
          await decide(shown!.userCode, waited.length);
        },
      },
    );
    return { given, waited, notes, page: shown!.page };
  }
  const show = (userCode: string) => test.keys.feature(Consent).show({ userCode });

  it('shows a code, polls at the given interval, and gets the key', async () => {
    const { given, waited, page } = await ask(async (code, waits) => {
      if (waits === 3) await test.keys.feature(Consent).approve(await show(code), {}, OPERATOR);
    });
    assert.deepEqual(waited, [5000, 5000, 5000]);
    assert.deepEqual([page, given.scope, given.expiresIn], [`${test.url}/device`, 'DOCKER:READ_ANY', 3600]);
    assert.ok('principal' in (await authenticate(test.keys, given.secret)));
  });

  it('waits longer where it has asked too often', async () => {
    const { waited } = await ask(async (code, waits) => {
      // As if no time had passed.
      if (waits === 2) test.time.now -= 5000;
      if (waits === 3) await test.keys.feature(Consent).approve(await show(code), {}, OPERATOR);
    });
    assert.deepEqual(waited, [5000, 5000, 10_000]);
  });

  describe('of a server that something stands before', () => {
    /** Replace the server's next answers to polls. */
    let answers: ((response: ServerResponse) => void)[];
    let front: Server;
    let server: string;
    const listenAt = (port: number) => once(front.listen(port, '127.0.0.1'), 'listening');
    const closeFront = async () => {
      front.close();
      front.closeAllConnections();
      await once(front, 'close');
    };
    beforeEach(async () => {
      front = createServer((request, response) => {
        const answer = request.url === '/oauth/token' ? answers.shift() : undefined;
        if (answer) return answer(response);
        const forwarded = forward(`${test.url}${request.url}`, { method: 'POST', headers: request.headers }, (got) => {
          response.writeHead(got.statusCode!, got.headers);
          got.pipe(response);
        });
        request.pipe(forwarded);
      });
      await listenAt(0);
      server = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    });
    afterEach(() => (front.listening ? closeFront() : undefined));
    const status =
      (code: number, retryAfter?: () => string, body = '<html>') =>
      (response: ServerResponse) =>
        void response.writeHead(code, retryAfter && { 'retry-after': retryAfter() }).end(body);
    const reset = (response: ServerResponse) => void response.socket!.resetAndDestroy();
    const busy = '{"error":"temporarily_unavailable","error_description":"Too many."}';

    it('waits while it is busy or restarted, for as long as requested, says so once, and gets the key', async () => {
      const { port } = front.address() as AddressInfo;
      answers = [
        status(429, () => '7', busy),
        status(429, () => new Date(test.time.now + 20_000).toUTCString()),
        status(503, () => '3600'),
        status(503, () => 'soon'),
        status(502),
        status(504, () => '1'),
        reset,
      ];
      const decide = async (code: string, waits: number) => {
        if (waits === 9) await closeFront();
        if (waits === 10) await listenAt(port);
        if (waits === 11) await test.keys.feature(Consent).approve(await show(code), {}, OPERATOR);
      };
      const { given, waited, notes } = await ask(decide, { server });
      assert.deepEqual(
        waited.map((milliseconds) => milliseconds / 1000),
        [5, 7, 20, 60, 5, 5, 5, 5, 5, 5, 5],
      );
      assert.ok('principal' in (await authenticate(test.keys, given.secret)));
      assert.deepEqual(notes, [`The server ${server} failed: Too many. Trying again until the code expires.`]);
    });

    it('says what it waits for', async () => {
      for (const [answer, said] of [
        [
          status(503),
          /^The server \S+ does not answer at the moment \(status 503\)\. Trying again until the code expires\.$/,
        ],
        [reset, /^The server \S+ cannot be reached \(\w+\)\. .* Trying again until the code expires\.$/],
      ] as const) {
        answers = [answer, answer];
        const decide = async (code: string, waits: number) => {
          if (waits === 2) await test.keys.feature(Consent).approve(await show(code), {}, OPERATOR);
        };
        const { notes } = await ask(decide, { server });
        assert.match(notes.join('\n'), said);
      }
    });

    it('gives up when the code has ended, and says why', async () => {
      answers = Array<(typeof answers)[0]>(1000).fill(status(503, () => '45'));
      const asked = ask(async () => {}, { server });
      await assert.rejects(asked, {
        code: 'SERVER_FAILED',
        message: /\(status 503\)\. The code has expired in the meantime\. Run the command again for a new code\.$/,
      });
      assert.equal(1000 - answers.length, 15, 'after 5 seconds, then each 45, and at the end');
      answers = Array<(typeof answers)[0]>(1000).fill(status(400, undefined, '{"error":"authorization_pending"}'));
      await assert.rejects(
        ask(async () => {}, { server }),
        { code: 'FORBIDDEN', message: /No one approved the request in time/ },
      );
      assert.equal(1000 - answers.length, 120);
    });

    it('gives up at once where waiting is of no use', async () => {
      for (const [answer, code] of [
        [status(500), 'SERVER_INCOMPATIBLE'],
        [status(404), 'SERVER_INCOMPATIBLE'],
        [status(200, undefined, '{}'), 'SERVER_INCOMPATIBLE'],
        [status(400, undefined, '{"error":"invalid_grant"}'), 'SERVER_FAILED'],
      ] as const) {
        answers = [answer];
        await assert.rejects(
          ask(async () => {}, { server }),
          { code },
        );
      }
      const lost = ask(
        async () => {
          await closeFront();
          throw new Error('interrupted');
        },
        { server },
      );
      await assert.rejects(lost, { message: 'interrupted' });
    });
  });

  it('says so if the server does not allow applications this way', async () => {
    const off = await startServer(
      Object.assign(test.keys.withCatalog(createCatalog({ consent: 'code' })), {
        limiter: test.keys.limiter,
      }),
    );
    await assert.rejects(
      ask(async () => {}, { server: off.url }),
      {
        code: 'CONSENT_OFF',
        message: /^Applications can only request keys by opening .* 'consent' in svc-api.yaml is code\.$/,
      },
    );
    await off.stop();
  });

  it('reads no more of an answer than one of ours can have, whatever the compression', async () => {
    const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
    const server = createServer((_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(packed);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const asked = ask(() => assert.fail(), { server: `http://127.0.0.1:${port}` });
    try {
      await assert.rejects(asked, { code: 'SERVER_INCOMPATIBLE', message: /sends an endless answer/ });
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it('explains why there is no key', async () => {
    const refuse = async (code: string) => test.keys.feature(Consent).deny(await show(code), OPERATOR);
    await assert.rejects(ask(refuse), { code: 'FORBIDDEN', message: /was denied/ });
    const forget = async () => void (test.time.now += 600_000);
    await assert.rejects(ask(forget), { code: 'FORBIDDEN', message: /No one approved the request in time/ });
    const never = () => assert.fail();
    await assert.rejects(ask(never, { scope: 'DOKER:READ_ANY' }), { code: 'INPUT_INVALID', message: /DOCKER/ });
    await assert.rejects(ask(never, { expiresIn: 'soon' }), { code: 'INPUT_INVALID', message: /is not a duration/ });
    const nobody = `http://127.0.0.1:${await freePort()}`;
    await assert.rejects(ask(never, { server: nobody }), { code: 'SERVER_UNREACHABLE', message: /ECONNREFUSED/ });
    await assert.rejects(ask(never, { server: `${test.url}/elsewhere` }), { code: 'SERVER_INCOMPATIBLE' });
  });

  it('shows nothing that a hostile server makes up, and keeps nothing that is no key', async () => {
    const device = { device_code: 'x', user_code: 'WDJB-MJHT', interval: 0 };
    const answers: object[] = [
      { ...device, user_code: '\u001b[2J' },
      { ...device, device_code: '\u0000' },
      { ...device, access_token: 'nonsense', scope: 'x' },
      [],
      { error: 'invalid_client', error_description: '\u001b[2J' },
    ];
    for (const answer of answers) {
      const hostile = createServer((_, response) => response.end(JSON.stringify(answer)));
      await once(hostile.listen(0, '127.0.0.1'), 'listening');
      const server = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
      await assert.rejects(
        ask(async () => {}, { server }),
        (error: Error & { code?: string }) => {
          assert.match(error.code!, /^SERVER_(INCOMPATIBLE|FAILED)$/);
          return !error.message.includes('\u001b');
        },
      );
      hostile.close();
    }
  });
});
