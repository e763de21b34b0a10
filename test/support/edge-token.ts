import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { TestKeys } from './keys.ts';
import { until } from './until.ts';

/** An edge that reads its token from a file. */
interface EdgeWithFile {
  readonly tokenFile: string;
  /** The edge's answer for a secret: `ok`, or status and code. */
  check(secret: string): Promise<string>;
  /** True if it has a lease. */
  hasLease(): boolean;
  /** True if its log contains a message with this beginning. */
  hasLogged(message: string): boolean;
}

/** Rotates the token of a running edge: once within the grace, without an outage, and once after it. */
export async function rotateToken({ keys, time }: TestKeys, name: string, edge: EdgeWithFile): Promise<void> {
  const { id } = (await keys.findByName(name, OPERATOR))!;
  const { key: secret } = await keys.create({ name: 'Asked', roles: ['VIEWER'] }, OPERATOR);
  await until(async () => (await edge.check(secret)) === 'ok');
  const write = (text: string) => writeFileSync(edge.tokenFile, text, { mode: 0o600 });
  /** Creates a key, and waits until the edge accepts it: it has then polled with its current token. */
  const asked = async (after: string) => {
    const { key: other } = await keys.create({ name: after, roles: ['VIEWER'] }, OPERATOR);
    await until(async () => {
      const [had, said] = [edge.hasLease(), await edge.check(secret)];
      if (had && edge.hasLease()) assert.equal(said, 'ok', after);
      return (await edge.check(other)) === 'ok';
    });
  };

  const { key: next } = await keys.rotate(id, { grace: '1h' }, OPERATOR);
  await asked('With the previous one');
  write('it is half wri');
  await until(() => edge.hasLogged('the token for the origin cannot be read'));
  await asked('While it cannot be read');
  write(`${next}\n`);
  await until(() => edge.hasLogged('the token for the origin was read again'));
  await keys.finishRotation(id, OPERATOR);
  await asked('With the next one');

  const { key: last } = await keys.rotate(id, { grace: '1h' }, OPERATOR);
  await asked('Until the grace ends');
  time.now += 3_600_001;
  await until(async () => (await edge.check(secret)) === '503 SERVICE_UNAVAILABLE');
  assert.ok(!edge.hasLease());
  await until(() => edge.hasLogged('the origin gives no lease'));
  write(`${last}\n`);
  await until(async () => (await edge.check(secret)) === 'ok');
  await asked('After that');
}
