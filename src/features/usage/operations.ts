import { noKeyWithId } from '../../keys/basics/index.ts';
import { reading } from '../../keys/operations/index.ts';
import { type Suggestion, suggestGrants, USED_GRANTS } from './suggest.ts';
import { Usage, type UsageByPeriod, type UsageRequest } from './usage.ts';

/** The operation on the requests of all keys. */
export const usageOperations = {
  serviceUsage: reading({
    needs: 'API_KEY:READ_ANY',
    does: 'How the requests of all keys ended, by hours or days in UTC, the oldest first.',
    run: (keys, { request }: { request: UsageRequest }) => keys.feature(Usage).ofAll(request),
  }),
};

/** Questions of commands about one key, for which the schema has fields of `ApiKey`. */
export const keyQuestions = {
  operations: {
    keyUsage: reading({
      needs: 'API_KEY:READ_OWN',
      does: 'How the requests of a key ended, by hours or days in UTC, the oldest first.',
      run: (keys, { id, request }: { id: string; request: UsageRequest }): Promise<UsageByPeriod> =>
        keys.feature(Usage).byPeriod(id, request),
    }),
    keySuggestion: reading({
      needs: 'API_KEY:READ_OWN',
      does: 'The fewest grants that a key needs, by what it has used.',
      async run(keys, { id }: { id: string }, actor): Promise<Suggestion> {
        const key = await keys.findById(id, actor);
        if (!key) throw noKeyWithId(id);
        const [[chain], used] = await Promise.all([keys.chainsOf([key]), keys.port(USED_GRANTS).of([id])]);
        return suggestGrants(chain!, used.get(id)!, keys.catalog);
      },
    }),
  },
  remote: () => import('./remote.ts'),
};
