import { DEFAULT_PAGE_SIZE } from '../keys/basics/index.ts';
import { OPERATIONS, operationsOn } from '../keys/operations/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import { auditChanges, badInput, connectionOf, cursorOf, readCursor } from './resolve.ts';
import type { QueryResolvers, Resolvers } from './schema-types.ts';

export function auditResolversOf(keys: KeysService): Resolvers {
  const does = operationsOn(keys, OPERATIONS);
  const auditLog: QueryResolvers['auditLog'] = async (
    _,
    { after, beforeNumber, afterNumber, ...request },
    { principal },
  ) => {
    if ([after, beforeNumber, afterNumber].filter((place) => place != null).length > 1)
      throw badInput('Pass one of after, beforeNumber and afterNumber.');
    for (const number of [beforeNumber, afterNumber])
      if (number != null && number < 0) throw badInput(`The number of an entry is ${number}. It must be at least 0.`);
    const before = after ? readCursor('log', after) : beforeNumber;
    const place = afterNumber != null ? { after: afterNumber } : before == null ? {} : { before };
    const entries = await does.auditLog({ request, place }, principal);
    const hasMore = async (beyond: typeof place) =>
      (await does.auditLog({ request: { ...request, first: 1 }, place: beyond }, principal)).length > 0;
    const last = entries.at(-1);
    const first = request.first ?? DEFAULT_PAGE_SIZE;
    const isNewestFirst = afterNumber == null;
    const hasNextPage =
      entries.length === first &&
      last !== undefined &&
      (last.number > 1 || !isNewestFirst) &&
      (await hasMore(isNewestFirst ? { before: last.number } : { after: last.number }));
    return connectionOf(entries, (entry) => cursorOf('log', entry), hasNextPage);
  };

  return {
    Query: {
      auditLog,
      auditCounts: async (_, { by, ...request }, { principal }) => {
        const { counts, isComplete } = await does.auditCounts({ request: { ...request, by: by ?? 'HOUR' } }, principal);
        return { counts, complete: isComplete };
      },
      auditChain: async (_, _args, { principal }) => {
        const { verified, newest, failure } = await does.auditChain({}, principal);
        const broken = failure && 'broken' in failure ? failure.broken : null;
        return { ...verified, newest, broken, reason: failure?.reason };
      },
    },
    AuditActor: { keyId: ({ id }) => id },
    AuditEntry: {
      keyId: ({ apiKey }) => apiKey?.id,
      keyName: ({ apiKey }) => apiKey?.name,
      changes: ({ before, after }) => auditChanges(before, after),
    },
  };
}
