import { permissions } from '../../remote/requests.ts';
import { list, nullable, number, object, of, only, query, text, time } from '../../remote/shape.ts';

/** The requests to servers. */
export const REQUESTS = {
  keyUsage: query(
    'apiKey',
    { id: 'ID!', from: 'DateTime!', to: 'DateTime!', by: 'UsagePeriod!' },
    nullable(
      only(
        'usage(from: $from, to: $to, by: $by)',
        nullable(list(object({ start: time, accepted: number, forbidden: number, limited: number, refused: number }))),
      ),
    ),
  ),
  keySuggestion: query(
    'apiKey',
    { id: 'ID!' },
    nullable(
      object({
        roles: of('suggestedRoles', list(text)),
        permissions: of('suggestedPermissions', permissions),
        unused: of('unusedPermissions', permissions),
        tools: of('usedTools', list(object({ name: text, lastUsedAt: time }))),
        routes: of('usedRoutes', list(text)),
      }),
    ),
  ),
};
