import assert from 'node:assert/strict';
import { rotatedSecrets } from '../../../src/keys/key/rotated-secret.ts';
import { idOf, storedKey } from '../../support/keys.ts';

/** A key with the nth secret, and during a rotation the previous one. */
const keyWith = (current: number, previous?: number) =>
  storedKey('CI', {
    digest: `digest ${current}`,
    publicId: `id ${current}`,
    ...(previous !== undefined && {
      previousDigest: `digest ${previous}`,
      rotation: { previousPublicId: `id ${previous}`, startedAt: 0, grace: 0, previousEndsAt: null },
    }),
  });

describe('the secrets that a change takes away from a key', () => {
  const lost = (number: number) => ({
    digest: `digest ${number}`,
    publicId: `id ${number}`,
    keyId: idOf('CI'),
    rotatedAt: 1000,
  });

  for (const [what, before, after, ...numbers] of [
    ['none where none is replaced', keyWith(1), keyWith(1)],
    ['none where it is rotated for the first time', keyWith(1), keyWith(2, 1)],
    ['the one before the previous one where it is rotated again', keyWith(2, 1), keyWith(3, 2), 1],
    ['the previous one where the rotation is finished', keyWith(2, 1), keyWith(2), 1],
    ['the new one where the rotation is rolled back', keyWith(2, 1), keyWith(1), 2],
    ['both where it gets another one', keyWith(2, 1), keyWith(3), 2, 1],
  ] as const) {
    it(`are ${what}`, () => {
      assert.deepEqual(rotatedSecrets(before, after, 1000), numbers.map(lost));
    });
  }
});
