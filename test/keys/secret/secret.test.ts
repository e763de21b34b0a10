import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import {
  createImportedId,
  createSecret,
  digestSecret,
  hasOwnForm,
  holdsSecret,
  isImportedId,
  prefixOf,
  publicIdOfPrefix,
  readSecret,
  redactSecrets,
} from '../../../src/keys/secret/secret.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The documented pattern for scanners. */
const SCANNER = /\bsvc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\b/g;
const FORM = /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/;
/** A random source that repeats one byte. */
const fixed = (byte: number) => (size: number) => new Uint8Array(size).fill(byte);

describe('a secret', () => {
  const secret = createSecret(randomBytes);

  it('has the form that scanners look for', () => {
    for (const source of [randomBytes, fixed(0), fixed(247)]) assert.match(createSecret(source).text, FORM);
    const found = [...`key=${secret.text}, and\n"${secret.text}"`.matchAll(SCANNER)];
    assert.deepEqual(
      found.map(([text]) => text),
      [secret.text, secret.text],
    );
  });

  it('holds the 32 random bytes as base62, most significant digit first', () => {
    const bytes = randomBytes(32);
    const { text } = createSecret((size) => (size === 32 ? bytes : randomBytes(size)));
    const number = Array.from(text.slice(17, 60)).reduce((sum, digit) => sum * 62n + BigInt(BASE62.indexOf(digit)), 0n);
    assert.equal(number, BigInt(`0x${bytes.toString('hex')}`));
  });

  it('ends in the CRC-32 of everything before', () => {
    const check = Array.from(secret.text.slice(60)).reduce((sum, digit) => sum * 62 + BASE62.indexOf(digit), 0);
    assert.equal(check, crc32(secret.text.slice(0, 60)));
  });

  it('has a public id without bias: bytes beyond the last multiple of 62 are thrown away', () => {
    let next = 255;
    const falling = (size: number) => (size === 32 ? randomBytes(32) : Uint8Array.of(next--));
    const ids = Array.from({ length: 20 }, () => createSecret(falling).publicId).join('');
    // Bytes from 248 on are skipped, so each character occurs equally often.
    assert.equal(ids, BASE62.split('').toReversed().join('').repeat(4).slice(0, 240));
  });

  it('has a public id of 12 characters, however many bytes were thrown away', () => {
    let calls = 0;
    const { publicId } = createSecret((size) =>
      new Uint8Array(size).fill(255, 0, size === 12 && calls++ === 0 ? 5 : 0),
    );
    assert.deepEqual([publicId, calls], ['0'.repeat(12), 2]);
  });

  it('takes other random bytes each time', () => {
    assert.equal(new Set(Array.from({ length: 100 }, () => createSecret(randomBytes).text)).size, 100);
  });

  it('is stored as the SHA-256 of the whole, in base64url', () => {
    const digest = createHash('sha256').update(secret.text).digest('base64url');
    assert.equal(secret.digest, digest);
    assert.equal(digestSecret(secret.text), digest);
  });
});

describe('reading a secret', () => {
  const { text, publicId } = createSecret(randomBytes);

  it('gives its public id', () => {
    assert.deepEqual(readSecret(text), { publicId });
    assert.equal(text.slice(4, 16), publicId);
  });

  it('finds out any single changed character', () => {
    for (let index = 0; index < text.length; index += 1) {
      for (const other of BASE62) {
        const changed = text.slice(0, index) + other + text.slice(index + 1);
        if (changed !== text) assert.equal(readSecret(changed), undefined, changed);
      }
    }
  });

  it('finds out two neighbours that changed places', () => {
    for (let index = 0; index < text.length - 1; index += 1) {
      const changed = text.slice(0, index) + text[index + 1] + text[index] + text.slice(index + 2);
      if (changed !== text) assert.equal(readSecret(changed), undefined, changed);
    }
  });

  for (const [what, changed] of Object.entries({
    nothing: '',
    'a space before it': ` ${text}`,
    'a newline after it': `${text}\n`,
    'a character less': text.slice(0, -1),
    'a character more': `${text}0`,
    'another prefix': text.replace('svc_', 'sk__'),
    'lower case alone': text.toLowerCase(),
  })) {
    it(`refuses ${what}`, () => {
      assert.equal(readSecret(changed), undefined);
    });
  }
});

