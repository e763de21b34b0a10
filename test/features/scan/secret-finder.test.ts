import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { type FoundSecret, SecretFinder } from '../../../src/features/scan/cli/secret-finder.ts';

const { text: secret, publicId } = createSecret(randomBytes);
const { text: other, publicId: otherId } = createSecret(randomBytes);

/** Finds secrets in parts that reuse one buffer, as for files. */
function findIn(...parts: readonly (string | Buffer)[]): FoundSecret[] {
  const finder = new SecretFinder();
  const memory = Buffer.alloc(4096);
  return parts.flatMap((part) => {
    const bytes = Buffer.from(part as string);
    bytes.copy(memory);
    const found = [...finder.find(memory.subarray(0, bytes.length))];
    memory.fill(0);
    return found;
  });
}

describe('finding secrets', () => {
  it('reports the line and the column in characters', () => {
    const text = `${secret}\n\nclé = "${secret}"; 日本語 🔑 ${other}\r\n`;
    assert.deepEqual(findIn(text), [
      { secret, publicId, line: 1, column: 1 },
      { secret, publicId, line: 3, column: 8 },
      { secret: other, publicId: otherId, line: 3, column: 8 + 66 + 9 },
    ]);
  });

  it('finds the same wherever the input is split', () => {
    const text = Buffer.from(`ü\nsvc_ ${secret}\n${other}svc_`);
    const whole = findIn(text);
    assert.equal(whole.length, 2);
    for (let border = 0; border <= text.length; border += 1) {
      assert.deepEqual(findIn(text.subarray(0, border), text.subarray(border)), whole, `border at ${border}`);
    }
    assert.deepEqual(findIn(...Array.from(text, (byte) => Buffer.of(byte))), whole, 'byte by byte');
  });

  it('finds a secret beside anything: other secrets, letters, bytes that are no text', () => {
    const beside = Buffer.concat([Buffer.of(0, 0xff, 0xfe), Buffer.from(`\\n${secret}${secret}%3D${other}tail`)]);
    assert.deepEqual(
      findIn(beside).map((found) => found.secret),
      [secret, secret, other],
    );
  });

  it('takes nothing whose form or checksum is wrong', () => {
    const swapped = secret.slice(0, 20) + (secret[20] === 'a' ? 'b' : 'a') + secret.slice(21);
    assert.deepEqual(
      findIn(`${swapped} ${secret.slice(0, -1)} ${secret.toUpperCase()} svc_svc_svc_ ${'svc_'.repeat(40)}`),
      [],
    );
    assert.deepEqual(findIn(secret.slice(0, 30), '\n', secret.slice(30)), []);
  });

  it('keeps only the end of the input', () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const held = () => {
      // A collection frees memory in the background; the next one waits for that.
      for (let count = 0; count < 2; count += 1) collectGarbage();
      return process.memoryUsage().arrayBuffers;
    };
    const finder = new SecretFinder();
    const part = Buffer.alloc(1 << 20, 'x');
    const before = held();
    for (let count = 0; count < 50; count += 1) assert.deepEqual([...finder.find(part)], []);
    // Another thread frees the buffers some time after the collection.
    let collections = 1;
    while (held() - before >= 10 * part.length) assert.ok((collections += 1) < 100);
    assert.deepEqual(
      [...finder.find(Buffer.from(secret))],
      [{ secret, publicId, line: 1, column: 50 * part.length + 1 }],
    );
  });

  it('finds one with a start of its own beside one that begins with svc_, wherever a stream is split', () => {
    const acme = createSecret(randomBytes, 'acme');
    const svc = createSecret(randomBytes);
    const twelve = createSecret(randomBytes, 'abcdefghijk9');
    const bytes = Buffer.from(`a_b\nx${acme.text}${svc.text}\n%3D${twelve.text}${acme.text.slice(0, -1)}`);
    for (let size = 1; size < bytes.length; size += 7) {
      const finder = new SecretFinder();
      const found = [];
      for (let at = 0; at < bytes.length; at += size) found.push(...finder.find(bytes.subarray(at, at + size)));
      assert.deepEqual(
        found.map((each) => [each.secret, each.line, each.column]),
        [
          [acme.text, 2, 2],
          [svc.text, 2, 2 + acme.text.length],
          [twelve.text, 3, 4],
        ],
        String(size),
      );
    }
  });
});
