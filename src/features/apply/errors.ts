import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of keys that are declared in a file. */
export const errors = defineErrors({
  DECLARATION_INVALID: {
    exit: 2,
    graphql: true,
    meaning: 'The file with declared keys is not valid. The error names each problem.',
    causes: ['it is not YAML or JSON', 'a field is misspelled', 'a value breaks the rule of its field'],
    remedy:
      'For a file, the error has the line and column of each problem. An editor that knows ' +
      '[the JSON Schema](apply.md) shows them while you type.',
  },
  PRUNE_REFUSED: {
    graphql: true,
    meaning: '`apply --prune` would also delete keys that it must not delete.',
    causes: ['a key that the file no longer declares has created others, which would be deleted with it'],
    remedy:
      'Delete the keys that the error names, make them independent by `apikey update --detach`, or declare the keys that created them.',
  },
  TAKEOVER_REFUSED: {
    graphql: true,
    meaning: 'A declared key was created by another key, or got its name from one.',
    causes: ['someone else created a key with that name before the first `apply`'],
    remedy: 'Delete that key, or pass `--adopt` to take it over with its current secret.',
  },
});
