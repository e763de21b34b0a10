import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of the feed that edges follow. */
export const errors = defineErrors({
  FEED_GONE: {
    exit: null,
    status: 410,
    meaning: 'From /feed: the position is unknown. Load /feed/snapshot, and continue from there.',
    causes: ['the store was replaced, as by a restore', 'the changes since that position were cleared'],
    remedy: 'You need to do nothing. An edge loads all keys again by itself.',
  },
});
