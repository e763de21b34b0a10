import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { toHex, readDigest } from '../../../src/features/transfer/digest.ts';

/** Bytes whose base64 contains both characters that base64url replaces. */
const BYTES = Buffer.from('fbff'.repeat(16), 'hex');
const [hex, base64, base64url] = (['hex', 'base64', 'base64url'] as const).map((encoding) => BYTES.toString(encoding));

describe('a SHA-256 that was computed elsewhere', () => {
  for (const [what, text] of Object.entries({
    hex: hex!,
    'hex in capital letters': hex!.toUpperCase(),
    base64: base64!,
    'base64 without its end': base64!.replace('=', ''),
    base64url: base64url!,
    'base64url with the end of base64': `${base64url}=`,
    'hex with its scheme': `sha256:${hex}`,
    'base64 with its scheme in capital letters': `SHA256:${base64}`,
    'hex between spaces': `\t${hex} \n`,
  })) {
    it(`is read as ${what}`, () => {
      assert.equal(readDigest(text), base64url);
    });
  }

  for (const [what, text] of Object.entries({
    nothing: '',
    'hex with a digit less': hex!.slice(1),
    'hex with a digit more': `${hex}0`,
    'hex with another character': `${hex!.slice(1)}g`,
    'hex after something else': `x${hex}`,
    'hex with the scheme in it': `${hex!.slice(0, 32)}sha256:${hex!.slice(32)}`,
    'another scheme': `sha512:${hex}`,
    'a SHA-512': createHash('sha512').digest('hex'),
    'a SHA-1': createHash('sha1').digest('hex'),
    'a bcrypt hash': '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
    'base64 with a character less': base64!.slice(1),
    'base64 with a character more': `A${base64}`,
    'base64 after something else': `!${base64}`,
    'base64 with its end twice': `${base64}=`,
    'base64 and base64url mixed': base64!.replace('+', '-'),
    'base64 whose last character holds more than the last byte': base64!.replace(/.=$/, '9='),
  })) {
    it(`is not ${what}`, () => {
      assert.equal(readDigest(text), undefined);
    });
  }

  it('is given back as hex', () => {
    assert.equal(toHex(readDigest(base64!)!), hex);
  });
});
