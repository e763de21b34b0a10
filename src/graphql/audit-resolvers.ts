import { badInput, auditChanges, connectionOf, type Resolve } from './resolve.ts';
import type { AuditEntry } from '../keys/audit/audit-entry.ts';
import type { AuditRequest } from '../keys/audit/audit-log.ts';
import { DEFAULT_PAGE_SIZE } from '../keys/page.ts';
import type { KeysService } from '../keys/service.ts';
import type { Resolvers } from './extension.ts';

/** The resolvers for the audit log. */
export function auditResolversOf(keys: KeysService): Resolvers {
  const auditLog: Resolve<AuditRequest & { after?: string | null }> = async (
    _,
    { after, ...request },
    { principal },
  ) => {
    const entries = await keys.auditLog(request, principal, after ? { before: readCursor(after) } : {});
    const last = entries.at(-1);
    const first = request.first ?? DEFAULT_PAGE_SIZE;
    const hasNextPage =
      entries.length === first && last !== undefined && last.number > 1 && (await hasOlder(request, last, principal));
    return connectionOf(entries, ({ number }) => Buffer.from(`log:${number}`).toString('base64url'), hasNextPage);
  };

  const hasOlder = async (
    request: AuditRequest,
    { number }: AuditEntry,
    principal: Parameters<KeysService['auditLog']>[1],
  ) => (await keys.auditLog({ ...request, first: 1 }, principal, { before: number })).length > 0;

  return {
    Query: { auditLog },
    AuditActor: { keyId: ({ id }: AuditEntry['actor']) => id },
    AuditEntry: {
      keyId: ({ key }: AuditEntry) => key?.id,
      keyName: ({ key }: AuditEntry) => key?.name,
      changes: ({ before, after }: AuditEntry) => auditChanges(before, after),
    },
  };
}

function readCursor(cursor: string): number {
  const [, number] = /^log:(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (number === undefined) throw badInput('"after" is not a cursor of this list. Use an endCursor that it returned.');
  return Number(number);
}
