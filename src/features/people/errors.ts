import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of people who sign in. */
export const errors = defineErrors({
  NOT_FOR_PEOPLE: {
    graphql: true,
    meaning: 'The key stands for a person who signs in: it has no secret, and the grants of their groups.',
    causes: ['a command would rotate, replace or declare a person, or change their grants'],
    remedy:
      'Change [`people`](console.md#people-without-a-key) in `svc-api.yaml` or the groups of that person, or disable them.',
  },
});
