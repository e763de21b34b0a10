import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of servers that answer without a store. */
export const errors = defineErrors({
  EDGE_STALE: {
    meaning: 'An edge does not know whether its keys are still right, and answers no more.',
    causes: [
      'it has not loaded all keys since its start',
      'its origin did not answer for longer than `--max-stale`, or is not sure of its own store',
      'the key with EDGE:READ_ANY was deleted, disabled or has expired',
    ],
    remedy: "Look into the edge's log, which has the reason. It goes on by itself once the origin answers.",
  },
});
