import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { type GuardedService, startGuarded } from '../../features/guard/support/guard.ts';
import { connectRaw } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';

const MIB = 1024 ** 2;
const SIZE = 256 * MIB;
/** The memory that a buffered body would take, minus some garbage. */
const KEPT = 0.75 * SIZE;
/** How much socket and stream buffers can hold on both connections. */
const ON_THE_WAY = 32 * MIB;

describe('a large body', () => {
  let service: GuardedService;
  let serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  before(async () => {
    service = await startGuarded((incoming, outgoing) => serve(incoming, outgoing));
  });
  after(() => service.stop());

  /** A stream of bytes that counts how many were read. */
  const source = (size: number) => {
    const taken = { bytes: 0 };
    const chunk = Buffer.alloc(64 * 1024, 'a');
    const stream = new Readable({
      read() {
        if (taken.bytes >= size) return void this.push(null);
        taken.bytes += chunk.length;
        return void this.push(chunk);
      },
    });
    return { taken, stream };
  };

  const ask = (method: string) =>
    request(service.url, { method, headers: { authorization: `Bearer ${service.secret}` } });

  /** The growth of this process's peak memory during `work`. */
  const growthWhile = async (work: () => Promise<void>) => {
    const before = process.resourceUsage().maxRSS;
    await work();
    return (process.resourceUsage().maxRSS - before) * 1024;
  };

  it('passes to the client without being kept in memory', async () => {
    serve = (_, outgoing) => void pipeline(source(SIZE).stream, outgoing);
    const growth = await growthWhile(async () => {
      const [reply] = (await once(ask('GET').end(), 'response')) as [IncomingMessage];
      let received = 0;
      for await (const chunk of reply) received += (chunk as Buffer).length;
      assert.equal(received, SIZE);
    });
    assert.ok(growth < KEPT, `${growth} bytes`);
  });

  it('passes to the service without being kept in memory', async () => {
    let received = 0;
    serve = (incoming, outgoing) => {
      incoming.on('data', (chunk: Buffer) => (received += chunk.length));
      incoming.once('end', () => outgoing.end('fine'));
    };
    const growth = await growthWhile(async () => {
      const asking = ask('POST');
      const answered = once(asking, 'response') as Promise<[IncomingMessage]>;
      await pipeline(source(SIZE).stream, asking);
      assert.equal(await text((await answered)[0]), 'fine');
    });
    assert.equal(received, SIZE);
    assert.ok(growth < KEPT, `${growth} bytes`);
  });

  it('is produced no faster than its client reads it', async () => {
    const { taken, stream } = source(SIZE);
    serve = (_, outgoing) => void pipeline(stream, outgoing).catch(() => {});
    const raw = connectRaw(service.url);
    raw.socket.pause();
    raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
    await stalls(taken);
    assert.ok(taken.bytes < ON_THE_WAY, `${taken.bytes} bytes`);
    raw.socket.destroy();
  });

  it('is taken no faster than the service reads it', async () => {
    const arrived = Promise.withResolvers<void>();
    serve = () => arrived.resolve();
    const raw = connectRaw(service.url);
    raw.request('POST / HTTP/1.1', 'Host: a', service.authorization, `Content-Length: ${SIZE}`);
    await arrived.promise;
    const { taken, stream } = source(SIZE);
    stream.pipe(raw.socket);
    await stalls(taken);
    assert.ok(taken.bytes < ON_THE_WAY, `${taken.bytes} bytes`);
    raw.socket.destroy();
  });
});

/** Waits until no more is read. */
async function stalls(taken: { bytes: number }): Promise<void> {
  let [before, unchanged] = [-1, 0];
  await until(() => {
    unchanged = taken.bytes > 0 && taken.bytes === before ? unchanged + 1 : 0;
    before = taken.bytes;
    return unchanged > 20;
  });
}