describe('the form of a secret', () => {
  const { text } = createSecret(randomBytes);

  it('is recognized with any checksum', () => {
    for (const own of [text, `${text.slice(0, -1)}0`, `${text.slice(0, -1)}1`]) assert.equal(hasOwnForm(own), true);
    for (const other of ['', text.slice(1), text.slice(0, -1), `${text}0`]) assert.equal(hasOwnForm(other), false);
  });
});

describe('a prefix', () => {
  const { publicId } = createSecret(randomBytes);
  const imported = createImportedId(fixed(0));

  it('is the public id, in the form of the secret unless that was imported', () => {
    assert.equal(prefixOf(publicId), `svc_${publicId}_…`);
    assert.equal(imported, 'imported-000000000000');
    assert.equal(prefixOf(imported), imported);
    assert.deepEqual([isImportedId(imported), isImportedId(publicId)], [true, false]);
  });

  it('is read back', () => {
    for (const id of [publicId, imported]) assert.equal(publicIdOfPrefix(prefixOf(id)), id);
    for (const other of [
      '',
      publicId,
      `svc_${publicId}_`,
      `x-${prefixOf(publicId)}`,
      `${prefixOf(publicId)}x`,
      `${imported}0`,
      `x-${imported}`,
    ])
      assert.equal(publicIdOfPrefix(other), undefined, other);
  });
});

describe('a text whose checksum fits', () => {
  /** The text with its CRC-32 as six base62 characters, the end of a secret. */
  const checked = (text: string) => {
    let [rest, checksum] = [crc32(text), ''];
    while (checksum.length < 6) [rest, checksum] = [Math.floor(rest / 62), BASE62[rest % 62] + checksum];
    return text + checksum;
  };
  const unchecked = `svc_${'0'.repeat(12)}_${'a'.repeat(43)}`;

  it('is a secret where it has the form of one', () => {
    assert.deepEqual(readSecret(checked(unchecked)), { publicId: '0'.repeat(12) });
  });

  for (const text of [
    '',
    `x-${unchecked}`,
    `${unchecked}x`,
    `${unchecked}\n`,
    checked(unchecked),
    unchecked.slice(2),
    unchecked.replace('a', '-'),
    unchecked.replace('0', '-'),
  ]) {
    it(`is no secret with another form: ${JSON.stringify(text)}`, () => {
      assert.equal(readSecret(checked(text)), undefined);
    });
  }
});

describe('redacting', () => {
  const { text, publicId } = createSecret(randomBytes);
  const prefix = `svc_${publicId}_…`;

  it('replaces each secret by its prefix and leaves the rest', () => {
    assert.equal(redactSecrets(`a ${text}, "${text}"`), `a ${prefix}, "${prefix}"`);
    assert.equal(redactSecrets('svc_api and svc_keys'), 'svc_api and svc_keys');
  });

  it('is needed where a text holds a secret, even a cut one', () => {
    for (const held of [text, `a ${text}`, text.slice(0, 18)]) assert.equal(holdsSecret(held), true, held);
    for (const none of ['', prefix, 'svc_api and svc_keys']) assert.equal(holdsSecret(none), false, none);
  });

  it('replaces secrets that are cut, mistyped or stuck to other text', () => {
    for (const form of [text.slice(0, 18), text.slice(0, -1), `${text}0`, `key${text}`, `${text.slice(0, -1)}!`]) {
      const redacted = redactSecrets(form);
      assert.ok(redacted.includes(prefix), redacted);
      assert.ok(!redacted.includes(text.slice(17, 18 + 8)), redacted);
    }
  });
});
