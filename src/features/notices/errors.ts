import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of notices. */
export const errors = defineErrors({
  WEBHOOK_FAILED: {
    meaning:
      'The webhook did not accept the test notice that `notices test` has sent; the error says what it answered.',
    causes: [
      'nobody listens at its address, or its certificate is not trusted here',
      'the receiver has another secret, or a clock that is wrong: mostly 401',
      'the receiver fails, takes longer than 15 seconds, or redirects',
    ],
    remedy: "Look into the receiver's log, by the id of the notice. See [Receiving](notices.md#receiving).",
  },
});
