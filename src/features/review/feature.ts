import type { OwnFeature } from '../../feature.ts';
import { reviewOperations } from './operations.ts';

/** Reviews of all keys, which an administrator attests. */
export const review: OwnFeature = {
  name: 'review',
  ...reviewOperations,
  schema: () => import('./schema.ts'),
  commands: {
    'apikey:list': {
      flags: {
        review: {
          description:
            'List all keys for a review, with the columns NAME OWNER TAGS GRANTS STATUS CREATOR LAST-USED EXPIRES. ' +
            'If a key has no owner, that of the nearest parent key is shown. Permissions that the parent keys do ' +
            'not allow are left out.',
          group: 'REVIEW',
        },
        csv: {
          description: 'Print the review as CSV. Cells are escaped, so that spreadsheets run no formulas.',
          group: 'REVIEW',
        },
        attest: {
          description:
            'Record this statement in the audit log, with the SHA-256 of the CSV. Add --csv to print that CSV.',
          value: '<text>',
          group: 'REVIEW',
        },
      },
      run: async (command) => (await import('./cli/review.ts')).runReview(command),
    },
  },
};
