import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of notices. */
export const errors = defineErrors({
  WEBHOOK_FAILED: {
    meaning: 'The webhook did not accept the test notice of `notices test`. The error shows what it answered.',
    causes: [
      'nothing listens at its address, or its certificate is not trusted here',
      'the receiver has another secret, or its clock is wrong. It then usually answers 401',
      'the receiver fails, takes longer than 15 seconds, or redirects',
    ],
    remedy: "Look for the id of the notice in the receiver's log. See [Receiving](notices.md#receiving).",
  },
});
