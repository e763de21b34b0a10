import { changing } from '../../keys/operations/index.ts';
import { type Attestation, Reviews } from './attestation.ts';

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
