import type { AuditReader } from '../../keys/audit/index.ts';
import { MAX_CHAIN_LENGTH } from '../../keys/authorization/index.ts';
import { KeysError, type Port, withoutStackTrace } from '../../keys/basics/index.ts';
import type { KeyRepository } from '../../keys/repository/index.ts';
import { apiKeyOf, foundBy, type KeyRow } from '../../store/index.ts';
import { type Follower, stale } from './follower.ts';

/**
 * The keys of an origin, for the rules that check keys. All other methods are refused: the origin has to answer them.
 */
export function edgeRepository(follower: Follower, origin: string): KeyRepository {
  const refuse = () =>
    Promise.reject(
      new KeysError('STORE_REQUIRED', `An edge only checks keys. Ask its origin, ${origin}, for anything else.`),
    );
  /** Reads only within the lease. */
  const reading = <Result>(read: () => Result): Result | Promise<Result> => {
    const mayAnswer = follower.asked();
    if (mayAnswer === true) return read();
    return mayAnswer.then((may) => {
      if (may) return read();
      throw withoutStackTrace(stale);
    });
  };
  const ancestorsOf = ({ created_by: creator }: Pick<KeyRow, 'created_by'>): KeyRow[] => {
    const rows = new Map<string, KeyRow>();
    for (let id = creator; id !== null && !rows.has(id) && rows.size < MAX_CHAIN_LENGTH;) {
      const row = follower.table.findById(id);
      if (!row) break;
      rows.set(id, row);
      id = row.created_by;
    }
    return [...rows.values()];
  };
  const auditLog: AuditReader = {
    key: undefined,
    find: refuse,
    findChanges: refuse,
    findChanged: refuse,
    count: refuse,
    timeFrom: refuse,
    head: refuse,
    start: refuse,
    lastBefore: refuse,
    findLost: refuse,
  };
  return {
    kind: 'sqlite',
    port: <Reader>({ name }: Port<Reader, Reader>) => new Proxy({ name }, { get: () => refuse }) as Reader,
    findByDigest: (digest) =>
      reading(() => {
        const row = follower.table.findByDigest(digest);
        return row && foundBy(digest, row, ancestorsOf(row));
      }),
    findById: async (id) =>
      reading(() => {
        const row = follower.table.findById(id);
        return row && apiKeyOf(row);
      }),
    findAncestors: async (ids) =>
      reading(() => {
        const rows = ids.flatMap((id) => {
          const row = follower.table.findById(id);
          return row ? [row, ...ancestorsOf(row)] : [];
        });
        return new Map(rows.map((row) => [row.id, apiKeyOf(row)]));
      }),
    revision: () => follower.revision(),
    keysChangedSince: (revision) => follower.keysChangedSince(revision),
    watchHearing: (report) => follower.watchHearing(report),
    check: async () => {
      await follower.rouse();
      if (follower.leaseMs <= 0) throw withoutStackTrace(stale);
    },
    auditLog,
    findByName: refuse,
    findBy: refuse,
    findByDigests: refuse,
    findConfusable: refuse,
    countLive: refuse,
    findManaged: refuse,
    findWithDescendants: refuse,
    async *pages() {
      yield refuse();
    },
    list: refuse,
    listCreatedBy: refuse,
    count: refuse,
    write: refuse,
    follow: refuse,
  };
}
