import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer, type Server } from 'node:https';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestResult, tryWebhook } from '../../../../src/features/notices/cli/webhook.ts';
import { DEFAULT_NOTICES } from '../../../../src/features/notices/notice.ts';
import { destinationOf, noticesOf, testCourier } from '../../../support/couriers.ts';
import { pairOf, writePair } from '../../../support/certificates.ts';
import { testCli } from '../../../support/cli.ts';
import { errorText } from '../../../support/errors.ts';
import { openTestKeys } from '../../../support/keys.ts';
import { tempFolder, tempStore } from '../../../support/temp.ts';
import { newNoticeSecret, Receiver, stopReceivers } from '../../../support/webhook.ts';

/** The fields of an answer in JSON. */
type Answer = TestResult & { error?: string; code?: string };

describe('notices test', () => {
  let receiver: Receiver;
  let config: string;

  beforeEach(async () => {
    receiver = await Receiver.start();
    config = join(tempFolder(), 'svc-api.yaml');
    declare(receiver.url);
  });
  afterEach(stopReceivers);

  const declare = (url: string, more = '') => writeFileSync(config, `notices: { url: "${url}"${more} }\n`);
  const run = async (args: readonly string[] = [], secret = receiver.secret) => {
    const database = tempStore();
    const env = { SVC_API_CONFIG: config, SVC_API_NOTICES_SECRET: secret };
    const result = await testCli(database).run(['notices', 'test', ...args], { env });
    assert.equal(existsSync(database), false, 'no store is needed');
    for (const hidden of ['t0ken', 'hooks?', secret.slice(6)])
      if (hidden !== '') assert.equal((result.stdout + result.stderr).includes(hidden), false, hidden);
    return result;
  };
  const asked = async (secret?: string) => {
    const { code, stdout, stderr } = await run(['--json'], secret);
    return { code, stderr, json: JSON.parse(stdout) as Answer };
  };
  const origin = () => `http://127.0.0.1:${receiver.port}`;

  it('sends one that is signed, of a type of its own, and says that it was taken, and how', async () => {
    const { code, stdout, stderr } = await run();
    const [notice, ...others] = receiver.received;
    assert.deepEqual([others.length, receiver.forged], [0, 0]);
    assert.match(notice!.id, /^msg_[0-9a-f]{32}$/);
    assert.match(
      stdout,
      new RegExp(`^The webhook ${origin()} accepted the test notice ${notice!.id}: 204, in \\d+ ms\\.\n$`),
    );
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(
      { type: notice!.type, data: notice!.data },
      { type: 'test', data: { actor: { kind: 'CLI', id: null, name: userInfo().username } } },
    );
    assert.ok(Math.abs(Date.parse(notice!.timestamp) - Date.now()) < 60_000);
    assert.match(String(notice!.headers['user-agent']), /^svc-api\/\d/);
  });

  it('reports that in JSON, with another id each time, also if no such event is wanted', async () => {
    declare(receiver.url, ', events: [key.leaked]');
    const [first, second] = [await asked(), await asked()];
    const { durationMs, ...json } = first.json;
    assert.deepEqual([first.code, json], [0, { webhook: origin(), id: receiver.received[0]!.id, status: 204 }]);
    assert.ok(Number.isInteger(durationMs) && durationMs >= 0);
    assert.notEqual(second.json.id, first.json.id);
  });

  it('reports the answer of a receiver that refuses it, and a likely cause', async () => {
    const hints: [number, Record<string, string>, string][] = [
      [500, {}, 'the answer was 500.'],
      [410, {}, 'the answer was 410 (Gone).'],
      [307, { Location: `${origin()}/t0ken` }, 'the answer was 307, a redirect, which is not followed.'],
      [404, {}, 'the answer was 404. Check the path in "url".'],
    ];
    for (const [status, headers, reason] of hints) {
      receiver.answer = (response) => void response.writeHead(status, headers).end(`t0ken ${receiver.secret}`);
      const { code, json } = await asked();
      const { durationMs, ...others } = json;
      assert.ok(durationMs >= 0);
      const { id } = receiver.received.at(-1)!;
      const error = `The webhook ${origin()} did not accept the test notice ${id}: ${reason}`;
      const expected = { webhook: origin(), id, status, error, code: 'WEBHOOK_FAILED' };
      assert.deepEqual([code, others], [1, expected]);
    }
    const { code, stdout, stderr } = await run();
    const { id } = receiver.received.at(-1)!;
    const text = `The webhook ${origin()} did not accept the test notice ${id}: ${hints.at(-1)![2]}`;
    assert.deepEqual([code, stdout, stderr], [1, '', errorText('WEBHOOK_FAILED', text)]);
  });

  it('says that the secret may be another, where the receiver does not believe the signature', async () => {
    const { code, json } = await asked(newNoticeSecret());
    assert.deepEqual([code, json.status, receiver.forged], [1, 401, 1]);
    assert.match(
      json.error!,
      /the answer was 401\. Check that the receiver has the same secret and the correct time\.$/,
    );
  });

  it('ends if a receiver hangs, and says so', async () => {
    receiver.answer = () => {};
    let tried: TestResult | undefined;
    const settings = { url: receiver.url, secretFile: undefined, ...DEFAULT_NOTICES };
    const env = { SVC_API_NOTICES_SECRET: receiver.secret };
    await assert.rejects(
      tryWebhook(settings, { env, by: 'alice', timeoutMs: 200, onTried: (found) => void (tried = found) }),
      {
        code: 'WEBHOOK_FAILED',
        message: /^The webhook \S+ did not accept the test notice msg_\w+: no answer within 0\.2 seconds\.$/,
      },
    );
    assert.equal(tried!.status, null);
    assert.ok(tried!.durationMs >= 190, String(tried!.durationMs));
  });

  it('reports that nothing listens', async () => {
    const { port } = receiver;
    await receiver.stop();
    declare(`http://127.0.0.1:${port}/hooks?token=t0ken`);
    const { code, stdout } = await run(['--json']);
    const { status, error } = JSON.parse(stdout) as Answer;
    assert.deepEqual([code, status], [1, null]);
    assert.match(error!, /: ECONNREFUSED\.$/);
  });

  describe('with TLS', () => {
    let server: Server;
    let reached = 0;
    const listen = async () => {
      reached = 0;
      server = createTlsServer(pairOf('first'), (request, response) => {
        reached += 1;
        response.writeHead(request.method === 'POST' ? 200 : 405).end();
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      return (server.address() as AddressInfo).port;
    };
    afterEach(() => void server.close());

    it('sends nothing to a server whose certificate is not trusted, and says how it would be', async () => {
      declare(`https://localhost:${await listen()}/hooks?token=t0ken`);
      const { code, json } = await asked();
      assert.deepEqual([code, json.status, reached], [1, null, 0]);
      assert.match(
        json.error!,
        /: DEPTH_ZERO_SELF_SIGNED_CERT\. Its certificate is not trusted, .*NODE_EXTRA_CA_CERTS/,
      );
    });

    it('trusts the authorities in NODE_EXTRA_CA_CERTS, and no certificate for another name', async () => {
      const { cert } = writePair(pairOf('first'));
      const port = await listen();
      const env = { SVC_API_CONFIG: config, NODE_EXTRA_CA_CERTS: cert, SVC_API_NOTICES_SECRET: receiver.secret };
      const answer = async (host: string) => {
        declare(`https://${host}:${port}/t0ken`);
        const { stdout, code } = await testCli().runProcess(['notices', 'test', '--json'], { env });
        return { exit: code, ...(JSON.parse(stdout) as Answer) };
      };
      const trusted = await answer('localhost');
      assert.deepEqual([trusted.exit, trusted.status, reached], [0, 200, 1]);
      const other = await answer('127.0.0.1');
      assert.deepEqual([other.exit, other.status, reached], [1, null, 1]);
      assert.match(
        other.error!,
        /: ERR_TLS_CERT_ALTNAME_INVALID\. Its certificate is not trusted, or is for another name/,
      );
    });
  });

  it('says what is missing: the configuration, the webhook in it, or the secret', async () => {
    const none = await testCli().run(['notices', 'test', '--json']);
    assert.deepEqual(
      [none.code, JSON.parse(none.stdout)],
      [
        1,
        {
          error: 'There is no configuration. Pass --config <path>, or set SVC_API_CONFIG.',
          code: 'CONFIG_UNAVAILABLE',
        },
      ],
    );
    writeFileSync(config, 'roles: {}\n');
    const { code, json } = await asked();
    const error = `There is no webhook to test: ${config} has no "notices". Add it, with a "url".`;
    assert.deepEqual([code, json], [1, { error, code: 'CONFIG_UNAVAILABLE' }]);
    declare(receiver.url);
    const unsigned = await asked('');
    assert.deepEqual([unsigned.code, unsigned.json.code], [1, 'CONFIG_UNAVAILABLE']);
    assert.match(unsigned.json.error!, /^The signing secret for notices is missing\./);
    writeFileSync(config, 'notices: { url: "ftp://127.0.0.1/t0ken" }');
    assert.deepEqual([(await asked()).json.code, receiver.received.length], ['CONFIG_INVALID', 0]);
  });

  it('reads the secret from the file that the configuration names, unless others can read it', async () => {
    const file = join(dirname(config), 'notices.secret');
    writeFileSync(file, `${receiver.secret}\n`, { mode: 0o600 });
    declare(receiver.url, ', secretFile: notices.secret');
    assert.equal((await asked('')).code, 0);
    chmodSync(file, 0o644);
    assert.equal((await asked('')).json.code, 'CONFIG_INSECURE');
    assert.deepEqual([receiver.received.length, receiver.forged], [1, 0]);
  });

  it('leaves what waits in a store, and what that knows of the webhook, as it is', async () => {
    const test = await openTestKeys();
    const server = testCourier(test, destinationOf(receiver));
    await server.run();
    const before = await noticesOf(test).status();
    receiver.answer = (response) => void response.writeHead(410).end();
    const env = { SVC_API_CONFIG: config, SVC_API_NOTICES_SECRET: receiver.secret };
    assert.equal((await testCli(test.database).run(['notices', 'test'], { env })).code, 1);
    assert.deepEqual(await noticesOf(test).status(), before);
    await server.dispatcher.stop();
    await test.store.close();
  });
});
