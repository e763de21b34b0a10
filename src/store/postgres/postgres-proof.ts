import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ClientConfig, Notification } from 'pg';
import { KeysError } from '../../keys/errors.ts';
import { loadDriver } from './postgres-pool.ts';

/** How long after it was said the token may take to arrive. */
const ARRIVAL_MS = 1000;

/** A connection does not hear what is said at the address. */
export class UnheardError extends KeysError {
  constructor(location: string) {
    super(
      'STORE_UNAVAILABLE',
      `The key store ${location} does not notify of changes: a connection pooler in between does not pool sessions, ` +
        'or the address has just come to lead to another server. Give the address of the server itself, or let the ' +
        'pooler pool sessions.',
    );
  }
}

/** A connection that listens, and what it listens to. */
export interface Listening {
  client: Client;
  /** A channel that only this connection listens on. */
  channel: string;
  /** Aborted when the connection ends. */
  signal: AbortSignal;
}

/**
 * Whether a connection hears what is said at an address now: a token that a new connection says there must arrive. It
 * does not behind a pooler that lends the session to others between transactions, nor when the address has come to lead
 * to another server while this one lives on. Nothing else may be asked meanwhile: such a pooler would lend the session
 * for as long, and the token could arrive by chance.
 * @throws what the driver throws if no connection can be made
 */
export async function hearsAddress(
  { client: listener, channel, signal }: Listening,
  config: ClientConfig,
): Promise<boolean> {
  const { Client } = await loadDriver();
  const speaker = new Client(config);
  speaker.on('error', () => {});
  const token = randomUUID();
  const heard = Promise.withResolvers<boolean>();
  const hear = ({ payload }: Notification) => payload === token && heard.resolve(true);
  listener.on('notification', hear);
  try {
    await speaker.connect();
    (speaker as Client & { unref(): void }).unref();
    await speaker.query('select pg_notify($1, $2)', [channel, token]);
    const tooLate = delay(ARRIVAL_MS, false, { ref: false, signal }).catch(() => false);
    return await Promise.race([heard.promise, tooLate]);
  } finally {
    listener.off('notification', hear);
    speaker.end().catch(() => {});
  }
}
