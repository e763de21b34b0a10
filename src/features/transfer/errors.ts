import { defineErrors } from '../../keys/basics/index.ts';

/** Warnings about keys that can be imported. */
export const IMPORT_WARNINGS = defineErrors({
  SECRET_GUESSABLE: {
    exit: null,
    meaning: 'A warning: the secret of an imported key could be guessed.',
    causes: ['it has fewer than 20 characters'],
    remedy: 'Rotate the key soon.',
  },
  EXPIRED: {
    exit: null,
    meaning: 'A warning: an imported key has already expired, and will be refused.',
    causes: ['`expiresAt` is in the past'],
    remedy: 'If you still need it, set a new expiry with `apikey update`.',
  },
});

/** Error codes of imports. */
export const errors = defineErrors({
  SECRET_TAKEN: {
    meaning: 'A key to import has the secret of another key.',
    causes: [
      'the key was imported before, and the key or its line was changed since then',
      'the key is in the file twice',
    ],
    remedy: 'Remove the line.',
  },
  PREFIX_TAKEN: {
    meaning: 'A key to import has the prefix of another key.',
    causes: [
      'the key was imported before, and the key or its line was changed since then',
      'the prefix was chosen by hand',
    ],
    remedy: 'Remove the line, or its `prefix`: the key gets another one.',
  },
  ID_TAKEN: {
    meaning: 'A key to import has the id of another key.',
    causes: [
      'the key was imported before, and the key or its line was changed since then',
      'the key is in the file twice',
    ],
    remedy: 'Remove the line, or its `id`: the key gets another one.',
  },
  ...IMPORT_WARNINGS,
});
