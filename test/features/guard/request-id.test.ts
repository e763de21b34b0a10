import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import { collectingLog } from '../../support/log.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { startGuarded } from './support/guard.ts';

const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/;
const ID = 'X-Request-Id';

describe('the id of a request, by a guard,', () => {
  it('is passed on to the service, and is the only one that the client gets', async () => {
    const seen: IncomingMessage[] = [];
    const upstream = createServer((incoming, outgoing) => {
      seen.push(incoming);
      outgoing.setHeader(ID, 'of-the-service').end('ok');
    });
    const { log, lines } = collectingLog();
    const service = await startGuarded(upstream, { log });
    const ask = (...more: string[]) =>
      sendRaw(service.url, ['GET / HTTP/1.1', 'Host: a', 'Connection: close', ...more, '', ''].join('\r\n'));
    const taken = await ask(service.authorization, `${ID}: from-the-proxy`, 'X_Request_Id: another');
    assert.equal(taken.headers.get(ID), 'from-the-proxy');
    assert.equal(seen[0]!.headers['x-request-id'], 'from-the-proxy');
    assert.equal(seen[0]!.headers['x_request_id'], undefined);
    const made = await ask(service.authorization, `${ID}: ${'x'.repeat(9000)}`);
    assert.match(made.headers.get(ID)!, UUID);
    assert.equal(seen[1]!.headers['x-request-id'], made.headers.get(ID));
    const refused = await ask('Authorization: Bearer nonsense', `${ID}: refused-1`);
    assert.deepEqual([refused.status, refused.headers.get(ID)], [401, 'refused-1']);
    upstream.closeAllConnections();
    upstream.close();
    const failed = await ask(service.authorization, `${ID}: failed-1`);
    assert.deepEqual([failed.status, failed.headers.get(ID)], [502, 'failed-1']);
    const ids = lines.map(({ fields }) => (fields as { requestId?: string }).requestId);
    assert.deepEqual(ids, ['refused-1', 'failed-1']);
    await service.stop();
  });
});
