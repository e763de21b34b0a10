import { changing, reading } from '../../keys/operations/index.ts';
import { type Attestation, Reviews } from './attestation.ts';
import { type ReviewedPage, reviewedKeys } from './reviewed-keys.ts';

/** The operation that attests a review, and how a server is asked for it. */
export const reviewOperations = {
  operations: {
    attestReview: changing({
      needs: 'API_KEY:UPDATE_ANY',
      does: 'Records in the audit log that the caller attests a review of the keys. Returns true.',
      run: (keys, { input }: { input: Attestation }, actor): Promise<unknown> =>
        keys.feature(Reviews).attest(input, actor),
    }),
  },
  remote: () => import('./remote.ts'),
};

/** The list of keys for a review. The schema has no field for it: a server is asked for its keys. */
export const reviewList = {
  operations: {
    reviewedKeys: reading({
      needs: 'API_KEY:READ_OWN',
      does: 'A page of keys for a review, oldest first.',
      run: (keys, { after }: { after: string | null }, actor): Promise<ReviewedPage> =>
        reviewedKeys(keys, after, actor),
    }),
  },
  remote: () => import('./remote.ts'),
};
