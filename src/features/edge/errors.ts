import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of servers that answer without a store. */
export const errors = defineErrors({
  EDGE_STALE: {
    meaning: 'An edge does not know whether its keys are still valid, so it refuses all of them.',
    causes: [
      'it has not loaded all keys since its start',
      'its origin did not answer for longer than `--max-stale`, or cannot reach its own store',
      'the key with EDGE:READ_ANY was deleted, disabled or has expired',
    ],
    remedy: "See the edge's log for the reason. It recovers by itself once the origin answers.",
  },
});
