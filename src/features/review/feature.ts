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
            'List all keys for a review. A key without an owner has that of the nearest parent key with one. ' +
            'Permissions are those that the parent keys allow.',
          group: 'REVIEW',
        },
        csv: {
          description: 'Print the review as CSV; cells are escaped so that spreadsheets do not run formulas.',
          group: 'REVIEW',
        },
        attest: {
          description: 'Statement for the audit log, in one line. The SHA-256 of the CSV is recorded with it.',
          value: '<text>',
          group: 'REVIEW',
        },
      },
      run: async (command) => (await import('./cli/review.ts')).runReview(command),
    },
  },
};
