import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { BUSY_TIMEOUT_MS } from '../../src/cli/with-keys.ts';
import { FEATURES } from '../../src/features/index.ts';
import type { OwnFeature } from '../../src/feature.ts';
import { listenersOf } from '../../src/keys/changes/steps-of-plugins.ts';
import type { AuditReader } from '../../src/keys/audit/audit-reader.ts';
import type { Authentication } from '../../src/keys/authentication/look-up.ts';
import { BARE_KEY, type StoredKey } from '../../src/keys/key/api-key.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import { type CatalogAdditions, createCatalog } from '../../src/keys/permissions/catalog.ts';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import type { Port, ReadPorts } from '../../src/keys/basics/port.ts';
import { UUID } from '../../src/keys/basics/options.ts';
import type { KeyRepository } from '../../src/keys/repository/repository.ts';
import { type KeysOptions, KeysService } from '../../src/keys/service/service.ts';
import { type Limited, Limiter } from '../../src/limits/limiter.ts';
import { isPostgresUrl, readPostgresUrl } from '../../src/store/postgres-address.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import type { StoreTimer } from '../../src/store/connection.ts';
import { migratedStore } from './temp.ts';
import { STORES } from './features.ts';
import { UsedGrants } from './used-grants.ts';

const ID_BYTES = 16;

export interface TestKeys {
  /** The path or URL of the store. */
  database: string;
  store: Store;
  keys: KeysService & Limited;
  /** The options that `keys` was opened with. */
  options: KeysOptions;
  /** The time in milliseconds since 1970, which tests set. */
  time: { now: number };
  /** The grants that `keys` has written as used. */
  usedGrants: UsedGrants;
}

/** The rules over a real, new store, with a stopped clock. */
export async function openTestKeys(
  options: CatalogAdditions & {
    database?: string;
    schedule?: KeysOptions['schedule'];
    /** Default: a stopped clock. */
    time?: { now: number };
    lockWaitMs?: number;
    /** True to open it as a server does, with a thread that writes to the file. That takes longer. */
    asServer?: boolean;
    /** The environment for opening the store. Default: that of the process. */
    env?: NodeJS.ProcessEnv;
    /** Called with how long the store took. */
    timer?: StoreTimer;
    /** Default: all features of svc-api. */
    features?: readonly OwnFeature[];
    /** Wraps the store, to observe the calls to it. */
    repository?: (repository: KeyRepository) => KeyRepository;
    /** The source of secrets, codes and ids. Default: the system. */
    randomness?: Pick<KeysOptions, 'randomBytes' | 'randomId'>;
  } = {},
): Promise<TestKeys> {
  const database = options.database ?? (await migratedStore());
  const time = options.time ?? { now: Date.UTC(2030, 0, 1) };
  const opening = {
    database,
    busyTimeoutMs: options.asServer ? 0 : BUSY_TIMEOUT_MS,
    ...(options.lockWaitMs && { lockWaitMs: options.lockWaitMs }),
    ...(options.env && { env: options.env }),
    timer: options.timer,
  };
  const store = await openStore(opening, { features: STORES, leaseClock: async () => time.now });
  const usedGrants = new UsedGrants();
  const service: KeysOptions = {
    repository: options.repository?.(store.repository) ?? store.repository,
    catalog: createCatalog(options),
    clock: () => time.now,
    ...(options.randomness ?? { randomBytes, randomId: randomUUID }),
    schedule: options.schedule ?? (() => {}),
    operator: 'tester',
    listeners: listenersOf([...(options.features ?? FEATURES), usedGrants]),
    elapsed: () => time.now,
  };
  const { schedule } = service;
  const limiter = new Limiter({ store: store.limits, elapsed: () => time.now, schedule, id: randomUUID() });
  return {
    database,
    store,
    keys: Object.assign(new KeysService(service), { limiter }),
    time,
    usedGrants,
    options: service,
  };
}

/** A `repository` option that wraps the audit log, to run code while it is read. */
export function withAuditLog(change: (log: AuditReader) => Partial<AuditReader>) {
  return ({ auditLog, ...others }: KeyRepository): KeyRepository => ({
    ...others,
    auditLog: { ...auditLog, ...change(auditLog) },
  });
}

/** A store or a transaction with one wrapped port. */
export function withPort<Ports extends ReadPorts, Reader, Writer extends Reader>(
  ports: Ports,
  wrapped: Port<Reader, Writer>,
  change: (real: Writer) => Partial<Writer>,
): Ports {
  const port = (asked: Port<unknown>) => {
    const real = ports.port(asked);
    return asked === wrapped ? { ...(real as Writer), ...change(real as Writer) } : real;
  };
  return { ...ports, port };
}

/** Runs `work` while the usage of keys cannot be written, because another process holds the lock. */
export async function whileUseWaits({ database, store }: TestKeys, work: () => Promise<void>): Promise<void> {
  if (!isPostgresUrl(database)) return store.repository.write(work);
  const client = new Client(readPostgresUrl(database).config);
  await client.connect();
  try {
    await client.query('begin; lock table key_uses in exclusive mode');
    await work();
  } finally {
    await client.end();
  }
}

