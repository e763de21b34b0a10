import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { FeedByNats } from './settings.ts';
import { isPackageMissing, isRecord, KeysError, printable, readSecretFile, rethrow } from '../../keys/basics/index.ts';

/** The NATS library, loaded only when used. */
export type Nats = Awaited<ReturnType<typeof loadNats>>;

/** An optional dependency. @throws KeysError CONFIG_UNAVAILABLE */
async function loadNats() {
  try {
    const [{ connect, credsAuthenticator, headers }, jetStream] = await Promise.all([
      import('@nats-io/transport-node').catch(rethrow),
      import('@nats-io/jetstream').catch(rethrow),
    ]);
    return { connect, credsAuthenticator, headers, ...jetStream };
  } catch (error) {
    if (!isPackageMissing(error)) throw error;
    const packages = '@nats-io/transport-node @nats-io/jetstream';
    throw new KeysError(
      'CONFIG_UNAVAILABLE',
      `A feed by NATS needs packages that are not installed. Run "npm install ${packages}" where svc-api is installed.`,
      { cause: error },
    );
  }
}

/** Time-outs of a silent server and of connecting, and the pause before the next attempt, in milliseconds. */
const [PING_MS, CONNECT_MS, PAUSE_MS] = [2000, 2000, 200];

/** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE */
export function readCredentials(file: string): Uint8Array {
  const words = { what: 'The file of the credentials for NATS', remedy: 'Correct "feed" in svc-api.yaml.' };
  return Buffer.from(readSecretFile(file, words).text, 'latin1');
}

/**
 * Connects to one of the servers. The library then reconnects by itself, and reads the credentials again each time.
 * @throws KeysError UNAUTHENTICATED, SERVER_UNREACHABLE; CONFIG_… for the credentials file or a missing package
 */
export async function connectTo(settings: FeedByNats): Promise<{ nats: Nats; connection: NatsConnection }> {
  const nats = await loadNats();
  const { servers, credentials } = settings;
  if (credentials) readCredentials(credentials.file);
  try {
    const connection = await nats.connect({
      name: 'svc-api',
      servers: [...servers],
      ...(credentials && {
        authenticator: (nonce?: string) => nats.credsAuthenticator(readCredentials(credentials.file))(nonce),
      }),
      maxReconnectAttempts: -1,
      ignoreAuthErrorAbort: true,
      pingInterval: PING_MS,
      maxPingOut: 1,
      timeout: CONNECT_MS,
      reconnectTimeWait: PAUSE_MS,
    });
    return { nats, connection };
  } catch (error) {
    throw failureOf(error, settings);
  }
}

/** Checks an error or its cause by class name, because the library is loaded late. */
export function isNamed(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof Error && (names.includes(error.name) || isNamed(error.cause, ...names));
}

/** Error codes of JetStream for a full account, server, memory or disk. */
const NO_ROOM = new Set([10_002, 10_023, 10_028, 10_047]);

/** Turns an error of NATS into an error for users. */
export function failureOf(error: unknown, { servers }: FeedByNats): KeysError {
  if (error instanceof KeysError) return error;
  const message = printable((error as Error).message, 200);
  const at = servers.map((server) => printable(server, 200)).join(', ');
  if (isNamed(error, 'AuthorizationError', 'PermissionViolationError'))
    return new KeysError('UNAUTHENTICATED', `NATS at ${at} refuses the credentials: ${message}.`, { cause: error });
  if (isNamed(error, 'JetStreamApiError')) {
    const isFull = NO_ROOM.has((error as { code?: number }).code ?? 0);
    const remedy = isFull ? ' The storage is full: raise max_file_store, or the limit of the account.' : '';
    return new KeysError('SERVER_FAILED', `JetStream at ${at} refuses: ${message}.${remedy}`, { cause: error });
  }
  const what = isNamed(error, 'NoResponders')
    ? `No origin answers behind NATS at ${at}.`
    : `NATS at ${at} does not answer (${message}).`;
  return new KeysError('SERVER_UNREACHABLE', what, { cause: error });
}

/** The names of the bucket and the subjects of the feed. */
export function namesOf({ name }: FeedByNats) {
  return {
    stream: `KV_${name}-keys`,
    /** Subject prefix of keys, followed by the id in base64url, which contains no dot. */
    entries: `$KV.${name}-keys.`,
    ask: `${name}.feed.ask`,
    activity: `${name}.feed.activity`,
    leases: `${name}.feed.leases`,
    publisher: `${name}.feed.publisher`,
  };
}

/** The header of an entry with the cursor in the store's changes after it. */
export const CURSOR_HEADER = 'Svc-Api-Cursor';
/** The header that marks a deleted entry in key-value buckets. */
export const OPERATION_HEADER = 'KV-Operation';

/** A request of an edge; without a lease, it only asks for the position. */
export interface NatsAsk {
  readonly edge: string;
  readonly name: string;
  /** The position up to which it has taken entries; see `positionOf`. */
  readonly after: string;
  /** `after` of the last answered request: no entry after it may be cleared yet. */
  readonly known: string;
  readonly leaseMs: number;
  /** See `EdgeAsking`. */
  readonly restMs: number;
}

/** The answer: the lease counts from the request, and requires all entries up to the position. */
export interface NatsAnswer {
  readonly leaseMs: number;
  readonly position: string;
  /** Domain of JetStream with the bucket, to find it behind leaf nodes; undefined without one. */
  readonly domain?: string | undefined;
}

/** A position: an entry's number and the creation time of its bucket. Positions in another bucket are unknown. */
export function positionOf(created: string, sequence: number): string {
  return `${created.replaceAll(/\D/g, '')}.${sequence}`;
}

/** The number of an entry in a position of the same bucket; undefined for any other. */
export function sequenceIn(position: string, created: string): number | undefined {
  const [, sequence] = /\.(\d{1,15})$/.exec(position) ?? [];
  return sequence !== undefined && positionOf(created, Number(sequence)) === position ? Number(sequence) : undefined;
}

/** Reads a message. @throws SyntaxError */
export function readMessage(message: Pick<Msg, 'data'>): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(Buffer.from(message.data).toString());
  if (isRecord(value)) return value;
  throw new SyntaxError('A message of the feed is not a map.');
}
