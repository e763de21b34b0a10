import assert from 'node:assert/strict';
import { truncateSync } from 'node:fs';
import { ask, type Sent } from '../support/proxies/client.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';
import { end } from '../support/proxies/guarded-site.ts';

/** Longer than the proxies' timeouts in the examples, and shorter than their defaults. */
const PATIENCE_MS = 40_000;

/** The sign-in page. */
const DOOR: Sent = { path: '/.svc-api/' };

describeEachProxy('while svc-api', { signIn: 'on' }, (site) => {
  let key: [string, string];
  before(async () => {
    key = await site().editor();
  });
  const send = (sent: Sent = {}) => ask(site().port, { ...sent, headers: [key] });
  /** Expects that no request below this path reaches the service. Requests of other tests can still arrive. */
  const expectUnavailable = async (path: string, ...more: Sent[]) => {
    const sent = [{ path }, { path, method: 'POST', body: 'x' }, { path }, ...more];
    const statuses = await Promise.all(sent.map(async (each) => (await send(each)).status));
    assert.deepEqual(new Set(statuses), new Set([503]));
    assert.equal(site().service.requests(path), 0);
  };

  it('hangs, requests are refused after a short time', async function () {
    this.timeout(PATIENCE_MS);
    assert.equal((await send()).status, 200);
    site().svcApi.kill('SIGSTOP');
    await expectUnavailable('/hangs', DOOR);
    site().svcApi.kill('SIGCONT');
    assert.equal((await send()).status, 200);
  });

  it('has lost its key store, requests are refused', async () => {
    truncateSync(site().database);
    await expectUnavailable('/lost');
  });

  it('is not running, requests are refused', async () => {
    await end(site().svcApi, 'SIGKILL');
    await expectUnavailable('/gone', DOOR);
  });
});

describeEachProxy('while the service', {}, (site) => {
  it('is not there, clients learn that it is not svc-api that fails', async () => {
    const key = await site().reader();
    assert.equal((await ask(site().port, { headers: [key] })).status, 200);
    await site().service.stop();
    const { status } = await ask(site().port, { headers: [key] });
    // HAProxy answers so for any server that is down.
    assert.ok([502, 503].includes(status), String(status));
  });
});
