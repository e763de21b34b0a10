import assert from 'node:assert/strict';
import { deliverSecrets } from '../../src/cli/deliver-secrets.ts';
import { presentError } from '../../src/cli/errors.ts';
import type { NewSecret } from '../../src/keys/changes/delivery.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../support/keys.ts';

describeOnEach('a signal while a key is created', () => {
  let test: TestKeys;
  let printed: string[];
  beforeEach(async () => {
    test = await openTestKeys();
    printed = [];
  });
  afterEach(() => test.store.close());

  /** Replaces the key "CI", with a signal before the secret is printed. */
  const replace = (signal?: NodeJS.Signals) =>
    deliverSecrets<NewSecret, unknown>(
      { deliver: ({ key: secret }) => void printed.push(secret) },
      'As before.',
      (delivery) =>
        test.keys.create({ name: 'CI', roles: ['VIEWER'], overwrite: true }, OPERATOR, {
          ...delivery,
          prepare: (made) => {
            delivery.prepare?.(made);
            if (signal) process.kill(process.pid, signal);
          },
        }),
    );

  for (const [signal, exit] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const) {
    it(`reverts it if the secret was not printed yet, and ends with ${exit} at ${signal}`, async () => {
      const { key: secret } = await test.keys.create({ name: 'CI', roles: ['ADMIN'] }, OPERATOR);
      const failure = await replace(signal).catch(presentError);
      assert.deepEqual(failure, { code: 'INTERRUPTED', message: `Ended by ${signal}. As before.`, exit });
      assert.deepEqual(printed, []);
      const found = await authenticate(test.keys, secret);
      assert.ok('principal' in found && found.principal.apiKey.roles.includes('ADMIN'));
      assert.equal(process.listenerCount(signal), 0);
    });
  }

  it('is not waited for: without one the key is created', async () => {
    await replace();
    assert.ok('principal' in (await authenticate(test.keys, printed[0]!)));
  });

  it('ends the process afterwards, if it comes while the secret is printed', async () => {
    const heard = new Promise((resolve) => process.once('SIGUSR2', resolve));
    const relay = () => process.kill(process.pid, 'SIGUSR2');
    const made = deliverSecrets<NewSecret, unknown>(
      {
        deliver: ({ key: secret }) => {
          printed.push(secret);
          process.kill(process.pid, 'SIGTERM');
          // Otherwise these signals would end the test's process.
          process.on('SIGTERM', relay);
        },
      },
      'As before.',
      (delivery) => test.keys.create({ name: 'CI', roles: ['VIEWER'] }, OPERATOR, delivery),
    );
    await made;
    await heard;
    process.off('SIGTERM', relay);
    assert.ok('principal' in (await authenticate(test.keys, printed[0]!)));
  });
});
