import { defineErrors } from './table.ts';

/** Keys that are imported, or declared in a file. */
export const TRANSFER_ERRORS = defineErrors({
  DECLARATION_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The keys that are declared for `apply` are not valid. The error names each problem.',
    causes: ['it is not YAML or JSON', 'a field is misspelled', 'a value breaks the rule of its field'],
    remedy:
      'For a file, the error has the line and column of each problem. An editor that knows ' +
      '[the JSON Schema](apply.md) shows them while you type.',
  },
  PRUNE_REFUSED: {
    graphql: true,
    meaning: '`apply --prune` would delete keys that it may not delete.',
    causes: ['a key that the file no longer declares has created others, which would be deleted with it'],
    remedy:
      'Delete the keys that the error names, make them independent by `apikey adopt`, or declare what created them.',
  },
  TAKEOVER_REFUSED: {
    graphql: true,
    meaning: 'A declared key was created by another key, or got its name from one.',
    causes: ['the name that the file declares was taken by somebody else before the first `apply`'],
    remedy: 'Delete that key, or pass `--adopt` to make it yours with the secret that it has.',
  },
  SECRET_TAKEN: {
    meaning: 'A key to import has the secret of another key.',
    causes: ['the key was imported before, and it or its line was changed since', 'the key is in the file twice'],
    remedy: 'Remove the line.',
  },
  PREFIX_TAKEN: {
    meaning: 'A key to import has the prefix of another key.',
    causes: ['the key was imported before, and it or its line was changed since', 'the prefix was chosen by hand'],
    remedy: 'Remove the line, or its `prefix`: the key gets another one.',
  },
  ID_TAKEN: {
    meaning: 'A key to import has the id of another key.',
    causes: ['the key was imported before, and it or its line was changed since', 'the key is in the file twice'],
    remedy: 'Remove the line, or its `id`: the key gets another one.',
  },
});
