import { badInput, auditChanges, connectionOf, type Resolve } from './resolve.ts';
import type { AuditEntry } from '../keys/audit/audit-entry.ts';
import type { AuditRequest } from '../keys/audit/audit-log.ts';
import { DEFAULT_PAGE_SIZE } from '../keys/page.ts';
import type { KeysService } from '../keys/service.ts';
import type { Resolvers } from './extension.ts';

type Actor = Parameters<KeysService['auditLog']>[1];
type AuditPlace = NonNullable<Parameters<KeysService['auditLog']>[2]>;

/** Which part of the log is asked for: one of these at most. */
interface PlaceArguments {
  after?: string | null;
  beforeNumber?: number | null;
  afterNumber?: number | null;
}

/** The resolvers for the audit log. */
export function auditResolversOf(keys: KeysService): Resolvers {
  const auditLog: Resolve<AuditRequest & PlaceArguments> = async (
    _,
    { after, beforeNumber, afterNumber, ...request },
    { principal },
  ) => {
    if ([after, beforeNumber, afterNumber].filter((place) => place != null).length > 1)
      throw badInput('Pass one of after, beforeNumber and afterNumber.');
    const before = after ? readCursor(after) : beforeNumber;
    const place = afterNumber != null ? { after: afterNumber } : before == null ? {} : { before };
    const entries = await keys.auditLog(request, principal, place);
    const last = entries.at(-1);
    const first = request.first ?? DEFAULT_PAGE_SIZE;
    const isNewestFirst = afterNumber == null;
    const hasNextPage =
      entries.length === first &&
      last !== undefined &&
      (last.number > 1 || !isNewestFirst) &&
      (await hasMore(request, principal, isNewestFirst ? { before: last.number } : { after: last.number }));
    return connectionOf(entries, ({ number }) => Buffer.from(`log:${number}`).toString('base64url'), hasNextPage);
  };

  const hasMore = async (request: AuditRequest, ...rest: [principal: Actor, place: AuditPlace]) =>
    (await keys.auditLog({ ...request, first: 1 }, ...rest)).length > 0;

  return {
    Query: { auditLog },
    AuditActor: { keyId: ({ id }: AuditEntry['actor']) => id },
    AuditEntry: {
      keyId: ({ apiKey }: AuditEntry) => apiKey?.id,
      keyName: ({ apiKey }: AuditEntry) => apiKey?.name,
      changes: ({ before, after }: AuditEntry) => auditChanges(before, after),
    },
  };
}

function readCursor(cursor: string): number {
  const [, number] = /^log:(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (number === undefined) throw badInput('"after" is not a cursor of this list. Use an endCursor that it returned.');
  return Number(number);
}
