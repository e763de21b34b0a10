import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from '../../src/features/doctor/inspection/finding.ts';
import { UNIT_MS } from '../../src/keys/basics/duration.ts';
import { STORES } from '../support/features.ts';
import { openStore } from '../../src/store/open.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { destinationOf, testCourier } from '../support/couriers.ts';
import { describeOnEach } from '../support/dialects.ts';
import { changeDirectly } from '../support/direct.ts';
import { tempFolder } from '../support/temp.ts';
import { newNoticeSecret, Receiver, stopReceivers } from '../support/webhook.ts';

describeOnEach('doctor, about notices', () => {
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli();
    await cli.given('A');
  });
  /** The findings about notices with a configuration. */
  const examine = async (env: NodeJS.ProcessEnv, config: string) => {
    const { stdout } = await cli.run(['doctor', '--json', '--config', config], { env });
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    return checks.filter(({ check }) => check === 'NOTICES');
  };
  /** A webhook that answers 500. */
  const startUnheard = async () => {
    const store = await openStore({ database: cli.database }, { features: STORES });
    const time = { now: Date.now() };
    const receiver = await Receiver.start();
    receiver.answer = (response) => void response.writeHead(500).end();
    /** Collects notices and tries to send them, like another process. */
    const pass = async () => {
      const server = testCourier({ store, time }, destinationOf(receiver));
      await server.run();
      await server.dispatcher.stop();
    };
    const end = async () => {
      await store.close();
      await stopReceivers();
    };
    return { time, pass, end };
  };

  it('says whether notices can be signed, what waits, and why the last could not be delivered', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(config, 'notices: { url: "https://hooks.example.org/t0ken" }');
    const secret = newNoticeSecret();
    const notices = (env: NodeJS.ProcessEnv) => examine(env, config);
    const [missing] = await notices({});
    assert.equal(missing!.status, 'warning');
    const [wrongOne] = await notices({ SVC_API_NOTICES_SECRET: 'hunter2' });
    assert.equal(wrongOne!.status, 'failure');
    assert.equal(wrongOne!.message.includes('hunter2'), false);
    const env = { SVC_API_NOTICES_SECRET: secret };
    const readable = 'The secret that signs notices for https://hooks.example.org can be read.';
    assert.deepEqual(
      (await notices(env)).map(({ message }) => message),
      [readable],
    );
    const unheard = await startUnheard();
    await unheard.pass();
    await cli.given('B');
    unheard.time.now = Date.now() + 20_000;
    await unheard.pass();
    await unheard.end();
    const at = new Date(unheard.time.now).toISOString();
    assert.deepEqual(
      (await notices(env)).map(({ status, message }) => [status, message]),
      [
        ['ok', readable],
        ['warning', `1 notices wait, of at most 10000; the last failure, at ${at}: the answer was 500.`],
      ],
    );
  });

  it('reports what is left after the last webhook was removed, and how that ends, without a fault', async () => {
    const config = join(tempFolder(), 'svc-api.yaml');
    const secret = newNoticeSecret();
    const about = async (text: string) => {
      writeFileSync(config, text);
      const env = { SVC_API_NOTICES_SECRET: secret };
      return (await examine(env, config)).map(({ status, message }) => `${status} ${message}`);
    };
    const none = 'ok The configuration has no webhook: no notices are sent.';
    const seenAgo = (ms: number) =>
      changeDirectly(cli.database, `update notice_state set seen_at = ${Date.now() - ms}`);
    const unheard = await startUnheard();
    await unheard.pass();
    // No notices are waiting.
    await seenAgo(2 * UNIT_MS.h);
    assert.deepEqual(await about('roles: {}'), [none]);
    await changeDirectly(cli.database, `update notice_state set gone = 'x'`);
    assert.deepEqual(await about('roles: {}'), [none]);
    await changeDirectly(cli.database, 'update notice_state set gone = null');
    await cli.given('B');
    unheard.time.now = Date.now();
    await unheard.pass();
    await unheard.end();
    await changeDirectly(cli.database, `update notice_outbox set created_at = created_at - ${2 * UNIT_MS.h}`);
    // Another configuration delivers to a webhook.
    const late = /^warning 1 notices wait, of at most 10000; the last failure, at \S+: the answer was 500\.$/;
    assert.match((await about('roles: {}'))[1]!, late);
    await seenAgo(2 * UNIT_MS.h);
    const waits =
      /^ok 1 notice waits\. Servers had a webhook until (\S+)\. A webhook configured by (\S+) receives what waits /;
    const [first, second, ...others] = await about('roles: {}');
    assert.deepEqual([first, others], [none, []]);
    const [, seen, until] = waits.exec(second!) ?? assert.fail(second);
    assert.equal(Date.parse(until!) - Date.parse(seen!), 30 * UNIT_MS.d);
    assert.match((await about('notices: { url: "https://hooks.example.org" }'))[1]!, late);
    // A faulty configuration says nothing about receivers.
    assert.match((await about('rooles: {}'))[0]!, late);
    await seenAgo(31 * UNIT_MS.d);
    assert.match(
      (await about('roles: {}'))[1]!,
      /^ok 1 notice waits\. .* A webhook configured now receives none of it: /,
    );
  });
});