export async function countKeys(repository: KeyRepository): Promise<number> {
  return (await repository.list({ limit: 1_000_000 })).length;
}

/** A UUID for a text of at most 16 bytes, so that ids are in the order of the texts. A UUID stays as it is. */
export function idOf(text: string): string {
  if (UUID.test(text)) return text;
  const bytes = Buffer.alloc(ID_BYTES);
  if (Buffer.byteLength(text) > ID_BYTES) throw new RangeError(`"${text}" is longer than ${ID_BYTES} bytes`);
  bytes.write(text);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** A stored key, made without the rules. Its id and secret are derived from a text. */
export function storedKey(text: string, fields: Partial<StoredKey> = {}): StoredKey {
  return {
    ...BARE_KEY,
    id: idOf(text),
    name: text,
    roles: [],
    permissions: ['ME:READ_OWN'],
    publicId: text,
    digest: text,
    createdAt: 0,
    ...fields,
  };
}

/** Finds the key of a secret, and counts a use. Limits and other restrictions are not checked. */
export async function authenticate(
  { authenticator }: Pick<KeysService, 'authenticator'>,
  secret: string,
  address?: string,
): Promise<Authentication> {
  const result = await authenticator.confirm(secret, address);
  if ('principal' in result) authenticator.countUse(result);
  return result;
}

/** Creates a key, by the operator or another key, and returns its secret and principal. */
export async function createPrincipal(
  keys: KeysService,
  input: NewKey,
  by: Principal | typeof OPERATOR = OPERATOR,
): Promise<{ secret: string; principal: Principal }> {
  const { key: secret } = await keys.create(input, by);
  return { secret, principal: await principalOf(keys, secret) };
}

/** The principal of a secret; counts as a use. */
export async function principalOf(keys: Pick<KeysService, 'authenticator'>, secret: string): Promise<Principal> {
  const result = await authenticate(keys, secret);
  if ('refused' in result) throw new Error(`The key was refused: ${result.refused}`);
  return result.principal;
}

/** Changes that reduce the access of a key created by another key, with the resulting status. */
export const LOSSES: Readonly<Record<string, Loss>> = {
  'it is narrowed': {
    refused: 403,
    lose: ({ keys }, { id }) => keys.update(id, { roles: ['GUEST'], permissions: [] }, OPERATOR),
  },
  'its creator is narrowed': {
    refused: 403,
    lose: ({ keys }, { creator }) => keys.update(creator, { roles: ['GUEST'], permissions: [] }, OPERATOR),
  },
  'it may be used from elsewhere alone': {
    refused: 403,
    lose: ({ keys }, { id }) => keys.update(id, { allowFrom: ['192.0.2.0/24'] }, OPERATOR),
  },
  'it is disabled': { refused: 401, lose: ({ keys }, { id }) => keys.setEnabled(id, false, OPERATOR) },
  'its creator is disabled': {
    refused: 401,
    lose: ({ keys }, { creator }) => keys.setEnabled(creator, false, OPERATOR),
  },
  'it is deleted': { refused: 401, lose: ({ keys }, { id }) => keys.delete([id], OPERATOR) },
  'its creator is deleted': { refused: 401, lose: ({ keys }, { creator }) => keys.delete([creator], OPERATOR) },
  'it gets another secret': { refused: 401, lose: ({ keys }, { id }) => keys.rotate(id, { grace: '0s' }, OPERATOR) },
  'it expires': { refused: 401, lose: ({ time }) => (time.now += 3_600_000) },
};

/** Something that a key can lose. */
export interface Loss {
  refused: 401 | 403;
  readonly lose: (test: TestKeys, key: Child) => unknown;
}

/** A key created by another key. */
export interface Child {
  secret: string;
  id: string;
  creator: string;
}

/** Creates a key that expires in an hour. Its creator can do everything and does not expire. */
export async function createChild(keys: KeysService, input: Omit<NewKey, 'name'>): Promise<Child> {
  const name = `Key ${randomBytes(8).toString('hex')}`;
  const { principal } = await createPrincipal(keys, { name: `${name} creator`, roles: ['ADMIN'] });
  const { key: secret, apiKey } = await keys.create({ name, expiresIn: '1h', ...input }, principal);
  return { secret, id: apiKey.id, creator: principal.apiKey.id };
}

/** Runs `between` right after the next request has passed the check of its key's limits. */
export function whileLimited({ limiter }: Limited, between: () => unknown): void {
  const enter = limiter.enter.bind(limiter);
  limiter.enter = async (...given) => {
    limiter.enter = enter;
    const answer = await enter(...given);
    await between();
    return answer;
  };
}

/** Keys as JSON lines, in chunks as of a stream. */
export async function* jsonLines(...lines: (object | string)[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  for (let start = 0; start < bytes.length; start += 1000) yield bytes.subarray(start, start + 1000);
}
