import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { FeedLines } from '../../../src/features/edge/feed-lines.ts';
import { HttpFeed } from '../../../src/features/edge/http-feed.ts';
import { KeyTable } from '../../../src/features/edge/key-table.ts';
import { NO_LOG } from '../../../src/log.ts';
import { digestOf, lineOf } from '../../support/feed-rows.ts';

const KEYS = 60_000;
/** More than the buffers of a connection hold. */
const MAX_AHEAD_BYTES = 24 * 1024 * 1024;

describe('the keys that an edge loads', () => {
  it('are taken as they arrive, so that a large table is never in memory twice', async () => {
    let sent = 0;
    const name = 'x'.repeat(1000);
    const server = createServer((_incoming, outgoing) => {
      const send = async () => {
        for (let index = 0; index < KEYS; index += 1) {
          const row = lineOf({ id: `${index}`, digest: digestOf(`${index}`), previous: null, name });
          const line = `+${row.toString()}\n`;
          sent += line.length;
          if (!outgoing.write(line)) await once(outgoing, 'drain');
        }
        outgoing.end('=["1.a",0,0]\n');
      };
      void send();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const feed = new HttpFeed({ origin: `http://127.0.0.1:${port}`, token: 'svc_token', leaseMs: 1000, log: NO_LOG });
    const table = new KeyTable();
    const lines = new FeedLines(table);
    let [taken, ahead] = [0, 0];
    for await (const piece of feed.snapshot(new AbortController().signal)) {
      await lines.take(piece);
      taken += piece.length;
      await setImmediate();
      ahead = Math.max(ahead, sent - taken);
    }
    assert.equal(lines.finish().cursor, '1.a');
    assert.equal(table.size, KEYS);
    assert.ok(sent > 2 * MAX_AHEAD_BYTES && ahead < MAX_AHEAD_BYTES, `${ahead} of ${sent} bytes`);
    feed.close();
    server.close();
  });
});
