import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Usage } from '../../src/features/usage/usage.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { NO_REQUESTS } from '../../src/keys/key/use.ts';
import { type GuardedService, PERMISSION, startGuarded } from '../features/guard/support/guard.ts';
import { connectRaw } from '../support/raw-connection.ts';

describe('a request that switched to another protocol is counted once, by how it ended', () => {
  let service: GuardedService;
  before(async () => {
    const server = createServer().on('upgrade', (_, socket) => {
      socket.on('error', () => {}).pipe(socket);
      socket.write('HTTP/1.1 101 Switched\r\nUpgrade: plain\r\nConnection: upgrade\r\n\r\nwelcome');
    });
    service = await startGuarded(server);
  });
  after(() => service.stop());

  const countsAfter = async (name: string, change: (id: string) => Promise<unknown>) => {
    const { key, apiKey } = await service.keys.create({ name, permissions: [PERMISSION] }, OPERATOR);
    const raw = connectRaw(service.url);
    const lines = ['Host: a', 'Connection: Upgrade', 'Upgrade: plain', `Authorization: Bearer ${key}`];
    raw.request('GET / HTTP/1.1', ...lines);
    await raw.receives('welcome');
    await change(apiKey.id);
    await raw.closed();
    await service.keys.finishActivity();
    const { periods } = await service.keys.feature(Usage).byPeriod(apiKey.id);
    return periods.map(({ start: _start, ...counts }) => counts);
  };

  it('refused, if its key is disabled', async () => {
    const counts = await countsAfter('Disabled', (id) => service.keys.setEnabled(id, false, OPERATOR));
    assert.deepEqual(counts, [{ ...NO_REQUESTS, refused: 1 }]);
  });

  it('forbidden, if its key loses the permission', async () => {
    const counts = await countsAfter('Narrowed', (id) =>
      service.keys.update(id, { permissions: ['ME:READ_OWN'] }, OPERATOR),
    );
    assert.deepEqual(counts, [{ ...NO_REQUESTS, forbidden: 1 }]);
  });
});
